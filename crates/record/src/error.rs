//! Defines the errors of recording and re-executing.

use afterimage_ids::grouped;
use afterimage_machine::MachineError;
use afterimage_trace::TraceError;

/// The reason why a program could not be recorded or re-executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The program imports a function that is not a WASI preview 1 function, and that the embedding
    /// application does not offer.
    #[error(
        "the program imports {module:?} {name:?}, which is not a WASI preview 1 function: afterimage runs WASI preview 1 programs"
    )]
    UnknownImport {
        /// The import's module name.
        module: String,
        /// The import's field name.
        name: String,
    },
    /// An import has the name of a WASI function but a different type.
    #[error(
        "the program imports WASI function {name:?} with the type {found}, but it has the type {expected}"
    )]
    ImportType {
        /// The name of the WASI function.
        name: String,
        /// The type that the program declares for the function.
        found: String,
        /// The type that the function has in WASI.
        expected: String,
    },
    /// The program imports WASI functions but does not export the memory "memory", which those
    /// functions access.
    #[error(
        "the program imports WASI functions but exports no memory named \"memory\" for them to work on"
    )]
    NoMemory,
    /// The module starts with larger memories or tables than can be recorded.
    #[error("the program's {what} begin with {found} {unit}, but at most {most} can be recorded")]
    TooLarge {
        /// The kind of object that is too large: memories or tables.
        what: &'static str,
        /// The unit of the sizes: bytes or elements.
        unit: &'static str,
        /// The initial size in the module.
        found: u64,
        /// The largest size that can be recorded.
        most: u64,
    },
    /// The function to run does not exist.
    #[error("the program exports no function {wanted:?}{}", exports_hint(.exports))]
    NoExport {
        /// The name of the wanted function.
        wanted: String,
        /// The names of the exported functions.
        exports: Vec<String>,
    },
    /// The arguments for `--invoke` do not match the function.
    #[error("{export} takes {expected}, but {given}")]
    Arguments {
        /// The name of the exported function.
        export: String,
        /// A description of the function's parameters.
        expected: String,
        /// A description of what is wrong with the given arguments.
        given: String,
    },
    /// A granted folder or a file for standard input cannot be opened.
    #[error("cannot open {path}: {message}")]
    Open {
        /// The path that cannot be opened.
        path: String,
        /// The reason why it cannot be opened.
        message: String,
    },
    /// The engine cannot be set up.
    #[error("the engine cannot be set up: {0}")]
    Engine(String),
    /// The engine cannot compile the module.
    #[error("the engine cannot compile the module: {0}")]
    Compile(String),
    /// The module cannot be instantiated.
    #[error("the module cannot be instantiated: {0}")]
    Instantiate(String),
    /// The thread for the guest cannot be started.
    #[error("cannot start a thread for the guest: {0}")]
    Thread(#[source] std::io::Error),
    /// The trace file cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The module does not parse.
    #[error(transparent)]
    Parse(#[from] afterimage_program::ParseError),
    /// The module cannot be instrumented.
    #[error(transparent)]
    Rewrite(#[from] afterimage_rewrite::RewriteError),
    /// Counters cannot be placed.
    #[error(transparent)]
    Plan(#[from] afterimage_placement::PlanError),
    /// The counters do not determine the counts.
    #[error("the counters do not agree with each other, so no count can be trusted: {0}")]
    Solve(#[from] afterimage_placement::SolveError),
    /// The recorded bits do not describe a path of the program.
    #[error("the recorded path is not a path of the program: {0}")]
    Regenerate(#[from] afterimage_paths::RegenerateError),
    /// A chunk of path words is malformed.
    #[error("the path that the run wrote is damaged")]
    Words,
    /// The path words lead to a different moment than the file records.
    #[error(
        "the path that the run wrote should lead to t={}, but it leads to t={} or to other \
         activations",
        grouped(*said),
        grouped(*found)
    )]
    Moment {
        /// The time according to the file.
        said: u64,
        /// The time that follows from the preceding words.
        found: u64,
    },
    /// The guest's path could not be passed to the consumer.
    #[error(transparent)]
    HandOver(#[from] crate::whole_path::HandOverError),
    /// A block's own counter disagrees with the counts of edges.
    #[error(
        "function {function}, block {block}: its own counter shows {}, but {} follows from the other counters",
        grouped(*measured),
        grouped(*derived)
    )]
    BlockDiffers {
        /// The function's index.
        function: u32,
        /// The number of the block in the function.
        block: u32,
        /// The value of the block's own counter.
        measured: u64,
        /// The value derived from the counts of edges.
        derived: u64,
    },
    /// The probes' memory is smaller than its layout.
    #[error("the memory of the counters is too small for them")]
    NoCounters,
    /// More than one lens was requested for a single live run.
    #[error("only one lens can be built during the run")]
    OneLens,
    /// A re-execution behaved differently from the recording.
    #[error("the re-execution differs from the recording at event {}: {what}", grouped(*event))]
    Diverged {
        /// The number of the event, from 0.
        event: u64,
        /// A description of the difference.
        what: String,
    },
    /// The stop clock at the end differs from the recording.
    #[error(
        "the stop clock shows {} at the end of the re-execution, but the recording says {}",
        grouped(*found),
        grouped(*said)
    )]
    Clock {
        /// The value in the recording.
        said: u64,
        /// The value in the re-execution.
        found: u64,
    },
    /// The time limit expired before the program was compiled.
    #[error("compilation took longer than the time limit, so nothing ran; give a longer --timeout")]
    CompileTimeout,
    /// A re-execution was stopped from outside, or a run was stopped before it began.
    #[error("it was interrupted")]
    Interrupted,
    /// The recording was cut off before its end was written.
    #[error(
        "the recording was cut off: how the run ended is not in the file; record the program again"
    )]
    Cut,
    /// The run was stopped from outside and recorded without a stop clock, so the moment of the
    /// stop cannot be found again.
    #[error(
        "the run was stopped from outside ({0}) and recorded without a stop clock, so the moment cannot be found again; record with the clock, or with --lens counts"
    )]
    NoClock(String),
    /// Snapshots of this program are impossible.
    #[error("no snapshots can be made of a program that {0}")]
    NoSnapshots(&'static str),
    /// A snapshot does not fit the program.
    #[error("a snapshot of the re-execution does not fit the program: {0}")]
    Snapshot(#[from] MachineError),
    /// The place where a run ended cannot be found in the program.
    #[error("the engine reports that the guest is at {0}, which is not a place in the program")]
    UnknownPlace(String),
    /// The engine reports no stack at the guest's end, because memory ran out.
    #[error("not enough memory to find where the guest stopped; give this process more memory")]
    NoBacktrace,
    /// The same stack overflow cannot be found again.
    #[error("the stack overflow of the recording does not happen again at the same place")]
    OverflowNotFound,
}

fn exports_hint(exports: &[String]) -> String {
    match exports {
        [] => "; it exports no function at all".to_owned(),
        names => format!("; name one of these with --invoke: {}", names.join(", ")),
    }
}

impl RecordError {
    /// Whether the program or its exports are at fault, rather than this machine or the recording.
    pub fn is_of_program(&self) -> bool {
        matches!(
            self,
            Self::UnknownImport { .. }
                | Self::ImportType { .. }
                | Self::NoMemory
                | Self::NoExport { .. }
                | Self::Rewrite(_)
                | Self::Compile(_)
                | Self::Instantiate(_)
        )
    }

    pub(crate) fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }

    pub(crate) fn compile(error: wasmtime::Error) -> Self {
        Self::Compile(format!("{error:#}"))
    }

    pub(crate) fn instantiate(error: wasmtime::Error) -> Self {
        Self::Instantiate(format!("{error:#}"))
    }
}
