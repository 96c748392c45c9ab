//! Reading programs and recordings.

use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage::parse_module;
use afterimage_program::{Module, SourceMap};
use afterimage_replay::Recording;
use afterimage_trace::{Kind as Section, TraceError, TraceFile, Writer, writer};
use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::OFlags;

use crate::exit::{Exit, Failed};
use crate::output::pasted;
use crate::progress::Terminal;

/// A program as it was given: its bytes, and what they mean.
pub(crate) struct Loaded {
    pub path: PathBuf,
    pub module: Arc<Module>,
}

impl Deref for Loaded {
    type Target = Module;

    fn deref(&self) -> &Module {
        &self.module
    }
}

/// What a file is.
pub(crate) enum Kind {
    Recording,
    Program,
}

const TRACE_LABEL: &[u8; 4] = b"\x89AFT";

fn failed(exit: Exit, error: anyhow::Error) -> anyhow::Error {
    Failed { exit, error }.into()
}

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> Result<std::fs::File> {
    // A pipe without a writer is not waited for.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut options = std::fs::File::options();
    let file = options.read(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(|e| {
        let exit = if e.kind() == std::io::ErrorKind::NotFound {
            Exit::NotFound
        } else {
            Exit::Failure
        };
        failed(exit, anyhow!("cannot open {}: {e}", path.display()))
    })?;
    let what = match file.metadata() {
        Ok(data) if data.is_dir() => "folder",
        Ok(data) if data.file_type().is_fifo() => "pipe",
        Ok(data) if !data.is_file() => "device",
        _ => return Ok(file),
    };
    Err(failed(
        Exit::Failure,
        anyhow!("{} is a {what}; a file is wanted here", path.display()),
    ))
}

/// Whether a file is a recording, by its first bytes.
pub(crate) fn kind(path: &Path) -> Result<Kind> {
    let mut start = Vec::with_capacity(TRACE_LABEL.len());
    let read = open(path)?
        .take(TRACE_LABEL.len() as u64)
        .read_to_end(&mut start);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let by_name = path.extension().is_some_and(|e| e == "aft");
    Ok(if start == TRACE_LABEL || by_name {
        Kind::Recording
    } else {
        Kind::Program
    })
}

/// No engine takes larger modules.
const LARGEST_PROGRAM: u64 = 1 << 30;

/// Reads a module, in binary or text form.
pub(crate) fn program(path: &Path) -> Result<Loaded> {
    let mut bytes = Vec::new();
    open(path)?
        .take(LARGEST_PROGRAM + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > LARGEST_PROGRAM {
        let error = anyhow!("{}: larger than a program can be (1 GiB)", path.display());
        return Err(failed(Exit::CannotRun, error));
    }
    let cannot =
        |error: anyhow::Error| failed(Exit::CannotRun, error.context(path.display().to_string()));
    if bytes.starts_with(TRACE_LABEL) {
        return Err(cannot(anyhow!(
            "this is a recording; a program is wanted here"
        )));
    }
    let is_text = path.extension().is_some_and(|e| e == "wat" || e == "wast");
    let module = parse_module(bytes, is_text).map_err(cannot)?;
    Ok(Loaded {
        path: path.to_owned(),
        module: Arc::new(module),
    })
}

/// Opens a recording.
pub(crate) fn recording(path: &Path) -> Result<TraceFile> {
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

/// Who records a file at this moment, if it is being recorded. Whoever adds something to a recording that was cut off commits that first.
pub(crate) fn recorder(path: &Path, file: &TraceFile) -> Option<Writer> {
    match file.state() {
        Some(_) => None,
        None => writer(path).ok().flatten(),
    }
}

/// Refuses a recording that goes on: its end is not known yet, and nobody else may add to it.
pub(crate) fn ended(path: &Path) -> Result<()> {
    is_over(path, &recording(path)?)
}

/// The same, of a recording that is open.
pub(crate) fn is_over(path: &Path, file: &TraceFile) -> Result<()> {
    if let Some(recorder) = recorder(path, file) {
        bail!(
            "{}: the program is still being recorded, by another process{recorder}; ask again when it has ended, or look at what is there with `afterimage trace`",
            path.display()
        );
    }
    Ok(())
}

/// The program inside a recording.
pub(crate) fn recorded_program(path: &Path, file: &TraceFile) -> Result<Loaded> {
    let bytes = file.module().map_err(|error| match error {
        TraceError::Missing(Section::MODULE) | TraceError::Cut(Section::MODULE) if file.state().is_none() => anyhow!(
            "{}: the recording was cut off before the program was in it, so nothing is known of the run; record the program again (if the disk was full, make room first)",
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
    /// The program of a recording that is open.
    pub(crate) fn of(recording: &Recording) -> Self {
        Self {
            path: recording.at().to_owned(),
            module: Arc::clone(recording.module()),
        }
    }

    /// Where the program's code comes from. Prints what part of the debug information cannot be read, once for a program.
    pub(crate) fn source_map(&self) -> SourceMap<'_> {
        source_map(&self.path, &self.module)
    }
}

/// Where the code of a module comes from, which `name` is to say. Prints what part of the debug information cannot be read, once for a name.
pub(crate) fn source_map<'a>(name: &Path, module: &'a Module) -> SourceMap<'a> {
    afterimage::source_map(name, module, &Terminal)
}
