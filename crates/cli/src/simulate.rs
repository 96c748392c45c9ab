//! `afterimage simulate`

mod at;
mod stored;
mod worst;

use afterimage::Session;
use afterimage::steps::follow;
use afterimage_analyses::simulate::{
    CacheSpec, LevelSpec, MissesBy, PredictorSpec, Spec, StoredSimulations, Summary, miss_rows,
    simulate, stored_simulations,
};
use afterimage_present::{MissReport, StepScene, grouped, misses_csv, misses_json, misses_text};
use afterimage_replay::paths::RecordedPath;
use afterimage_replay::steps::Operators;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::input;
use crate::lens::traced_whole;
use crate::output::{say, write};

/// Simulate branch predictors and caches: which branches were mispredicted, which loads and stores missed
///
/// The run is followed, exactly, and each of its branches and accesses of linear memory is given to the models. Which executions were mispredicted, or missed, is kept
/// in the recording, one bit each, so that later questions are answered at once; without options, all that is kept is shown. Branches are those of br_if and
/// if (direction), and of br_table and calls through tables (target). What wasm keeps in locals, globals and on its operand stack is taken to be in registers.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Predictors:
  bimodal:bits=12                 2^12 counters of two bits
  gshare:bits=14,history=12       2^14 counters, by branch and the last 12 outcomes
  tage:tables=7,bits=10,min=5,max=130,tag=11,base=13
                                  7 tagged tables of 2^10 entries, for histories of 5 to 130
  Each has targets=9, too: 2^9 targets of indirect branches. What is left out is as here.
Caches:
  SIZE,WAYS,LINE, as cachegrind takes them: 32768,8,64 or 32k,8,64; WAYS may be full.
  Least recently used lines go first; written lines are allocated and written back.
Without any, all that the recording has is shown; if it has none, 32k,8,64 with 1m,16,64 behind it, and tage, are simulated.
Examples:
  afterimage simulate app.aft --branch-predictor gshare:bits=14,history=12
  afterimage simulate app.aft --cache 32k,8,64 --cache2 1m,16,64 --by function
  afterimage simulate app.aft --branch-predictor tage --format json
  afterimage simulate app.aft --at parser.c:42 --cache 32k,8,64
  afterimage simulate app.aft --at @0x1f3#1000
  afterimage simulate app.aft --worst --top 5
  afterimage simulate app.aft")]
pub(crate) struct Arguments {
    /// Predict branches by this; may be repeated
    #[arg(long, value_name = "PREDICTOR")]
    branch_predictor: Vec<PredictorSpec>,
    /// The first level of cache
    #[arg(long, value_name = "SIZE,WAYS,LINE", alias = "D1")]
    cache: Option<LevelSpec>,
    /// The second level of cache
    #[arg(long, value_name = "SIZE,WAYS,LINE", alias = "LL", requires = "cache")]
    cache2: Option<LevelSpec>,
    /// The history of what is at a place: file.c:42, func+0x2a, @0x1f3, or a function; with #K or #last behind an instruction, of one execution of it
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["by", "no_save"])]
    at: Option<String>,
    /// The loads or branches that missed most, who made their addresses or conditions, if the recording has values, and how to see the slice behind a miss
    #[arg(long, conflicts_with_all = ["by", "at", "no_save"])]
    worst: bool,
    /// Simulate again what the recording has
    #[arg(long)]
    again: bool,
    /// Leave the recording as it is: simulate, and keep no history; not with --at, --worst or --again
    #[arg(long, conflicts_with = "again")]
    no_save: bool,
    /// What has a row [default: line, or function if no line is known]
    #[arg(long)]
    by: Option<By>,
    /// At most N rows [default for text: 20; 100 lines of each history with --at; 5 with --worst]; with --at, only in text, and not with #K
    #[arg(long, value_name = "N", value_parser = entries)]
    top: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum By {
    Line,
    Function,
    Instruction,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    /// One object a line
    Json,
    Csv,
}

/// Rows that text has if nothing else is asked for.
const ROWS: u64 = 20;

impl Arguments {
    /// What is simulated if nothing is said, and nothing was: caches and a predictor like those of a processor of today.
    fn default_specs() -> Result<Vec<Spec>> {
        let first = "32k,8,64".parse()?;
        let second = "1m,16,64".parse()?;
        Ok(vec![
            Spec::Caches(CacheSpec::new(first, Some(second))?),
            Spec::Branches("tage".parse()?),
        ])
    }

