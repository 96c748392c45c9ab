//! Creates, replaces and locks the file to which a trace is written.
//!
//! A new file is written under its own name from the first byte, so that a kill leaves a readable,
//! cut recording where the user expects it. A new file that replaces an old file is written beside
//! it as `NAME.PID.part`, and renamed over it at the first commit. Until then, the old recording is
//! untouched, and a kill leaves both files. Readers that mapped the old file keep it.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Result, TraceError};

/// The action to take if a file with the new file's name already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The existing file stays, and the new file is refused.
    Kept,
    /// The new file replaces the existing file.
    Replaced,
}

/// A locked file, which may still be beside the file that it will replace.
#[derive(Debug)]
pub(crate) struct LockedFile {
    pub file: File,
    /// The file's current path.
    pub path: PathBuf,
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    target: PathBuf,
    /// The old file. Its lock keeps other writers away until the rename.
    replaced: File,
}

impl LockedFile {
    /// Creates a file. If there is already a file at the path, `existing` decides. The call fails,
    /// or it creates a file beside the old file, to replace the old file later.
    pub fn create(path: &Path, existing: Existing) -> Result<LockedFile> {
        match create_new(path) {
            Ok(file) => {
                lock(&file)?;
                return Ok(LockedFile {
                    file,
                    path: path.to_owned(),
                    pending: None,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(TraceError::io("create the trace file")(error)),
        }
        // Replace the target of a symbolic link, not the link.
        let target = fs::canonicalize(path).map_err(TraceError::io("find the file to replace"))?;
        let replaced = open_regular(&target, OpenOptions::new().read(true))?;
        if existing == Existing::Kept {
            return Err(TraceError::Exists);
        }
        lock_at(&replaced, &target)?;
        let path = part_path(&target);
        let file = create_new(&path).map_err(TraceError::io("create a file beside the old one"))?;
        lock(&file)?;
        Ok(LockedFile {
            file,
            path,
            pending: Some(Pending { target, replaced }),
        })
    }

    /// Opens and locks an existing file for appending.
    pub fn existing(path: &Path) -> Result<LockedFile> {
        let file = open_regular(path, OpenOptions::new().read(true).write(true))?;
        lock_at(&file, path)?;
        Ok(LockedFile {
            file,
            path: path.to_owned(),
            pending: None,
        })
    }

    /// Moves a complete file over the file that it replaces, if there is one. If another process
    /// has put a file there in the meantime, that file stays.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`]. Also returns [`TraceError::Replaced`] or [`TraceError::Moved`],
    /// and then nothing is lost.
    pub fn settle(&mut self) -> Result<()> {
        let Some(pending) = &self.pending else {
            return match is_at(&self.file, &self.path) {
                Ok(true) => Ok(()),
                _ => Err(self.keep()?),
            };
        };
        if let Ok(false) = is_at(&pending.replaced, &pending.target) {
            return Err(TraceError::Replaced {
                path: pending.target.clone(),
                kept: self.path.clone(),
            });
        }
        fs::rename(&self.path, &pending.target)
            .map_err(TraceError::io("replace the old trace file"))?;
        self.path.clone_from(&pending.target);
        self.pending = None;
        Ok(())
    }

    /// Keeps a complete file that is no longer at its path, and returns the error to report.
    fn keep(&mut self) -> Result<TraceError> {
        let path = self.path.clone();
        let links = links(&self.file).map_err(TraceError::io("examine the trace file"))?;
        if links > 0 {
            return Ok(TraceError::Moved { path });
        }
        let kept = part_path(&path);
        let mut copied = || {
            let mut copy = create_new(&kept)?;
            self.file.seek(SeekFrom::Start(0))?;
            io::copy(&mut self.file, &mut copy)?;
            copy.sync_data()
        };
        copied().map_err(TraceError::io("copy the trace file, which was replaced,"))?;
        Ok(TraceError::Replaced { path, kept })
    }
}

/// Opens a regular file. Checks the type first, because opening a pipe would wait for its other
/// end.
pub(crate) fn open_regular(path: &Path, options: &OpenOptions) -> Result<File> {
    const ACTION: &str = "open the trace file";
    if !fs::metadata(path)
        .map_err(TraceError::io(ACTION))?
        .is_file()
    {
        return Err(TraceError::NotAFile);
    }
    options.open(path).map_err(TraceError::io(ACTION))
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
}

/// Returns a path beside the target at which there is no file.
fn part_path(target: &Path) -> PathBuf {
    let name = |attempt: u32| {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        if attempt > 0 {
            name.push(format!("-{attempt}"));
        }
        name.push(".part");
        PathBuf::from(name)
    };
    let mut attempt = 0;
    while name(attempt).exists() {
        attempt += 1;
    }
    name(attempt)
}

/// The number of attempts to lock, within a tenth of a second. [`writer`] holds the lock briefly.
/// So does a child process that another thread starts, until the child executes its program.
const TRIES: u32 = 10;

fn lock(file: &File) -> Result<()> {
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if attempt < TRIES => {
                std::thread::sleep(Duration::from_millis(2 * u64::from(attempt)));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(TraceError::BeingWritten(Writer::of(file)));
            }
            Err(TryLockError::Error(error)) => {
                return Err(TraceError::io("lock the trace file")(error));
            }
        }
    }
    Ok(())
}

/// The process that is writing a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The process id, where the system provides it.
    pub process: Option<u32>,
}

