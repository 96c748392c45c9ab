//! `afterimage values`

use afterimage::check::{self, Needs};
use afterimage::rows::{Form, Rows};
use afterimage::values::{
    ConditionQuery, Detail, Instances, InstancesError, ValuesQuery, VariableQuery, Wanted,
    write_load_values, write_loaded,
};
use afterimage_present::{Render, render};
use anyhow::{Context, Result, anyhow, bail};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Show what a statement gave, or a variable held, over the run
///
/// It lists each execution, or sums them up. A statement is an instruction that yields a value or has an effect. Shown are its result; of a store and of a write to a global what was
/// written; of a branch what decided it; of a call its arguments and what it returned; of what accesses memory where, and how
/// many bytes. The one with which a run that trapped ended is marked. The recording's values are built first, if it has none.
///
/// With --var it is the value of a variable, or of an expression such as p->next->key or *p, each time that the line is arrived at, just before;
/// with --at FUNCTION each time that it is called. What is in memory is known by following the run from its beginning.
///
/// With --loads it is what each load of the program read, summed up, by following the run; with --each all of it, one load's values after the other, up to
/// 256 at a time. Different values are told apart up to 4,096 of them.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["at", "loads"]))]
#[command(after_help = "\
Examples:
  afterimage values app.aft --at parser.c:42
  afterimage values app.aft --at parse+0x2a --instances 1000..1010
  afterimage values app.aft --at parser.c:42#last
  afterimage values app.aft --at @0x1f3 --instances t=123456
  afterimage values app.aft --at @0x1f3 --histogram
  afterimage values app.aft --at parser.c:42 --var depth
  afterimage values app.aft --at parser.c:42 --var depth --histogram
  afterimage values app.aft --at bank.c:52 --where 'fee < 0 && n > 3' --first
  afterimage values app.aft --at list.c:16 --var 'n->next->key' --instances last
  afterimage values app.aft --loads
  afterimage values app.aft --loads --each --format bin -o loads.bin")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function; #K or #last at its end is one execution
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// What all loads of the program read, summed up
    #[arg(long, conflicts_with_all = ["at", "var", "instances", "stats", "histogram"])]
    loads: bool,
    /// All values that they read instead
    #[arg(long, requires = "loads")]
    each: bool,
    /// The value of this variable of the source, or expression: total, p->next->key, *p
    #[arg(long, value_name = "NAME")]
    var: Option<String>,
    /// When this condition holds: 'fee < 0 && a->balance > 10'; docs/EXPRESSIONS.md says what it may be made of
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true, conflicts_with_all = ["loads", "var", "stats", "histogram"])]
    condition: Option<String>,
    /// Only the first time that it holds
    #[arg(long, requires = "condition", conflicts_with_all = ["last", "count"])]
    first: bool,
    /// Only the last time that it holds
    #[arg(long, requires = "condition", conflicts_with = "count")]
    last: bool,
    /// Only how often it holds
    #[arg(long, requires = "condition")]
    count: bool,
    /// Which executions of each statement: A..B, K, last, or t=T for those in block T and later [default: all]
    #[arg(long, value_name = "WHICH")]
    instances: Option<String>,
    /// Sum up the values instead: how many, different ones, smallest, largest
    #[arg(long, conflicts_with = "histogram")]
    stats: bool,
    /// Count how often each value occurred instead, the most frequent first
    #[arg(long)]
    histogram: bool,
    /// The most rows for each statement, if it is not A..B [default: 10], or lines with --loads [default: 100 for text on standard output]
    #[arg(long, value_name = "N", value_parser = entries)]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    /// Values of --loads --each for other programs, see docs/TRACE.md
    Bin,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin is for --loads --each");
    }
    if arguments.loads {
        // The values of loads are found by following the run, however far that is.
        let traced = lens::traced_whole(file)?;
        let rows = &arguments.rows();
        let written = match arguments.each {
            true => write_loaded(&traced, rows),
            false => write_load_values(&traced, rows),
        };
        written.with_context(|| file.display().to_string())?;
        return Ok(Exit::Success);
    }
    let session = lens::finished(file)?;
    check::places(&session, Needs::Values, arguments.at.as_deref())?;
    let query = arguments.query()?;
    if let Some(condition) = &arguments.condition {
        let query = ConditionQuery {
            condition: condition.clone(),
            values: query,
            wanted: match (arguments.first, arguments.last, arguments.count) {
                (true, ..) => Wanted::First,
                (_, true, _) => Wanted::Last,
                (.., true) => Wanted::Count,
                _ => Wanted::All,
            },
        };
        let report = lens::answered(session, |session| session.condition(&query))?;
        return arguments.show(&report);
    }
    let Some(name) = &arguments.var else {
        let report = match query.detail {
            Detail::Each => lens::answered(session, |session| session.statement_values(&query))?,
            // All executions count.
            _ => lens::with_values(session)?.statement_values(&query)?,
        };
        return arguments.show(&report);
    };
    let query = VariableQuery {
        name: name.clone(),
        values: query,
    };
    let report = match query.values.detail {
        Detail::Each => lens::answered(session, |session| session.variable_values(&query))?,
        _ => lens::with_values(session)?.variable_values(&query)?,
    };
    arguments.show(&report)
}

impl Arguments {
    fn rows(&self) -> Rows<'_> {
        let form = match self.format {
            Format::Text => Form::Text,
            Format::Json => Form::Json,
            Format::Bin => Form::Bin,
        };
        self.report.rows(form, self.limit)
    }

    fn query(&self) -> Result<ValuesQuery> {
        let parse = |text: &String| {
            let parsed = text.parse::<Instances>();
            parsed.map_err(|error: InstancesError| anyhow!("--instances {text}: {error}"))
        };
        Ok(ValuesQuery {
            at: self.at.clone().unwrap_or_default(),
            instances: self.instances.as_ref().map_or(Ok(Instances::All), parse)?,
            detail: match (self.stats, self.histogram) {
                (true, _) => Detail::Stats,
                (_, true) => Detail::Histogram,
                (false, false) => Detail::Each,
            },
            limit: self.limit.unwrap_or(ValuesQuery::LIMIT),
        })
    }

    fn show(&self, report: &impl Render) -> Result<Exit> {
        let format = match self.format {
            Format::Text => afterimage_present::Format::Text,
            Format::Json | Format::Bin => afterimage_present::Format::Json,
        };
        write(self.report.output.as_deref(), false, |out| {
            Ok(render(out, report, format, self.report.style())?)
        })?;
        Ok(Exit::Success)
    }
}
