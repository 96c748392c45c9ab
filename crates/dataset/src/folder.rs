//! Manages the folder of a data set: its description, and the assignment of parts to processes.
//!
//! A part is a window, or the tables about the whole run. It is written under a temporary name and
//! then renamed, so a part with its final name is complete. While a process writes a part, it holds
//! a lock. The system releases the lock when the process ends, so another process can write the
//! part if this one is killed. The file [`INCOMPLETE`] exists until all parts exist.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use afterimage::Session;
use anyhow::{Error, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::schema::{Table, VERSION};
use crate::windows::Windows;

/// The file that identifies the folder as a data set and describes it.
const MANIFEST: &str = "afterimage.json";
/// The file that exists while the folder lacks a part.
pub(crate) const INCOMPLETE: &str = "INCOMPLETE";
/// The file with the views for DuckDB.
const VIEWS: &str = "views.sql";
/// The folder for the tables about the whole run while they are being written.
const WHOLE: &str = "whole";

/// The description of the data set in its folder.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    format: String,
    version: u32,
    recording: Recorded,
    windows: Windows,
    tables: Vec<String>,
}

/// The recording that the data set describes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    program: String,
    created_unix: u64,
    module_sha256: String,
    log_events: u64,
}

/// A part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The tables about the whole run.
    Whole,
    /// The tables of a window.
    Window(u64),
}

/// The folder of a data set.
pub(crate) struct Folder {
    at: PathBuf,
}

/// The exclusive right to write a part.
pub(crate) struct Claim<'f> {
    folder: &'f Folder,
    part: Part,
    /// The path to which the part is written.
    pub at: PathBuf,
    /// The lock file. The lock is held while it is open.
    _lock: File,
}

/// Returns the file of a table in a folder.
pub(crate) fn file(folder: &Path, table: &Table) -> PathBuf {
    folder.join(format!("{}.parquet", table.name))
}

/// Returns the name of a window's folder.
pub(crate) fn window_name(window: u64) -> String {
    format!("window={window:06}")
}

impl Folder {
    /// Creates the folder of a data set, or continues in an existing folder of the same data set.
    pub fn open(
        at: &Path,
        session: &Session,
        windows: Windows,
        tables: &[&'static Table],
    ) -> Result<Self> {
        let folder = Self { at: at.to_owned() };
        let manifest = manifest(session, windows, tables)?;
        let text = serde_json::to_string_pretty(&manifest)? + "\n";
        folder.named(folder.begin(&text, &crate::views::text(tables)))?;
        let known = folder.named(fs::read_to_string(at.join(MANIFEST)))?;
        let known: Option<Manifest> = serde_json::from_str(&known).ok();
        let shown = at.display();
        match known {
            Some(known) if known == manifest => Ok(folder),
            Some(known) if known.format == FORMAT && known.recording == manifest.recording => {
                bail!(
                    "{shown}: this data set has different tables or windows; choose another folder, or continue it with --tables {} --window-blocks {}",
                    known.tables.join(","),
                    known.windows.blocks()
                )
            }
            Some(known) if known.format == FORMAT => {
                bail!(
                    "{shown}: this data set describes a different recording; choose another folder"
                )
            }
            _ => bail!("{shown}: {MANIFEST} does not describe a data set; choose another folder"),
        }
    }

    /// Creates the folder and its description, if it is new.
    fn begin(&self, manifest: &str, views: &str) -> io::Result<()> {
        fs::create_dir_all(&self.at)?;
        if !self.at.join(MANIFEST).exists() {
            self.refuse_others()?;
            let incomplete = "Parts of this data set have not been written yet. To write them, run the same command again.\n";
            fs::write(self.at.join(INCOMPLETE), incomplete)?;
            self.put(MANIFEST, manifest)?;
        }
        if self.at.join(VIEWS).exists() {
            Ok(())
        } else {
            self.put(VIEWS, views)
        }
    }

    /// Refuses a folder that contains files, except those of a data set that is being created.
    fn refuse_others(&self) -> io::Result<()> {
        let others = fs::read_dir(&self.at)?.map(|entry| Ok(entry?.file_name()));
        for name in others.collect::<io::Result<Vec<_>>>()? {
            let name = name.to_string_lossy();
            // Only these files exist while a process starts, or after it was killed while starting.
            let is_own = name == INCOMPLETE || name.starts_with(".new-");
            if !is_own && !self.at.join(MANIFEST).exists() {
                let foreign = format!(
                    "the folder contains {name}, which is not part of a data set; choose a new or empty folder"
                );
                return Err(io::Error::other(foreign));
            }
        }
        Ok(())
    }

    /// Writes a small file atomically.
    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        let writer = (std::process::id(), std::thread::current().id());
        let new = self.at.join(format!(".new-{name}-{writer:?}"));
        fs::write(&new, text)?;
        fs::rename(new, self.at.join(name))
    }

    /// Whether a part exists.
    pub fn has(&self, part: Part) -> bool {
        match part {
            // This table is moved to its place last.
            Part::Whole => self.at.join("run.parquet").exists(),
            Part::Window(window) => self.at.join(window_name(window)).exists(),
        }
    }

