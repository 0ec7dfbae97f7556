//! Samples over time, such as memory and CPU: `series/<engine>.jsonl`, one JSON object a line.

use crate::{RecordError, RunDir, run_dir::drop_cut_line};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    path::PathBuf,
};

/// Appends samples to the series of an engine. Samples are buffered; they are in the file after
/// [`SeriesWriter::flush`] or drop. A lost tail of a killed run costs some seconds of a curve, no result.
#[derive(Debug)]
pub struct SeriesWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl SeriesWriter {
    /// Opens the series of `engine`; a last line that was cut off by a kill is removed.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub fn open(run: &RunDir, engine: &str) -> Result<Self, RecordError> {
        let path = run.series_path(engine);
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(RecordError::io("open", &path))?;
        drop_cut_line(&mut file).map_err(RecordError::io("repair", &path))?;
        Ok(SeriesWriter { path, file: BufWriter::new(file) })
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// Where it can't be serialised or written.
    pub fn append(&mut self, sample: &impl Serialize) -> Result<(), RecordError> {
        let mut line = serde_json::to_string(sample).map_err(|e| RecordError::Invalid {
            path: self.path.clone(),
            reason: format!("a sample can't be written: {e}"),
        })?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(RecordError::io("write", &self.path))
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.file.flush().map_err(RecordError::io("write", &self.path))
    }
}

/// The samples of `engine`, in order; none where there is no series. A line that was cut off by a kill
/// is left out.
///
/// # Errors
/// Where a whole line is no sample.
pub fn read_series<T: DeserializeOwned>(run: &RunDir, engine: &str) -> Result<Vec<T>, RecordError> {
    let path = run.series_path(engine);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(RecordError::io("read", &path)(e)),
    };
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let lines = bytes[..whole].split(|&b| b == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_slice(line).map_err(|e| RecordError::Invalid {
                path: path.clone(),
                reason: format!("line {} is no sample ({e})", number + 1),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        at_ns: u64,
        memory_bytes: Option<u64>,
    }

    #[test]
    fn samples_come_back_and_a_cut_line_is_no_loss_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path()).unwrap();
        let samples = [Sample { at_ns: 1, memory_bytes: Some(7) }, Sample { at_ns: 2, memory_bytes: None }];
        let mut writer = SeriesWriter::open(&run, "my engine/1").unwrap();
        writer.append(&samples[0]).unwrap();
        drop(writer);
        assert_eq!(read_series::<Sample>(&run, "other").unwrap(), []);
        // Killed in the middle of a line, then resumed.
        let path = run.series_path("my engine/1");
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"at_ns\":9");
        fs::write(&path, text).unwrap();
        assert_eq!(read_series::<Sample>(&run, "my engine/1").unwrap(), samples[..1]);
        let mut writer = SeriesWriter::open(&run, "my engine/1").unwrap();
        writer.append(&samples[1]).unwrap();
        writer.flush().unwrap();
        assert_eq!(read_series::<Sample>(&run, "my engine/1").unwrap(), samples);
        fs::write(&path, "nonsense\n").unwrap();
        let error = read_series::<Sample>(&run, "my engine/1").unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
