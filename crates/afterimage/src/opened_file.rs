//! Detects that a recording's file was cut, replaced or removed while it is in use.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The file of an opened recording. A session maps the file, so reading beyond the end of a file
/// that was cut would kill the process.
#[derive(Debug)]
pub struct OpenedFile {
    at: PathBuf,
    device: u64,
    inode: u64,
    /// The greatest length that the file has had. All of these bytes may be mapped.
    length: AtomicU64,
}

impl OpenedFile {
    /// Examines a file.
    ///
    /// # Errors
    /// Returns an error if the file does not exist.
    pub fn of(at: &Path) -> io::Result<Self> {
        let data = fs::metadata(at)?;
        Ok(Self {
            at: at.to_owned(),
            device: data.dev(),
            inode: data.ino(),
            length: data.len().into(),
        })
    }

    fn is_same(&self, data: &Metadata) -> bool {
        (data.dev(), data.ino()) == (self.device, self.inode)
    }

    /// Returns how the file was cut, as one sentence, or `None` if it can be read. A file that was
    /// replaced or removed can be read: its mapping remains.
    pub fn cut(&self) -> Option<String> {
        let data = fs::metadata(&self.at).ok()?;
        if !self.is_same(&data) {
            return None;
        }
        let before = self.length.fetch_max(data.len(), Ordering::Relaxed);
        (data.len() < before).then(|| {
            format!(
                "{} was cut from {before} to {} bytes; put the whole file back, or record again",
                self.at.display(),
                data.len()
            )
        })
    }

    /// Returns why `command` can no longer answer questions about the file, as one sentence, or
    /// `None` if it can.
    pub fn trouble(&self, command: &str) -> Option<String> {
        let name = self.at.display();
        match fs::metadata(&self.at) {
            Ok(data) if !self.is_same(&data) => Some(format!(
                "{name} was replaced by another file; end {command} and start it again"
            )),
            Ok(_) => self.cut(),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(format!(
                "{name} was removed; put it back where it was, or end {command}"
            )),
            Err(error) => Some(format!("{name} cannot be read: {error}")),
        }
    }
}
