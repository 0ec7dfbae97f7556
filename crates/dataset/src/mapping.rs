//! Files mapped into memory: read by the kernel when touched, never copied.

use crate::DatasetError;
use memmap2::Mmap;
use std::{fs::File, path::Path, sync::Arc};
use types::ByteStore;

/// A whole file, read-only.
pub(crate) struct Mapped(Option<Mmap>);

impl Mapped {
    /// Maps `path`; an empty file gives no bytes.
    pub(crate) fn open(path: &Path) -> Result<Arc<Mapped>, DatasetError> {
        let file = File::open(path).map_err(DatasetError::io("open", path))?;
        let meta = file.metadata().map_err(DatasetError::io("read", path))?;
        if meta.is_dir() {
            return Err(DatasetError::invalid(path, "this is a directory, a file was expected"));
        }
        if meta.len() == 0 {
            return Ok(Arc::new(Mapped(None)));
        }
        #[expect(unsafe_code, reason = "mapping a file is the point of this module")]
        // SAFETY: the mapping is private to this process and never written. A file that another
        // process shortens meanwhile ends this process with SIGBUS, as with every mapped file;
        // data sets are not changed while they are measured.
        let map = unsafe { Mmap::map(&file) }.map_err(DatasetError::io("map", path))?;
        Ok(Arc::new(Mapped(Some(map))))
    }
}

impl ByteStore for Mapped {
    fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
