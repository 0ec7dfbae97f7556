//! One file: look whether it is there, else bring it from the first mirror that has it.

use super::check::{self, START_BYTES};
use super::http::{self, Answer, Ask, Failure};
use super::ledger::{self, Arrival};
use super::{Event, FetchOptions};
use crate::DatasetError;
use crate::catalogue::FileEntry;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A transfer that brings less than this in the timeout has stalled.
const STALL_BYTES: u64 = 1024;

/// What the bytes of a `.part` file are of; beside it as `.part.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PartOf {
    url: String,
    validator: Option<String>,
    total: Option<u64>,
}

/// Why a mirror did not bring the file.
enum Stop {
    /// The mirror's fault: try the next one.
    Mirror(String),
    /// The disk's: no mirror helps.
    Disk(DatasetError),
}

impl From<DatasetError> for Stop {
    fn from(error: DatasetError) -> Self {
        Stop::Disk(error)
    }
}

/// The work on one file.
pub(super) struct Job<'a> {
    file: &'a FileEntry,
    dir: &'a Path,
    path: PathBuf,
    part: PathBuf,
    urls: Vec<String>,
    options: &'a FetchOptions,
    transferred: u64,
    /// The most bytes of the file that were ever there, for telling progress from running in
    /// circles.
    furthest: u64,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        file: &'a FileEntry,
        dir: &'a Path,
        urls: Vec<String>,
        options: &'a FetchOptions,
    ) -> Self {
        let path = dir.join(&file.name);
        let part = dir.join(format!("{}.part", file.name));
        Job { file, dir, path, part, urls, options, transferred: 0, furthest: 0 }
    }

    /// Brings the file, unless it is there. Gives the bytes transferred.
    pub(super) fn run(&mut self, on: &mut dyn FnMut(Event<'_>)) -> Result<u64, DatasetError> {
        if self.path.exists() {
            match self.wrong_with_present(on)? {
                None => {
                    on(Event::Present { path: &self.path });
                    return Ok(0);
                }
                Some(reason) => {
                    on(Event::Warning(&format!("{}: {reason}; it is fetched again", self.path.display())));
                }
            }
        }
        // Open, and thereby locked, until the file has its name.
        let mut part = open_part(&self.part)?;
        let mut reasons = Vec::new();
        for (i, url) in self.urls.clone().iter().enumerate() {
            match self.try_mirror(url, &mut part, on) {
                Ok(()) => return Ok(self.transferred),
                Err(Stop::Disk(error)) => return Err(error),
                Err(Stop::Mirror(reason)) => {
                    if let Some(next) = self.urls.get(i + 1) {
                        on(Event::Warning(&format!("cannot fetch {url}: {reason}; now from {next}")));
                    }
                    reasons.push((url.clone(), reason));
                }
            }
        }
        if size_of(&self.part)? == 0 {
            remove_if_there(&self.part)?;
            remove_if_there(&self.part_of_path())?;
        }
        Err(self.gave_up(&reasons))
    }

    /// The error with all addresses tried and the way by hand.
    fn gave_up(&self, reasons: &[(String, String)]) -> DatasetError {
        let (url, reason) = reasons.last().cloned().unwrap_or_default();
        let others: String =
            reasons.iter().rev().skip(1).map(|(url, why)| format!("; {url}: {why}")).collect();
        let cropped = match self.file.crop_rows {
            Some(rows) => format!(" (its first {rows} rows, with that number in the header)"),
            None => String::new(),
        };
        let by_hand = format!("to go on, put the file by hand at {}{cropped}", self.path.display());
        DatasetError::Fetch { url, reason: format!("{reason}{others}; {by_hand}, or name a --mirror") }
    }

    /// What is wrong with the file under the final name. A file of which nothing is known counts
    /// as right if its first bytes fit, with a warning.
    fn wrong_with_present(&self, on: &mut dyn FnMut(Event<'_>)) -> Result<Option<String>, DatasetError> {
        let bytes = size_of(&self.path)?;
        let known = ledger::look_up(self.dir, &self.file.name);
        let wanted = self.file.bytes.or(known.as_ref().map(|known| known.bytes));
        if let Some(wanted) = wanted.filter(|wanted| *wanted != bytes) {
            return Ok(Some(format!("it has {bytes} bytes, {wanted} are right")));
        }
        if let Some(wrong) = check::wrong_start(&self.file.name, &check::start_of(&self.path)?, None) {
            return Ok(Some(wrong));
        }
        match self.file.sha256.as_ref().or(known.as_ref().map(|known| &known.sha256)) {
            Some(wanted) => self.wrong_checksum(&self.path, wanted, on),
            None => {
                let size =
                    if wanted.is_some() { "its size is right" } else { "its size is not known either" };
                on(Event::Warning(&format!(
                    "{}: taken as it is: there is no checksum to hold it against ({size})",
                    self.path.display()
                )));
                Ok(None)
            }
        }
    }

    fn wrong_checksum(
        &self,
        path: &Path,
        wanted: &str,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<String>, DatasetError> {
        let found = check::sha256(path, on)?;
        let wrong = !found.eq_ignore_ascii_case(wanted);
        Ok(wrong.then(|| format!("wrong checksum: SHA-256 is {found}, it must be {wanted}")))
    }

    /// Brings the file from one address, with retries; a wrong checksum is fetched once more.
    fn try_mirror(&mut self, url: &str, part: &mut File, on: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let mut again_after_checksum = true;
        loop {
            self.whole_part(url, part, on)?;
            let bytes = size_of(&self.part)?;
            match self.wrong_with_part(on)? {
                None => return self.put_in_place(url, bytes, part, on).map_err(Stop::Disk),
                Some(reason) => {
                    self.drop_part(part)?;
                    if !std::mem::take(&mut again_after_checksum) {
                        return Err(Stop::Mirror(format!("{reason}, twice")));
                    }
                    on(Event::Warning(&format!("{url}: {reason}; fetching it once more")));
                }
            }
        }
    }

    fn wrong_with_part(&self, on: &mut dyn FnMut(Event<'_>)) -> Result<Option<String>, DatasetError> {
        if let (Some(rows), Some(bytes)) = (self.file.crop_rows, self.file.bytes)
            && let Some(wrong) = check::crop_header(&self.part, rows, bytes)?
        {
            return Ok(Some(wrong));
        }
        match &self.file.sha256 {
            Some(wanted) => self.wrong_checksum(&self.part, wanted, on),
            None => Ok(None),
        }
    }

    /// Syncs, renames, syncs the folder, and enters the arrival.
    fn put_in_place(
        &self,
        url: &str,
        bytes: u64,
        part: &File,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), DatasetError> {
        let sha256 = match &self.file.sha256 {
            Some(checked) => checked.to_ascii_lowercase(),
            None => check::sha256(&self.part, on)?,
        };
        part.sync_all().map_err(DatasetError::io("sync", &self.part))?;
        ledger::enter(self.dir, &self.file.name, Arrival { url: url.to_owned(), bytes, sha256 })?;
        fs::rename(&self.part, &self.path).map_err(DatasetError::io("rename to", &self.path))?;
        File::open(self.dir).and_then(|dir| dir.sync_all()).map_err(DatasetError::io("sync", self.dir))?;
        remove_if_there(&self.part_of_path())?;
        on(Event::Finished { path: &self.path, bytes });
        Ok(())
    }

    /// Makes the `.part` file whole, with retries.
    fn whole_part(&mut self, url: &str, part: &mut File, on: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let agent = http::agent(self.options);
        let mut failures = 0;
        let mut started_over = false;
        loop {
            let before = self.furthest;
            let failure = match self.one_try(&agent, url, part, on)? {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let (reason, wait) = match failure {
                Failure::Final(reason) => return Err(Stop::Mirror(reason)),
                Failure::StartOver(reason) if !started_over => {
                    started_over = true;
                    self.drop_part(part)?;
                    on(Event::Warning(&format!("{url}: {reason}; starting anew")));
                    continue;
                }
                Failure::StartOver(reason) => return Err(Stop::Mirror(reason)),
                Failure::Passing(reason, wait) => (reason, wait),
            };
            failures = if self.furthest > before { 1 } else { failures + 1 };
            // What a set can do without is not worth a long wait.
            let tries = if self.file.optional { self.options.tries.min(2) } else { self.options.tries };
            if failures >= tries {
                return Err(Stop::Mirror(format!("{reason}; tried {failures} times (--tries)")));
            }
            let wait = self.wait(failures).max(wait.unwrap_or_default()).min(LONGEST_WAIT);
            on(Event::Warning(&format!("{url}: {reason}; trying again in {:.1} s", wait.as_secs_f64())));
            std::thread::sleep(wait);
        }
    }

    fn wait(&self, failures: u32) -> Duration {
        self.options.backoff.saturating_mul(1 << failures.saturating_sub(1).min(10))
    }

    /// One request and its body. The outer error is the disk's.
    fn one_try(
        &mut self,
        agent: &ureq::Agent,
        url: &str,
        part: &mut File,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Result<(), Failure>, DatasetError> {
        // Bytes of another address are built on only where a checksum will tell.
        let of = self.part_of().filter(|of| of.url == url || self.file.sha256.is_some());
        let validator = of.as_ref().filter(|of| of.url == url).and_then(|of| of.validator.clone());
        let expected = self.file.bytes.or(of.as_ref().and_then(|of| of.total));
        let mut have = part.metadata().map_err(DatasetError::io("read", &self.part))?.len();
        if of.is_none() || expected.is_some_and(|expected| have > expected) {
            have = 0;
        }
        if have > 0 && expected == Some(have) {
            return Ok(Ok(()));
        }
        let end = self.file.crop_rows.and(self.file.bytes);
        let ask = Ask { url, have, end, validator: validator.as_deref() };
        let answer = match http::request(agent, self.options, &ask) {
            Ok(answer) => answer,
            Err(failure) => return Ok(Err(failure)),
        };
        // Of a cropped file the server has more; a whole file sent anew may have changed its size.
        let on_server = if end.is_some() { None } else { answer.total };
        let expected = if answer.offset == 0 { self.file.bytes } else { expected };
        if let (Some(wanted), Some(found)) = (expected, on_server)
            && wanted != found
        {
            return Ok(Err(self.wrong_size(answer, wanted, found)));
        }
        let (offset, total) = (answer.offset, expected.or(on_server));
        self.save_part_of(&PartOf { url: url.to_owned(), validator: answer.validator.clone(), total })?;
        part.set_len(offset).map_err(DatasetError::io("write", &self.part))?;
        part.seek(SeekFrom::Start(offset)).map_err(DatasetError::io("write", &self.part))?;
        on(Event::Started { path: &self.path, url, resumed_at: offset });
        self.body(answer, part, total, on)
    }

    /// The server has a file of another size: an error page, another file, or a newer one.
    fn wrong_size(&self, mut answer: Answer, wanted: u64, found: u64) -> Failure {
        if answer.offset > 0 {
            return Failure::StartOver(format!(
                "the server's file has {found} bytes now, before it had {wanted}"
            ));
        }
        let mut start = [0; START_BYTES];
        let read = read_some(&mut answer.body, &mut start, START_BYTES).unwrap_or(0);
        let page = check::wrong_start(&self.file.name, &start[..read], answer.content_type.as_deref());
        Failure::Final(
            page.unwrap_or_else(|| format!("the server's file has {found} bytes, {wanted} are right")),
        )
    }

    /// Writes a body to the end of `part`.
    fn body(
        &mut self,
        mut answer: Answer,
        part: &mut File,
        total: Option<u64>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Result<(), Failure>, DatasetError> {
        let mut done = answer.offset;
        let mut meter = Meter::new(done);
        let mut buffer = vec![0; 256 << 10];
        loop {
            let room = total.map_or(buffer.len() as u64, |total| (total - done).min(buffer.len() as u64));
            if room == 0 && total.is_some() {
                break;
            }
            // The first bytes are gathered before anything is written, so that an error page never
            // reaches the disk.
            let gather = if done == 0 { START_BYTES } else { 1 };
            let read = match read_some(&mut answer.body, &mut buffer[..room as usize], gather) {
                Ok(read) => read,
                Err(error) => return Ok(Err(http::of_read(error, self.options))),
            };
            if read == 0 {
                break;
            }
            if done == 0
                && let Some(wrong) = check::wrong_start(
                    &self.file.name,
                    &buffer[..read.min(START_BYTES)],
                    answer.content_type.as_deref(),
                )
            {
                return Ok(Err(Failure::Final(wrong)));
            }
            part.write_all(&buffer[..read]).map_err(DatasetError::io("write", &self.part))?;
            done += read as u64;
            self.transferred += read as u64;
            self.furthest = self.furthest.max(done);
            if meter.due() {
                on(Event::Progress { path: &self.path, done, total, bytes_per_sec: meter.rate(done) });
            }
            if meter.stalled(done, self.options.timeout) {
                return Ok(Err(http::stalled(self.options)));
            }
        }
        on(Event::Progress { path: &self.path, done, total, bytes_per_sec: meter.rate(done) });
        let end_is_sure = answer.total.is_some() || self.file.crop_rows.is_some();
        Ok(match total {
            Some(total)
                if !end_is_sure && done == total && answer.body.read(&mut [0]).is_ok_and(|more| more > 0) =>
            {
                Err(Failure::Final(format!("the server's file has more than the right {total} bytes")))
            }
            Some(total) if done < total => {
                Err(Failure::Passing(format!("the connection ended at byte {done} of {total}"), None))
            }
            _ if done == 0 => Err(Failure::Final("the file is empty".to_owned())),
            _ => Ok(()),
        })
    }

    fn part_of_path(&self) -> PathBuf {
        self.dir.join(format!("{}.part.json", self.file.name))
    }

    fn part_of(&self) -> Option<PartOf> {
        serde_json::from_slice(&fs::read(self.part_of_path()).ok()?).ok()
    }

    fn save_part_of(&self, of: &PartOf) -> Result<(), DatasetError> {
        let path = self.part_of_path();
        let text = serde_json::to_vec(of).map_err(|error| DatasetError::invalid(&path, error.to_string()))?;
        fs::write(&path, text).map_err(DatasetError::io("write", &path))
    }

    /// Empties the `.part` file; it stays open and locked.
    fn drop_part(&self, part: &File) -> Result<(), DatasetError> {
        part.set_len(0).map_err(DatasetError::io("write", &self.part))?;
        remove_if_there(&self.part_of_path())
    }
}

/// Rate, and when to show or to give up.
struct Meter {
    start: Instant,
    from: u64,
    shown: Instant,
    window: Instant,
    window_from: u64,
}

impl Meter {
    fn new(from: u64) -> Self {
        let now = Instant::now();
        Meter { start: now, from, shown: now, window: now, window_from: from }
    }

    fn rate(&self, done: u64) -> f64 {
        (done - self.from) as f64 / self.start.elapsed().as_secs_f64().max(1e-6)
    }

    fn due(&mut self) -> bool {
        let due = self.shown.elapsed() >= Duration::from_millis(100);
        if due {
            self.shown = Instant::now();
        }
        due
    }

    fn stalled(&mut self, done: u64, limit: Duration) -> bool {
        if done - self.window_from >= STALL_BYTES {
            (self.window, self.window_from) = (Instant::now(), done);
        }
        self.window.elapsed() > limit
    }
}

/// Opens or creates the `.part` file and locks it, so that two processes never write one file.
fn open_part(path: &Path) -> Result<File, DatasetError> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(DatasetError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            Err(DatasetError::invalid(path, "another process is fetching this file; wait for it or end it"))
        }
        Err(fs::TryLockError::Error(error)) => Err(DatasetError::io("lock", path)(error)),
    }
}

/// Reads until `least` bytes are there or the end is.
fn read_some(body: &mut dyn Read, buffer: &mut [u8], least: usize) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < least.min(buffer.len()) {
        match body.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn size_of(path: &Path) -> Result<u64, DatasetError> {
    Ok(fs::metadata(path).map_err(DatasetError::io("read", path))?.len())
}

fn remove_if_there(path: &Path) -> Result<(), DatasetError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(DatasetError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
