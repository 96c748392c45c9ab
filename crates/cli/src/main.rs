//! The command line: one file per command, the only place that prints and chooses exit codes.

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

/// Matching two runs takes a fifth less processor time with this allocator
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

#[derive(Subcommand)]
enum Command {
    Record(record::Arguments),
    Runner(runner::Arguments),
    Profile(profile::Arguments),
    Paths(paths::Arguments),
    Build(build::Arguments),
    Trace(trace::Arguments),
    Calls(calls::Arguments),
    Values(values::Arguments),
    Deps(deps::Arguments),
    Slice(slice::Arguments),
    Why(why::Arguments),
    WhyNot(why_not::Arguments),
    State(state::Arguments),
    Dap(dap::Arguments),
    Memory(memory::Arguments),
    Addresses(addresses::Arguments),
    Diff(diff::Arguments),
    Simulate(simulate::Arguments),
    Redundancy(redundancy::Arguments),
    Dataflow(dataflow::Arguments),
    Currency(currency::Arguments),
    Match(matching::Arguments),
    Export(export::Arguments),
    Report(report::Arguments),
    Info(info::Arguments),
    Verify(verify::Arguments),
    Strip(strip::Arguments),
    Explore(explore::Arguments),
    Cfg(cfg::Arguments),
    Instrument(instrument::Arguments),
    Mcp(mcp::Arguments),
    Places(places::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Whether the command examines only a small part of a recording.
    fn is_one_question(&self) -> bool {
        matches!(
            self,
            Self::Why(_) | Self::WhyNot(_) | Self::State(_) | Self::Memory(_) | Self::Info(_)
        )
    }
}

/// For the help.
const EXIT_CODES: &str = "\
Exit codes:
  record   the guest's own; 134 if it trapped or left an exception uncaught,
           124 after --timeout, 130 after Ctrl-C, 143 after SIGTERM or SIGHUP
  verify   1 if a check fails
  all      125 if afterimage failed or was misused, 126 if the program cannot
           be run, 127 if the file does not exist";

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
    let result = match cli.command {
        Command::Record(arguments) => record::run(arguments),
        Command::Runner(arguments) => runner::run(arguments),
        Command::Profile(arguments) => profile::run(arguments),
        Command::Paths(arguments) => paths::run(arguments),
        Command::Build(arguments) => build::run(arguments),
        Command::Trace(arguments) => trace::run(arguments),
        Command::Calls(arguments) => calls::run(arguments),
        Command::Values(arguments) => values::run(arguments),
        Command::Deps(arguments) => deps::run(arguments),
        Command::Slice(arguments) => slice::run(arguments),
        Command::Why(arguments) => why::run(arguments),
        Command::WhyNot(arguments) => why_not::run(arguments),
        Command::State(arguments) => state::run(arguments),
        Command::Dap(arguments) => dap::run(&arguments),
        Command::Memory(arguments) => memory::run(arguments),
        Command::Addresses(arguments) => addresses::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Simulate(arguments) => simulate::run(arguments),
        Command::Redundancy(arguments) => redundancy::run(arguments),
        Command::Dataflow(arguments) => dataflow::run(arguments),
        Command::Currency(arguments) => currency::run(arguments),
        Command::Match(arguments) => matching::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Info(arguments) => info::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Strip(arguments) => strip::run(&arguments),
        Command::Explore(arguments) => explore::run(arguments),
        Command::Cfg(arguments) => cfg::run(arguments),
        Command::Instrument(arguments) => instrument::run(arguments),
        Command::Mcp(arguments) => mcp::run(arguments),
        Command::Places(arguments) => places::run(&arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    };
    exit::report(result).into()
}
