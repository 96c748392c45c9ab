//! `afterimage match`

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use afterimage::Session;
use afterimage::steps::{follow, follow_telling};
use afterimage_analyses::matching::{
    Sketched, TruthSide, accuracy, divergences, match_runs, same_names, version,
};
use afterimage_present::{MatchReport, MatchSide, render};
use afterimage_replay::steps::Operators;
use anyhow::{Context, Result, bail};

use crate::arguments::{formats, rows};
use crate::exit::Exit;
use crate::lens::traced_whole;
use crate::output::{Color, say, write};
use afterimage::given::{endings, say_if_given_otherwise};

/// Show which statements of two versions of a program correspond, and where those that do stop doing the same
///
/// The first run is followed five times, the second four times. Statements are compared by the values that they gave and the addresses that they accessed, and then by who makes
/// their operands, who uses what they give, what stands around them, and what else was executed at the same time, until nothing changes. The second version may be the first one compiled
/// otherwise, optimised, or changed; it should have run on the same input. Nothing of the line tables is used, and names of functions only as a hint.
///
/// Matching is by evidence, not by proof: each match says what speaks for it, and how likely it is. Where several statements of the first version are nearly as likely, --all and the other formats
/// list them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage match unoptimised.aft optimised.aft
  afterimage match unoptimised.aft optimised.aft --all --no-names
  afterimage match old.aft new.aft --format json
  afterimage match unoptimised.aft optimised.aft --check")]
pub(crate) struct Arguments {
    /// Do not use the names of functions
    #[arg(long)]
    no_names: bool,
    /// Show every statement of the second version and its counterpart, or counterparts
    #[arg(long)]
    all: bool,
    /// At most N rows of each list [default: 10 for text, all otherwise]; what --all shows is not cut
    #[arg(long, value_name = "N", value_parser = rows)]
    top: Option<usize>,
    /// Compare the matches with the line tables of both versions
    #[arg(long)]
    check: bool,
    /// The format; csv has a row for each statement
    #[arg(long, default_value = "text")]
    format: Format,
    /// Where the report goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// When to use color
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    color: Color,
    /// The first version, such as the unoptimised one
    #[arg(value_name = "A.aft")]
    a: PathBuf,
    /// The second version, whose statements are looked for in the first
    #[arg(value_name = "B.aft")]
    b: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
}

formats!(Text, Json, Csv);

/// Follows two runs at the same time and sketches their statements.
pub(crate) fn sketched(
    [at_a, at_b]: [&Path; 2],
    [a, b]: [&Session; 2],
) -> Result<(Sketched, Sketched)> {
    let (of_a, of_b) = thread::scope(|scope| {
        let quietly = || follow_telling(b, &|_| {}, |run, log| Ok(version(run, log)?));
        let of_b = thread::Builder::new().spawn_scoped(scope, quietly);
        let of_a = follow(a, |run, log| Ok(version(run, log)?));
        let of_b = match of_b {
            Ok(of_b) => of_b.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Where no thread can be had, one after the other.
            Err(_) => quietly(),
        };
        (of_a, of_b)
    });
    Ok((
        of_a.with_context(|| at_a.display().to_string())?,
        of_b.with_context(|| at_b.display().to_string())?,
    ))
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.top.is_some() && arguments.format == Format::Csv {
        bail!("--format csv has all statements: leave --top out");
    }
    let a = traced_whole(&arguments.a)?;
    let b = traced_whole(&arguments.b)?;
    say_if_given_otherwise([&a, &b], "was changed in the program")?;
    let endings = endings([&a, &b])?;
    if let Some([of_a, of_b]) = &endings {
        say(format_args!(
            "the runs did not end alike: {} {}; {} {}",
            arguments.a.display(),
            of_a.words(),
            arguments.b.display(),
            of_b.words(),
        ));
    }
    let sources = (a.source_map(), b.source_map());
    if arguments.check {
        for (at, source) in [(&arguments.a, &sources.0), (&arguments.b, &sources.1)] {
            if source.files().is_empty() {
                bail!(
                    "--check compares with the line tables, and the module in {} has none: compile it with -g",
                    at.display()
                );
            }
        }
    }
    let (of_a, of_b) = sketched([&arguments.a, &arguments.b], [&a, &b])?;
    let names = (a.module().names(&sources.0), b.module().names(&sources.1));
    let same = same_names((a.program(), &names.0), (b.program(), &names.1));
    let hint = (!arguments.no_names).then_some(&same);
    let (found, diverging) = follow(&a, |run_a, _| {
        follow(&b, |run_b, _| {
            let logs = (|| a.file().log(), || b.file().log());
            let runs = [(run_a, &logs.0 as _), (run_b, &logs.1 as _)];
            let found = match_runs([&of_a, &of_b], hint, runs)?;
            let diverging = divergences([&of_a, &of_b], &found, runs)?;
            Ok((found.matching, diverging))
        })
    })?;
    let accuracy = arguments.check.then(|| {
        accuracy(
            truth(&a, &names.0, &sources.0, &of_a),
            truth(&b, &names.1, &sources.1, &of_b),
            &found,
        )
    });
    let operators = (
        Operators::new(a.program(), a.bytes(), &sources.0),
        Operators::new(b.program(), b.bytes(), &sources.1),
    );
    let texts = [&arguments.a, &arguments.b].map(|path| path.display().to_string());
    let report = MatchReport {
        a: MatchSide {
            name: &texts[0],
            names: &names.0,
            operators: &operators.0,
            source: &sources.0,
            sketched: &of_a,
        },
        b: MatchSide {
            name: &texts[1],
            names: &names.1,
            operators: &operators.1,
            source: &sources.1,
            sketched: &of_b,
        },
        matching: &found,
        divergences: &diverging,
        endings: endings.as_ref(),
        accuracy,
        names_used: !arguments.no_names,
        top: arguments.top,
        all: arguments.all,
    };
    let out = arguments.output.as_deref();
    let style = arguments.color.style(out);
    write(out, false, |out| {
        Ok(render(out, &report, arguments.format, style)?)
    })?;
    Ok(Exit::Success)
}

fn truth<'a>(
    traced: &'a Session,
    names: &'a afterimage_program::Names,
    source: &'a afterimage_program::SourceMap<'a>,
    sketched: &'a Sketched,
) -> TruthSide<'a> {
    TruthSide {
        program: traced.program(),
        module: traced.bytes(),
        names,
        source,
        sketched,
    }
}
