//! Implements `afterimage runner`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use afterimage::harness::{Harness, Runner, is_libtest};
use anyhow::{Context, Result};

use crate::arguments::{RunArguments, guest_arguments};
use crate::exit::Exit;
use crate::output::print;
use crate::progress::Terminal;
use crate::record;

/// Record what Cargo runs: a program, or each failing test
///
/// Cargo uses it if CARGO_TARGET_WASM32_WASIP1_RUNNER="afterimage runner" is in the environment.
/// `cargo run` records the program. `cargo test` runs each test separately, because a WebAssembly
/// program ends at its first panic. It keeps the recordings of failing tests. Below each failure,
/// it prints the recording's name and the first lines of `afterimage why --trap`. Filters,
/// --nocapture and the summary work as in `cargo test`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "afterimage runner [OPTIONS] PROGRAM [ARGS]...",
    after_help = "\
Examples:
  export CARGO_TARGET_WASM32_WASIP1_RUNNER='afterimage runner'
  cargo test --target wasm32-wasip1
  cargo test --target wasm32-wasip1 parser:: -- --nocapture
  cargo run --target wasm32-wasip1 -- input.txt

Exit codes:
  The program's own; for tests 101 if one failed, as cargo expects."
)]
pub(crate) struct Arguments {
    /// Put recordings into this folder [default: a folder `afterimage` beside the program]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// The program and its arguments, as Cargo passes them
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    guest: Vec<OsString>,
    // These come last, because their heading would apply to all options after them.
    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let (program, args) = arguments.guest.split_first().context("name a program")?;
    let program = Path::new(program);
    let args = guest_arguments(args)?;
    let stem = program.file_stem().context("name a program")?;
    let folder = match &arguments.output {
        Some(folder) => folder.clone(),
        None => program.with_file_name("afterimage"),
    };
    let cannot = || format!("cannot make the folder {}", folder.display());
    fs::create_dir_all(&folder).with_context(cannot)?;
    let is_harness = !args.iter().any(|arg| ITSELF.contains(&arg.as_str()));
    if is_harness && is_libtest(program, &Terminal)? {
        let run = &arguments.run;
        let harness = Harness {
            program,
            stem: &stem.to_string_lossy(),
            folder: &folder,
            runner: &ByThis { program, run },
        };
        // On a failure, libtest exits with 101.
        return Ok(if harness.run(&args)? {
            Exit::Success
        } else {
            Exit::Guest(101)
        });
    }
    let recording = folder.join(stem).with_extension("aft");
    let query = record::Arguments::of(program, &args, recording.clone(), arguments.run);
    let exit = record::run(query)?;
    // A list of tests or a help text needs no explanation.
    if !is_harness && exit == Exit::Success && is_libtest(program, &Terminal)? {
        let _ = fs::remove_file(&recording);
    }
    Ok(exit)
}

/// Options that run libtest itself, instead of each test separately.
const ITSELF: [&str; 4] = ["--bench", "--list", "--help", "-h"];

/// The number of calls to show below a failure.
const CALLS: usize = 4;

/// Records tests by running this program.
struct ByThis<'t> {
    program: &'t Path,
    run: &'t RunArguments,
}

impl Runner for ByThis<'_> {
    fn record(&self, recording: &Path, args: &[String]) -> Result<Output> {
        let mut command = this()?;
        command.args(["record", "--quiet", "--force", "-o"]);
        command.arg(recording).args(self.run.words());
        command.arg(self.program).arg("--").args(args);
        let output = command.stdin(Stdio::null()).output();
        output.with_context(|| format!("cannot record {}", self.program.display()))
    }

    fn explain(&self, recording: &Path) -> Result<String> {
        let asked = this()?.args(["why", "--trap"]).arg(recording).output();
        let asked = asked.with_context(|| format!("cannot ask about {}", recording.display()))?;
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        // The headline, and the calls in the user's own code that led there.
        let is_call = |line: &&str| {
            ["  ended at ", "  called at "]
                .iter()
                .any(|begin| line.starts_with(begin))
        };
        let calls = said.lines().skip(1).filter(is_call).take(CALLS);
        let first = said.lines().take(1).chain(calls);
        Ok(first.map(|line| format!("{line}\n")).collect())
    }

    fn print(&self, text: &str) -> Result<()> {
        print(|out| Ok(write!(out, "{text}")?))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is this program, in the user's own environment"
)]
fn this() -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Ok(Command::new(program))
}
