//! Implements `afterimage values`.

use afterimage::check::{self, Needs};
use afterimage::rows::{Form, Rows};
use afterimage::values::{
    ConditionQuery, Detail, Instances, InstancesError, ValuesQuery, VariableQuery, Wanted,
    write_load_values, write_loaded,
};
use afterimage_present::Render;
use anyhow::{Context, Result, anyhow, bail};

use crate::arguments::{CodeArguments, ReportArguments, choices, entries};
use crate::exit::Exit;
use crate::lens;

/// Show the values of a statement or a variable over the run
///
/// It lists the executions, or summarises them. A statement is an instruction that yields a value
/// or has an effect. The list shows its result. For a store or a write to a global, it shows what
/// was written; for a branch, what decided it; for a call, its arguments and results. For memory
/// accesses, it also shows the address and the number of bytes. If the run trapped, the execution
/// that ended it is marked. If the recording has no values, they are built first.
///
/// With --var it shows a variable, or an expression such as p->next->key or *p, right before each
/// arrival at the line; with --at FUNCTION, at each call. To find the contents of memory, the run
/// is followed from its beginning.
///
/// With --loads it follows the run and summarises what each load of the program read. With --each
/// it lists all values, in groups of up to 256 values of one load. It distinguishes up to 4,096
/// different values.
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
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function; append #K or #last for one execution
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// Summarise what all loads of the program read
    #[arg(long, conflicts_with_all = ["at", "var", "instances", "stats", "histogram"])]
    loads: bool,
    /// List all values that the loads read, instead of a summary
    #[arg(long, requires = "loads")]
    each: bool,
    /// Show this source variable or expression: total, p->next->key, *p. Without debug information,
    /// $0 is the local with index 0
    #[arg(long, value_name = "NAME")]
    var: Option<String>,
    /// Show when this condition holds: 'fee < 0 && a->balance > 10'; docs/EXPRESSIONS.md lists what
    /// it can contain
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true, conflicts_with_all = ["loads", "var", "stats", "histogram"])]
    condition: Option<String>,
    /// Show only the first time at which the condition holds
    #[arg(long, requires = "condition", conflicts_with_all = ["last", "count"])]
    first: bool,
    /// Show only the last time at which the condition holds
    #[arg(long, requires = "condition", conflicts_with = "count")]
    last: bool,
    /// Show only the number of times at which the condition holds
    #[arg(long, requires = "condition")]
    count: bool,
    /// Show only these executions of each statement: A..B, K, last, or t=T for all executions from
    /// block T on [default: all]
    #[arg(long, value_name = "WHICH")]
    instances: Option<String>,
    /// Summarise the values instead: number, number of different values, smallest, largest
    #[arg(long, conflicts_with = "histogram")]
    stats: bool,
    /// Count how often each value occurred instead, most frequent first
    #[arg(long)]
    histogram: bool,
    /// Show at most N rows for each statement [default: 10; all if A..B is given], or N lines with
    /// --loads [default: 100 for text on standard output]
    #[arg(long, value_name = "N", value_parser = entries)]
    limit: Option<u64>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    report: ReportArguments,
}

choices! { Format => Form {
    Text,
    Json,
    /// Values from --loads --each for other programs; see docs/TRACE.md
    Bin,
}}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin works only with --loads --each");
    }
    if arguments.loads {
        // Find the values of loads by following the run, even if the run is long.
        let traced = arguments.code.session(|| lens::traced_whole(file))?;
        let rows = &arguments.rows();
        let written = if arguments.each {
            write_loaded(&traced, rows)
        } else {
            write_load_values(&traced, rows)
        };
        written.with_context(|| file.display().to_string())?;
        return Ok(Exit::Success);
    }
    let session = arguments.code.session(|| lens::finished(file))?;
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
        let report = lens::answered(&session, |session| session.condition(&query))?;
        return arguments.show(&report);
    }
    // A summary covers all executions.
    let session = match query.detail {
        Detail::Each => session,
        _ => lens::with_values(session)?,
    };
    let Some(name) = &arguments.var else {
        let report = lens::answered(&session, |session| session.statement_values(&query))?;
        return arguments.show(&report);
    };
    let query = VariableQuery {
        name: name.clone(),
        values: query,
    };
    let report = lens::answered(&session, |session| session.variable_values(&query))?;
    arguments.show(&report)
}

impl Arguments {
    fn rows(&self) -> Rows<'_> {
        self.report.to.rows(self.format, self.limit)
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
        self.report.to.show(report, format)?;
        Ok(Exit::Success)
    }
}