    /// What is to be simulated; nothing for all that was.
    fn specs(&self) -> Result<Vec<Spec>> {
        let mut specs = Vec::new();
        if let Some(first) = self.cache {
            specs.push(Spec::Caches(CacheSpec::new(first, self.cache2)?));
        }
        for predictor in &self.branch_predictor {
            let spec = Spec::Branches(*predictor);
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
        Ok(specs)
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let mut specs = arguments.specs()?;
    let at = &arguments.report.file;
    let is_new = || -> Result<bool> {
        let StoredSimulations { sound, damaged } = stored_simulations(&input::recording(at)?)?;
        Ok(sound.is_empty() && damaged.is_empty())
    };
    if specs.is_empty() && !arguments.no_save && is_new()? {
        specs = Arguments::default_specs()?;
    }
    let traced = traced_whole(at)?;
    answer(&arguments, &traced, &specs).with_context(|| at.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Session, specs: &[Spec]) -> Result<()> {
    let at = &arguments.report.file;
    let is_live = input::recorder(at, traced.file()).is_some();
    if is_live && (arguments.at.is_some() || arguments.worst) {
        bail!(
            "it is still being recorded, so no history can be kept in it yet; ask again when the program has ended, or without --at and --worst"
        );
    }
    if arguments.no_save || is_live {
        let default = if specs.is_empty() {
            Arguments::default_specs()?
        } else {
            Vec::new()
        };
        let specs = if specs.is_empty() { &default } else { specs };
        let summaries = follow(traced, |run, log| {
            Ok(simulate(
                run,
                log,
                traced.stops()?,
                specs,
                &mut |_, _, _| Ok(()),
            )?)
        })?;
        return shown(arguments, traced, &summaries);
    }
    let place = arguments.at.as_deref();
    let place =
        place.map(|place| Ok::<_, anyhow::Error>((place, at::asked(arguments, traced, place)?)));
    let place = place.transpose()?;
    let (stored, problem) = stored::stored(at, traced, specs, arguments.again)?;
    if let Some((place, resolved)) = &place {
        at::answer(arguments, traced, &stored, (place, resolved))?;
    } else if arguments.worst {
        worst::answer(arguments, traced, &stored)?;
    } else {
        let summaries = Vec::from_iter(stored.iter().map(|stored| stored.summary.clone()));
        shown(arguments, traced, &summaries)?;
    }
    // What is not damaged is told before what is.
    problem.map_or(Ok(()), Err)
}

/// Says that a recording was cut off before its path ends.
fn say_cut(path: &RecordedPath, summary: &Summary) {
    if summary.blocks < path.length() {
        say(format_args!(
            "the recording was cut off: its log ends at t={}, its path at t={}; what follows is about the run up to there",
            grouped(summary.blocks),
            grouped(path.length())
        ));
    }
}

/// Writes what was found.
fn shown(arguments: &Arguments, traced: &Session, summaries: &[Summary]) -> Result<()> {
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let scene = StepScene {
        names: &names,
        operators: &operators,
        source: &source,
        memories: loaded.program.memories,
        style: arguments.report.style(),
    };
    if let Some(summary) = summaries.first() {
        say_cut(traced.path()?, summary);
    }
    let by = match arguments.by {
        Some(By::Line) => MissesBy::Line,
        Some(By::Function) => MissesBy::Function,
        Some(By::Instruction) => MissesBy::Instruction,
        None if source.files().is_empty() => MissesBy::Function,
        None => MissesBy::Line,
    };
    let few = matches!(arguments.format, Format::Text).then_some(ROWS);
    let top = arguments.top.or(few);
    let rows = summaries.iter().map(|s| miss_rows(s, &operators, by));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let reports = summaries.iter().zip(&rows);
    let reports = Vec::from_iter(reports.map(|(summary, rows)| MissReport {
        summary,
        by,
        rows,
        top,
    }));
    write(arguments.report.output.as_deref(), false, |out| {
        match arguments.format {
            Format::Text => {
                for (i, report) in reports.iter().enumerate() {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    if misses_text(out, &scene, report)? {
                        writeln!(out, "… and more: see them with --top N")?;
                    }
                }
            }
            Format::Json => {
                for report in &reports {
                    misses_json(out, &scene, report)?;
                }
            }
            Format::Csv => misses_csv(out, &scene, &reports)?,
        }
        Ok(())
    })
}