    /// Claims the right to write a part. Returns `None` if the part exists or another process is
    /// writing it.
    pub fn claim(&self, part: Part) -> Result<Option<Claim<'_>>> {
        self.named(self.claimed(part))
    }

    fn claimed(&self, part: Part) -> io::Result<Option<Claim<'_>>> {
        if self.has(part) {
            return Ok(None);
        }
        let name = match part {
            Part::Whole => WHOLE.to_owned(),
            Part::Window(window) => window_name(window).replace('=', "-"),
        };
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.at.join(format!(".lock-{name}")))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another process may have finished the part in the meantime.
        if self.has(part) {
            return Ok(None);
        }
        let at = self.at.join(format!(".part-{name}"));
        remove(&at)?;
        fs::create_dir(&at)?;
        Ok(Some(Claim {
            folder: self,
            part,
            at,
            _lock: lock,
        }))
    }

    /// Returns the missing windows.
    pub fn missing(&self, windows: Windows) -> Vec<u64> {
        let all = 0..windows.count();
        all.filter(|&window| !self.has(Part::Window(window)))
            .collect()
    }

    /// Removes [`INCOMPLETE`] and the lock files if all parts exist. Returns whether all parts
    /// exist.
    pub fn complete(&self, windows: Windows) -> Result<bool> {
        if !self.has(Part::Whole) || !self.missing(windows).is_empty() {
            return Ok(false);
        }
        let clean = || -> io::Result<()> {
            for entry in fs::read_dir(&self.at)? {
                let name = entry?.file_name();
                if name.to_string_lossy().starts_with(".lock-") {
                    gone(fs::remove_file(self.at.join(name)))?;
                }
            }
            gone(fs::remove_file(self.at.join(INCOMPLETE)))
        };
        self.named(clean())?;
        Ok(true)
    }

    fn named<T>(&self, done: io::Result<T>) -> Result<T> {
        done.map_err(|error| unwritten(&self.at, &Error::new(error)))
    }

    /// Describes an error that occurred while a part was written.
    pub fn failed(&self, error: &Error) -> Error {
        unwritten(&self.at, error)
    }
}

/// The name of the format, as stated in the manifest.
const FORMAT: &str = "afterimage data set";

fn manifest(session: &Session, windows: Windows, tables: &[&'static Table]) -> Result<Manifest> {
    let meta = session.file().meta()?;
    let end = session.file().end()?;
    let digest = Vec::from_iter(meta.module_sha256.iter().map(|byte| format!("{byte:02x}")));
    Ok(Manifest {
        format: FORMAT.to_owned(),
        version: VERSION,
        recording: Recorded {
            program: meta.program_name,
            created_unix: meta.created_unix,
            module_sha256: digest.concat(),
            log_events: end.map_or(0, |end| end.events),
        },
        windows,
        tables: tables.iter().map(|table| table.name.to_owned()).collect(),
    })
}

/// Describes a failure to write, in one sentence.
fn unwritten(at: &Path, error: &Error) -> Error {
    let shown = at.display();
    let mut causes = error.chain();
    let system = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    // The Parquet writer may provide only the text of the system's error.
    let is_full = system.map(io::Error::kind) == Some(ErrorKind::StorageFull)
        || format!("{error:#}").contains("No space left on device");
    match system {
        _ if is_full => anyhow!(
            "{shown}: the disk is full; complete windows stay, and the same command writes the rest when there is room"
        ),
        Some(system) => anyhow!("{shown}: {system}"),
        None => anyhow!("{shown}: {error:#}"),
    }
}

/// Removes a folder, if it exists.
fn remove(at: &Path) -> io::Result<()> {
    gone(fs::remove_dir_all(at))
}

fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Claim<'_> {
    /// Gives the part its final name.
    pub fn keep(self) -> Result<()> {
        self.folder.named(self.kept())
    }

    fn kept(&self) -> io::Result<()> {
        let root = &self.folder.at;
        if let Part::Window(window) = self.part {
            return fs::rename(&self.at, root.join(window_name(window)));
        }
        // The table of the run is moved last. If it exists, so do the other tables.
        for table in crate::schema::WHOLE.iter().rev() {
            let at = file(&self.at, table);
            fs::rename(at, file(root, table))?;
        }
        fs::remove_dir(&self.at)
    }

    /// Removes the written files of the part.
    pub fn drop_part(self) {
        // Any file that remains is removed when the part is begun again.
        let _ = remove(&self.at);
    }
}

#[cfg(test)]
mod tests {
    use parquet::errors::ParquetError;

    use super::*;

    #[test]
    fn a_full_disk_is_named_whoever_notices_it() {
        let full = || io::Error::from_raw_os_error(28);
        let hidden = ParquetError::General(full().to_string());
        for error in [
            Error::new(full()),
            Error::new(hidden),
            Error::new(ParquetError::from(full())),
        ] {
            let said = unwritten(Path::new("tables"), &error).to_string();
            assert_eq!(
                said,
                "tables: the disk is full; complete windows stay, and the same command writes the rest when there is room"
            );
        }
        let other = Error::new(io::Error::from(ErrorKind::PermissionDenied));
        let said = unwritten(Path::new("tables"), &other).to_string();
        assert_eq!(said, "tables: permission denied");
    }
}
