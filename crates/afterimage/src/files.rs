//! Opens programs and recordings as files, and explains why a file cannot be used.

use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage_program::{Module, SourceMap};
use afterimage_replay::Recording;
use afterimage_trace::{Kind as Section, LABEL, TraceError, TraceFile, Writer, writer};
use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::OFlags;

use crate::monitor::Monitor;
use crate::source::{parse_module, source_map, source_map_with};
use crate::sources::SourceFiles;
use crate::text::{pasted, sentence};

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The file contains no program that can be run.
    #[error("{0}")]
    NoProgram(String),
}

/// A loaded program: the path from which it was read, and the parsed module.
pub struct Loaded {
    /// The path of the program, or of the recording that contains it.
    pub path: PathBuf,
    /// The parsed module.
    pub module: Arc<Module>,
}

impl Deref for Loaded {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.module
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A recording.
    Recording,
    /// Not a recording, so possibly a program.
    Program,
}

/// Opens a file for reading. Refuses a pipe or a device.
///
/// # Errors
/// Returns an error if the path does not exist, is not a file, or cannot be read.
pub fn open(path: &Path) -> Result<std::fs::File> {
    // If the file is a pipe, do not wait for its writer.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut options = std::fs::File::options();
    let file = options.read(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(|e| {
        let text = format!("cannot open {}: {e}", path.display());
        match e.kind() {
            std::io::ErrorKind::NotFound => FileError::NotFound(text).into(),
            _ => anyhow!(text),
        }
    })?;
    let what = match file.metadata() {
        Ok(data) if data.is_dir() => "folder",
        Ok(data) if data.file_type().is_fifo() => "pipe",
        Ok(data) if !data.is_file() => "device",
        _ => return Ok(file),
    };
    bail!("{} is a {what}; give a file", path.display())
}

/// Returns the kind of a file. Its first bytes or its name identify a recording.
///
/// # Errors
/// Returns the same errors as [`open`].
pub fn kind(path: &Path) -> Result<Kind> {
    let mut start = Vec::with_capacity(LABEL.len());
    let read = open(path)?.take(LABEL.len() as u64).read_to_end(&mut start);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let by_name = path.extension().is_some_and(|e| e == "aft");
    Ok(if start == LABEL || by_name {
        Kind::Recording
    } else {
        Kind::Program
    })
}

/// Whether two paths refer to the same file.
pub fn are_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Reads a program, or the program in a recording.
///
/// # Errors
/// Returns the same errors as [`program`] and [`recording`].
pub fn program_of(path: &Path) -> Result<Loaded> {
    match kind(path)? {
        Kind::Program => program(path),
        Kind::Recording => recorded_program(path, &recording(path)?),
    }
}

/// The maximum size of a module in bytes. No engine accepts larger modules.
const LARGEST_PROGRAM: u64 = 1 << 30;

/// Reads a module in binary or text form.
///
/// # Errors
/// Returns the same errors as [`open`], or if the file is not a module.
pub fn program(path: &Path) -> Result<Loaded> {
    let mut bytes = Vec::new();
    open(path)?
        .take(LARGEST_PROGRAM + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > LARGEST_PROGRAM {
        let text = format!(
            "{}: larger than the maximum size of a program (1 GiB)",
            path.display()
        );
        return Err(FileError::NoProgram(text).into());
    }
    let cannot = |error: anyhow::Error| {
        FileError::NoProgram(sentence(&error.context(path.display().to_string())))
    };
    if bytes.starts_with(&LABEL) {
        let why = anyhow!("this is a recording; give a program");
        return Err(cannot(why).into());
    }
    let is_text = path.extension().is_some_and(|e| e == "wat" || e == "wast");
    let module = parse_module(bytes, is_text).map_err(cannot)?;
    Ok(Loaded {
        path: path.to_owned(),
        module: Arc::new(module),
    })
}

/// Opens a recording.
///
/// # Errors
/// Returns the same errors as [`open`], or if the file is not a recording or is damaged.
pub fn recording(path: &Path) -> Result<TraceFile> {
    open(path)?;
    TraceFile::open(path).map_err(|error| match error {
        TraceError::NotATrace => {
            let is_module = path.extension().is_some_and(|e| e == "wasm" || e == "wat");
            let module = if is_module {
                pasted(path)
            } else {
                "MODULE.wasm".into()
            };
            anyhow!(
                "{} is not a recording; make one with: afterimage record {module}",
                path.display(),
            )
        }
        error => anyhow::Error::new(error).context(path.display().to_string()),
    })
}

/// Returns the process that is recording into this file, if there is one. Ignores a process that
/// adds to a cut-off recording, because that process commits the recording first.
pub fn recorder(path: &Path, file: &TraceFile) -> Option<Writer> {
    match file.state() {
        Some(_) => None,
        None => writer(path).ok().flatten(),
    }
}

/// Refuses a recording that another process is still making: its end is unknown, and nothing may be
/// added to it.
///
/// # Errors
/// Returns an error if another process is still making the recording, or it cannot be opened.
pub fn ended(path: &Path) -> Result<()> {
    is_over(path, &recording(path)?)
}

/// Like [`ended`], for an open recording.
///
/// # Errors
/// Returns an error if another process is still making the recording.
pub fn is_over(path: &Path, file: &TraceFile) -> Result<()> {
    if let Some(recorder) = recorder(path, file) {
        bail!(
            "{}: the program is still being recorded by another process{recorder}; ask again \
             when it has ended, or see the part recorded so far with `afterimage trace`",
            path.display()
        );
    }
    Ok(())
}

/// Returns the program inside a recording.
///
/// # Errors
/// Returns an error if the recording contains no program, or is damaged.
pub fn recorded_program(path: &Path, file: &TraceFile) -> Result<Loaded> {
    let bytes = file.module().map_err(|error| match error {
        TraceError::Missing(Section::MODULE) | TraceError::Cut(Section::MODULE) if file.state().is_none() => anyhow!(
            "{}: the recording was cut off before it contained the program, so nothing is known \
             about the run; record the program again (if the disk was full, make room first)",
            path.display()
        ),
        error => anyhow::Error::new(error).context(path.display().to_string()),
    })?;
    let module =
        Module::parse(bytes).with_context(|| format!("the program in {}", path.display()))?;
    Ok(Loaded {
        path: path.to_owned(),
        module: Arc::new(module),
    })
}

impl Loaded {
    /// Returns the program of an open recording.
    pub fn of(recording: &Recording) -> Self {
        Self {
            path: recording.at().to_owned(),
            module: Arc::clone(recording.module()),
        }
    }

    /// Builds the source map of the code. The monitor receives warnings about unreadable debug
    /// information. Near-linear in the debug information.
    pub fn source_map(&self, monitor: &dyn Monitor) -> SourceMap<'_> {
        source_map(&self.path, &self.module, monitor)
    }

    /// Like [`source_map`](Self::source_map), but with the available sources.
    pub fn source_map_with(
        &self,
        monitor: &dyn Monitor,
        sources: Arc<SourceFiles>,
    ) -> SourceMap<'_> {
        source_map_with(&self.path, &self.module, monitor, sources)
    }
}