/// This text is shown after "another process".
impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, " ({process})"),
            None => Ok(()),
        }
    }
}

impl Writer {
    /// Returns the process that holds a file's lock.
    fn of(file: &File) -> Writer {
        Writer {
            process: holder(file),
        }
    }
}

/// Returns the process that is writing a file, or `None` if there is none.
///
/// # Errors
/// Returns [`TraceError::Io`] or [`TraceError::NotAFile`].
pub fn writer(path: &Path) -> Result<Option<Writer>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    match file.try_lock_shared() {
        // The lock is released at once, when the file is closed.
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(Writer::of(&file))),
        Err(TryLockError::Error(error)) => {
            Err(TraceError::io("examine the lock of the trace file")(error))
        }
    }
}

/// Returns the process that holds the lock of a file, from the system's list of all locks.
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // 1: FLOCK  ADVISORY  WRITE 9575 fe:00:10272773 0 EOF
    let mut holders = locks.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let [kind, _, access, process, place] = [(); 5].map(|()| words.next());
        let found = place?.rsplit(':').next()? == inode;
        (found && kind? == "FLOCK" && access? == "WRITE").then(|| process?.parse().ok())?
    });
    // A lock may be listed twice if other locks change meanwhile. If files on two devices share a
    // number, the holder is unknown.
    let holder = holders.next()?;
    holders.all(|other| other == holder).then_some(holder)
}

#[cfg(not(target_os = "linux"))]
fn holder(_file: &File) -> Option<u32> {
    None
}

/// Locks a file that was opened by its path, and checks that it is still there, because another
/// writer may have replaced it in the meantime.
fn lock_at(file: &File, path: &Path) -> Result<()> {
    lock(file)?;
    if is_at(file, path).map_err(TraceError::io("examine the locked trace file"))? {
        Ok(())
    } else {
        Err(TraceError::BeingWritten(Writer { process: None }))
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    Identity::of(file)?.is_at(path)
}

/// The identity of an open file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

#[cfg(unix)]
impl Identity {
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }

    /// Whether a path leads to this file.
    pub fn is_at(self, path: &Path) -> io::Result<bool> {
        Ok(self == Self::from(&fs::metadata(path)?))
    }
}

#[cfg(unix)]
impl From<&fs::Metadata> for Identity {
    fn from(data: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: data.dev(),
            inode: data.ino(),
        }
    }
}

/// Returns the number of hard links to a file.
#[cfg(unix)]
fn links(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink())
}

#[cfg(not(unix))]
fn links(_file: &File) -> io::Result<u64> {
    Ok(1)
}

/// On other systems, an open file cannot be replaced.
#[cfg(not(unix))]
impl Identity {
    pub fn of(_file: &File) -> io::Result<Self> {
        Ok(Self {
            device: 0,
            inode: 0,
        })
    }

    pub fn is_at(self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// After this process opens the file and before it locks it, another writer may rename its own
    /// file over it.
    #[test]
    fn a_file_that_was_replaced_meanwhile_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::write(&other, "new").unwrap();
        let file = open_regular(&path, OpenOptions::new().read(true)).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(matches!(
            lock_at(&file, &path),
            Err(TraceError::BeingWritten(Writer { process: None }))
        ));
    }

    #[test]
    fn a_leftover_of_the_same_name_is_stepped_around() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.aft");
        let first = part_path(&target);
        fs::write(&first, "leftover").unwrap();
        let second = part_path(&target);
        assert_ne!(first, second);
        assert_eq!(second.extension().unwrap(), "part");
    }
}
