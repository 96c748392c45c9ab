//! Checks whether the recording is still the file that was opened.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that was opened.
pub(crate) struct Standing {
    at: PathBuf,
    device: u64,
    inode: u64,
    /// The number of bytes that may be mapped. They can be read safely only while the file is at
    /// least this long.
    length: u64,
}

impl Standing {
    /// Examines a file.
    ///
    /// # Errors
    /// If the file does not exist.
    pub fn of(at: &Path) -> std::io::Result<Self> {
        let data = fs::metadata(at)?;
        Ok(Self {
            at: at.to_owned(),
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
        })
    }

    fn is_same(&self, data: &Metadata) -> bool {
        (data.dev(), data.ino()) == (self.device, self.inode)
    }

    /// Returns why the file can no longer be queried, as one sentence, or `None` if it can be
    /// queried.
    pub fn trouble(&self) -> Option<String> {
        let name = self.at.display();
        match fs::metadata(&self.at) {
            Ok(data) if !self.is_same(&data) => Some(format!(
                "{name} was replaced by another file; end afterimage explore and start it again"
            )),
            Ok(data) if data.len() < self.length => Some(format!(
                "{name} was cut from {} to {} bytes; put the whole file back, or record again",
                self.length,
                data.len()
            )),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound => Some(format!(
                "{name} was removed; put it back where it was, or end afterimage explore"
            )),
            Err(error) => Some(format!("{name} cannot be read: {error}")),
        }
    }
}
