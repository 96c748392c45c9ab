//! Writes reports to files and streams. A file is written completely or not at all.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Read as _, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use afterimage_present::{Content, Visible};
use afterimage_program::{BEGINNING, is_module};
use anyhow::{Context, Error, Result, bail};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// The files that a new file may replace. Nothing may replace a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// Any file except a module.
    Files,
    /// Any file, including a module.
    Modules,
}

/// Writes a report through a buffer.
///
/// # Errors
/// Returns an error if writing fails. This error names the destination, and takes precedence over
/// an error of the report itself.
pub fn fill<W: Write>(
    to: W,
    content: Content,
    report: impl FnOnce(&mut dyn Write) -> Result<()>,
    place: impl FnOnce() -> String,
) -> Result<W> {
    let watched = Watched { to, failure: None };
    let mut writer = BufWriter::new(Visible::new(watched, content));
    let result = report(&mut writer).and_then(|()| {
        writer.flush()?;
        writer.get_mut().finish()?;
        Ok(writer.flush()?)
    });
    // Buffered data is not written again after a failure.
    let Watched { to, failure } = writer.into_parts().0.into_inner();
    match failure {
        Some(failure) => Err(Error::new(failure).context(place())),
        None => result.map(|()| to),
    }
}

/// Remembers the first failure of a writer.
struct Watched<W> {
    to: W,
    failure: Option<io::Error>,
}

impl<W: Write> Watched<W> {
    fn watch<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != ErrorKind::Interrupted
            && self.failure.is_none()
        {
            let copy = error.raw_os_error().map(io::Error::from_raw_os_error);
            self.failure = Some(copy.unwrap_or_else(|| error.kind().into()));
        }
        result
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.to.write(bytes);
        self.watch(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.to.flush();
        self.watch(result)
    }
}

/// Writes a report to a file. The new file appears only when it is complete. An existing file stays
/// until then.
///
/// # Errors
/// Returns an error if the file cannot be written, or must not be replaced.
pub fn to_file(
    path: &Path,
    replaces: Replaces,
    content: Content,
    report: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    match std::fs::metadata(path) {
        Ok(data) if data.is_dir() => bail!("{} is a folder; name a file with -o", path.display()),
        // A pipe or a device cannot be replaced.
        Ok(data) if !data.is_file() => {
            let device = device(path).with_context(cannot)?;
            return fill(device, content, report, cannot).map(drop);
        }
        _ => {}
    }
    let first = beginning(path);
    if first.starts_with(&afterimage_trace::LABEL) {
        bail!(
            "{} is a recording, which no report may replace; name another file with -o",
            path.display()
        );
    }
    if replaces == Replaces::Files && is_module(&first) {
        bail!(
            "{} is a module, which no report may replace; name another file with -o",
            path.display()
        );
    }
    // Replaces the target of a symbolic link, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !std::fs::metadata(folder).with_context(cannot)?.is_dir() {
        bail!("{}: {} is not a folder", cannot(), folder.display());
    }
    let file = tempfile::Builder::new()
        .prefix(".afterimage-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(reason)
        .with_context(cannot)?;
    fill(file.as_file(), content, report, cannot)?;
    file.persist(&target)
        .map_err(|e| e.error)
        .with_context(cannot)?;
    Ok(())
}

/// Opens a pipe or a device for writing. Does not wait for a reader of a pipe.
fn device(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let opened = File::options()
        .write(true)
        .custom_flags(nonblocking)
        .open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::other("nobody reads from this pipe"),
        _ => error,
    })?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Returns the beginning of a file, if it exists.
fn beginning(path: &Path) -> Vec<u8> {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut first));
    // If the old file is unreadable, a later step fails, and the file is not replaced.
    read.map_or_else(|_| Vec::new(), |_| first)
}

/// Returns the system's reason, without the name of the temporary file, which would mean nothing to
/// users.
fn reason(error: io::Error) -> io::Error {
    io::Error::from(error.kind())
}
