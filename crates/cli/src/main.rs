//! The command line, with one file per command. Only this crate prints and chooses exit codes.

mod addresses;
mod arguments;
mod build;
mod calls;
mod cfg;
mod completions;
mod currency;
mod dap;
mod dataflow;
#[cfg(feature = "parquet")]
mod dataset;
mod deps;
mod diff;
mod exit;
mod explore;
mod export;
mod filters;
mod help;
mod info;
mod instrument;
mod lens;
mod man;
mod matching;
mod mcp;
mod memory;
mod output;
mod pages;
mod paths;
mod places;
mod profile;
mod progress;
mod record;
mod redundancy;
mod report;
mod runner;
mod signals;
mod simulate;
mod slice;
mod state;
mod strip;
mod trace;
mod values;
mod verify;
mod why;
mod why_not;

/// With this allocator, matching two runs takes a fifth less processor time
/// (docs/lessons/matching.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::Exit;

/// Record a WebAssembly program's run once, then ask exactly what it did.
#[derive(Parser)]
#[command(name = "afterimage", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Defines the commands, each with its module.
macro_rules! commands {
    ($($name:ident: $module:ident,)+) => {
        #[derive(Subcommand)]
        enum Command {
            $($name($module::Arguments)),+
        }

        impl Command {
            fn run(self) -> anyhow::Result<Exit> {
                match self {
                    $(Self::$name(arguments) => $module::run(arguments)),+
                }
            }
        }
    };
}

commands! {
    Record: record,
    Runner: runner,
    Profile: profile,
    Paths: paths,
    Build: build,
    Trace: trace,
    Calls: calls,
    Values: values,
    Deps: deps,
    Slice: slice,
    Why: why,
    WhyNot: why_not,
    State: state,
    Dap: dap,
    Memory: memory,
    Addresses: addresses,
    Diff: diff,
    Simulate: simulate,
    Redundancy: redundancy,
    Dataflow: dataflow,
    Currency: currency,
    Match: matching,
    Export: export,
    Report: report,
    Info: info,
    Verify: verify,
    Strip: strip,
    Explore: explore,
    Cfg: cfg,
    Instrument: instrument,
    Mcp: mcp,
    Places: places,
    Completions: completions,
    Man: man,
}

impl Command {
    /// Whether the command answers a single question, and so examines only a small part of a
    /// recording.
    fn is_one_question(&self) -> bool {
        matches!(
            self,
            Self::Why(_) | Self::WhyNot(_) | Self::State(_) | Self::Memory(_) | Self::Info(_)
        )
    }
}

/// The exit codes, as shown in the help.
const EXIT_CODES: &str = "\
Exit codes:
  record   the guest's own; 134 if it trapped or left an exception uncaught,
           124 after --timeout, 130 after Ctrl-C, 143 after SIGTERM or SIGHUP
  verify   1 if a check fails
  all      125 if afterimage failed or was called incorrectly, 126 if the
           program cannot be run, 127 if the file does not exist";

fn main() -> std::process::ExitCode {
    signals::survive_file_size_limit();
    let command = help::grouped(Cli::command());
    let parsed = command.clone().try_get_matches();
    let parsed = parsed.map_err(|error| help::suggested(&command, error));
    let parsed = parsed.and_then(|matches| profile::among_recordings(command, matches));
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Failure
            } else {
                Exit::Success
            }
            .into();
        }
    };
    if cli.command.is_one_question() {
        pages::small();
    }
    exit::report(cli.command.run()).into()
}
