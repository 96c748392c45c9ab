//! Exit codes.

use std::process::ExitCode;

use afterimage::files::FileError;
use afterimage::text;
use afterimage_replay::whole_path::PathFileError;
use afterimage_trace::{End, Ending, Interrupter};

use crate::output::say;

/// The remedy for a path that cannot be read.
const BUILD_AGAIN: &str = "build the path again with `afterimage build --lens paths --again`";

/// The way in which the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything went well.
    Success,
    /// The guest exited with this code.
    Guest(u8),
    /// `--timeout` ended the guest. The command `timeout` uses the same code.
    TimedOut,
    /// A requested check failed.
    Unsound,
    /// afterimage failed.
    Failure,
    /// The program cannot be run.
    CannotRun,
    /// The file does not exist.
    NotFound,
    /// afterimage was interrupted. Shells use the same code for SIGINT.
    Interrupted,
    /// afterimage was terminated. Shells use the same code for SIGTERM.
    Terminated,
    /// The guest trapped. Shells use the same code for SIGABRT.
    Trapped,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Guest(code) => code,
            Exit::Unsound => 1,
            Exit::TimedOut => 124,
            Exit::Failure => 125,
            Exit::CannotRun => 126,
            Exit::NotFound => 127,
            Exit::Interrupted => 130,
            Exit::Trapped => 134,
            Exit::Terminated => 143,
        }
    }

    /// Returns the exit code for the end of a guest.
    pub(crate) fn of_guest(end: &End) -> Self {
        match &end.ending {
            Ending::Returned => Exit::Success,
            // Exit codes of processes have eight bits.
            Ending::Exited { code } => Exit::Guest((*code & 0xff) as u8),
            Ending::Interrupted {
                by: Interrupter::Timeout,
            } => Exit::TimedOut,
            Ending::Interrupted {
                by: Interrupter::CtrlC,
            } => Exit::Interrupted,
            Ending::Interrupted {
                by: Interrupter::Terminate,
            } => Exit::Terminated,
            Ending::Trapped { .. } | Ending::Exception { .. } | Ending::StackOverflow => {
                Exit::Trapped
            }
            Ending::HostError { .. } => Exit::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// An error with its own exit code.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failed {
    pub exit: Exit,
    #[source]
    pub error: anyhow::Error,
}

/// Prints the error, if there is one, as one sentence. Returns the exit code.
pub(crate) fn report(result: anyhow::Result<Exit>) -> Exit {
    let error = match result {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    // Our output has no reader any more, so do not write a message.
    if error.chain().any(|e| {
        e.downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    }) {
        return Exit::Success;
    }
    let error = match error.downcast::<FileError>() {
        Ok(error) => {
            say(&error);
            return match error {
                FileError::NotFound(_) => Exit::NotFound,
                FileError::NoProgram(_) => Exit::CannotRun,
            };
        }
        Err(error) => error,
    };
    let failed = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failed>());
    say(sentence(&error));
    failed.map_or(Exit::Failure, |failed| failed.exit)
}

/// Returns the error on one line, with the remedy.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = text::sentence(error);
    // Segments of the path are read late, so any question may report their damage.
    let of_path = error.chain().any(|cause| cause.is::<PathFileError>());
    if of_path && !text.contains("afterimage build") {
        text.push_str("; ");
        text.push_str(BUILD_AGAIN);
    }
    text
}
