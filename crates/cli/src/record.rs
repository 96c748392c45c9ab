//! `afterimage record`

use std::path::PathBuf;

use afterimage_placement::{Mode, PlanOptions};
use afterimage_record::{Cache, Interrupt, RecordError, RecordOptions, Recorded, record};
use afterimage_trace::TraceWriter;
use anyhow::{Context, Result, anyhow};

use crate::arguments::{RunArguments, stop_on_signals};
use crate::exit::{Exit, Failed};
use crate::input::{self, Loaded};

/// Run a program and record what crosses its boundary, so that everything it did can be asked later
///
/// The guest's standard output and error pass through untouched, and its exit code is ours.
/// A guest gets no folder, variable or network that was not granted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage record app.wasm input.txt
  afterimage record --dir data::/data --env LANG=C -o run.aft app.wasm -- --verbose
  afterimage record --invoke fib math.wat 30")]
pub(crate) struct Arguments {
    /// Where the recording goes [default: PROGRAM's stem with .aft, in the current folder]
    #[arg(short, long, value_name = "OUT.aft")]
    output: Option<PathBuf>,
    /// Overwrite an existing recording
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    run: RunArguments,
    /// Also make this during the run, and not later by re-execution
    #[arg(long, value_name = "LENS")]
    lens: Option<Lens>,
    /// Say nothing when all goes well
    #[arg(short, long)]
    quiet: bool,
    /// A .wasm or .wat file
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
    /// Arguments for the guest
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// What can be made during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lens {
    /// Exact execution counts.
    Counts,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let loaded = input::program(&arguments.program)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => {
            let stem = arguments.program.file_stem().ok_or_else(|| anyhow!("name the output with -o"))?;
            PathBuf::from(stem).with_extension("aft")
        }
    };
    let out = TraceWriter::create(&path, arguments.force).with_context(|| match arguments.force {
        true => path.display().to_string(),
        false => format!("{} (choose another name with -o, or overwrite with --force)", path.display()),
    });
    let out = match out {
        Err(error) if path.exists() => return Err(error),
        Err(error) => return Err(error.context(format!("cannot create {}", path.display()))),
        Ok(out) => out,
    };
    let lens = arguments.lens.map(|Lens::Counts| PlanOptions::new(Mode::Program));
    let recorded = execute(&loaded, &arguments.run, &arguments.args, lens, false, &out);
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            // Nothing ran, or what ran cannot be used: leave no half file behind where none was.
            let started = matches!(
                error.downcast_ref::<Failed>().and_then(|f| f.error.downcast_ref::<RecordError>()),
                Some(RecordError::Trace(_))
            );
            if !started {
                let _ = out.discard();
            }
            return Err(error);
        }
    };
    if !recorded.results.is_empty() && arguments.run.invoke.is_some() {
        for result in &recorded.results {
            println!("{}", literal(result));
        }
    }
    if !arguments.quiet {
        let calls: u64 = recorded.end.host_call_counts.iter().sum();
        let size = std::fs::metadata(&path).map_or(0, |m| m.len());
        eprintln!(
            "afterimage: {} {}; {calls} host calls recorded in {} ({})",
            arguments.program.display(),
            recorded.end.ending,
            path.display(),
            bytes(size),
        );
    }
    Ok(Exit::of_guest(&recorded.end))
}

/// Runs the guest and records it.
pub(crate) fn execute(
    loaded: &Loaded,
    run: &RunArguments,
    args: &[String],
    lens: Option<PlanOptions<'static>>,
    guest_output_to_stderr: bool,
    out: &TraceWriter,
) -> Result<Recorded> {
    let command = run.command(&loaded.path, args)?;
    let options = RecordOptions {
        clock: !run.no_clock,
        counts: lens,
        timeout: run.limit()?,
        stack: run.stack_bytes()?,
        output_to_stderr: guest_output_to_stderr,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..RecordOptions::default()
    };
    let interrupt = Interrupt::new();
    stop_on_signals(&interrupt)?;
    let recorded = record(&loaded.bytes, &loaded.program, &command, &options, &Cache::of_user(), &interrupt, out);
    recorded.map_err(|error| {
        let exit = match error {
            RecordError::UnknownImport { .. }
            | RecordError::ImportType { .. }
            | RecordError::NoMemory
            | RecordError::NoExport { .. }
            | RecordError::Compile(_)
            | RecordError::Instantiate(_) => Exit::CannotRun,
            _ => Exit::Failure,
        };
        Failed { exit, error: anyhow::Error::new(error).context(loaded.path.display().to_string()) }.into()
    })
}

/// A value, as it would be written on the command line.
fn literal(value: &afterimage_trace::RawValue) -> String {
    use afterimage_trace::RawValue;
    match *value {
        RawValue::I32(v) => v.to_string(),
        RawValue::I64(v) => v.to_string(),
        RawValue::F32(bits) => f32::from_bits(bits).to_string(),
        RawValue::F64(bits) => f64::from_bits(bits).to_string(),
        RawValue::V128(bits) => format!("0x{bits:032x}"),
        RawValue::NullRef => "null".to_owned(),
        RawValue::OpaqueRef => "reference".to_owned(),
    }
}

/// A size for people.
pub(crate) fn bytes(size: u64) -> String {
    match size {
        0..1000 => format!("{size} bytes"),
        1000..1_000_000 => format!("{:.1} kB", size as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size as f64 / 1e6),
        _ => format!("{:.1} GB", size as f64 / 1e9),
    }
}
