//! What can go wrong while recording and re-executing.

use afterimage_machine::MachineError;
use afterimage_trace::TraceError;

/// Why a program could not be recorded or re-executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The program needs a function that there is none for.
    #[error(
        "the program imports {module:?} {name:?}, which is not a WASI preview 1 function: afterimage runs WASI preview 1 programs"
    )]
    UnknownImport {
        /// The import's module name.
        module: String,
        /// The import's field name.
        name: String,
    },
    /// An import has the name of a WASI function but another type.
    #[error(
        "the program imports WASI function {name:?} with the type {found}, but it has the type {expected}"
    )]
    ImportType {
        /// The function.
        name: String,
        /// The type that the program expects.
        found: String,
        /// The type that it has.
        expected: String,
    },
    /// The program calls WASI functions, which work on the memory exported as "memory", and exports none.
    #[error(
        "the program imports WASI functions but exports no memory named \"memory\" for them to work on"
    )]
    NoMemory,
    /// The module begins with more than can be recorded.
    #[error("the program begins with {what} of {found} {unit}: {most} at most can be recorded")]
    TooLarge {
        /// Memories or tables.
        what: &'static str,
        /// Bytes or elements.
        unit: &'static str,
        /// How much it begins with.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// There is nothing to run.
    #[error("the program exports no function {wanted:?}{}", exports_hint(.exports))]
    NoExport {
        /// The function wanted.
        wanted: String,
        /// The functions that there are.
        exports: Vec<String>,
    },
    /// The arguments given to `--invoke` do not fit.
    #[error("{export} takes {expected}, but {given}")]
    Arguments {
        /// The function.
        export: String,
        /// Its parameters.
        expected: String,
        /// What is wrong with those given.
        given: String,
    },
    /// A granted folder or a file for standard input cannot be opened.
    #[error("cannot open {path}: {message}")]
    Open {
        /// The path.
        path: String,
        /// The reason.
        message: String,
    },
    /// The engine cannot be set up.
    #[error("the engine cannot be set up: {0}")]
    Engine(String),
    /// The engine does not compile the module.
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
    /// The recorded bits do not make a path of the program.
    #[error("the path that was written cannot be followed: {0}")]
    Regenerate(#[from] afterimage_paths::RegenerateError),
    /// A chunk of words is none.
    #[error("the path that the run wrote is damaged")]
    Words,
    /// The words of a path do not lead to where the file says that they do.
    #[error(
        "the path that the run wrote does not lead where the file says: to t={said}, but to \
         t={found}, or to other activations"
    )]
    Moment {
        /// By the file.
        said: u64,
        /// By what was written before.
        found: u64,
    },
    /// The path could not be taken from the guest.
    #[error(transparent)]
    HandOver(#[from] crate::paths::HandOverError),
    /// A counter of its own in a block shows something else than the counts of edges say.
    #[error(
        "function {function}, block {block}: its own counter shows {measured}, but {derived} follows from the other counters"
    )]
    BlockDiffers {
        /// The function's index.
        function: u32,
        /// The block.
        block: u32,
        /// What its own counter shows.
        measured: u64,
        /// What the counts of edges say.
        derived: u64,
    },
    /// The probes' memory is smaller than its layout.
    #[error("the memory of the counters is too small for them")]
    NoCounters,
    /// Two things to measure in one live run.
    #[error("only one lens can be built during the run")]
    OneLens,
    /// A re-execution did something that the recording did not.
    #[error("the re-execution differs from the recording at event {event}: {what}")]
    Diverged {
        /// The event's number, from 0.
        event: u64,
        /// What differs.
        what: String,
    },
    /// The stop clock shows something else at the end than the recording says.
    #[error(
        "the stop clock shows {found} at the end of the re-execution, but the recording says \
         {said}"
    )]
    Clock {
        /// What the recording says.
        said: u64,
        /// What it showed.
        found: u64,
    },
    /// The time limit came before the program was compiled.
    #[error("compilation took longer than the time limit, so nothing ran; give a longer --timeout")]
    CompileTimeout,
    /// A re-execution was stopped from outside.
    #[error("it was interrupted")]
    Interrupted,
    /// The recording was cut before its end was written.
    #[error(
        "the recording was cut off: how the run ended is not in the file; record the program again"
    )]
    Cut,
    /// The recording was stopped from outside without a clock to find the same moment again.
    #[error(
        "the run was stopped from outside ({0}) and recorded without a stop clock, so the moment cannot be found again; record with the clock, or with --lens counts"
    )]
    NoClock(String),
    /// No snapshots can be made of such a program.
    #[error("no snapshots can be made of a program that {0}")]
    NoSnapshots(&'static str),
    /// A snapshot is not what the program can be like.
    #[error("a snapshot of the re-execution does not fit the program: {0}")]
    Snapshot(#[from] MachineError),
    /// The place where a run ended cannot be found in the program.
    #[error("the engine reports the guest at {0}, which is not a place in the program")]
    UnknownPlace(String),
    /// The engine has no stack where the guest ended: it found no room to write it down.
    #[error(
        "not enough memory to find where the guest was at its end; give this process more memory"
    )]
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
