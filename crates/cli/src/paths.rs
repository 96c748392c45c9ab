//! Implements `afterimage paths`.

use afterimage::{PathsAbout, PathsQuery};
use afterimage_present::{
    PathsJson, TraceForm, TraceListing, Whole, found_text, hot_text, narrow, paths_json,
    trace_counts_text, traces_text,
};
use afterimage_profile::CodeFilter;
use afterimage_replay::whole_path::CountOrder;
use anyhow::Result;

use crate::arguments::{CodeArguments, ReportArguments, choices, formats};
use crate::exit::Exit;
use crate::lens::finished;

/// Show which paths a run took, and how often
///
/// It shows each function's unique path traces and hot paths, and where a path occurs. A path trace
/// is the sequence of blocks that one call to a function executes itself. Blocks are numbered as in
/// `afterimage cfg`. Times count the executed blocks of the whole run, from 1.
///
/// The path of the run is built when it is first needed, by re-executing the recording.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage paths app.aft
  afterimage paths app.aft --function main
  afterimage paths app.aft --function main --form twpp
  afterimage paths app.aft --hot
  afterimage paths app.aft --find 2.3.4 --function main
  afterimage paths app.aft --find 'main:2.3>f:0.1'
  afterimage paths app.aft --find 'f:8.9<main:4'
  afterimage paths app.aft --find 'main:3>f:0.9<main:4'

2.3.4 finds where the function executes blocks 2, 3 and 4. In a path over
several functions, > is a call and < a return: main:2.3>f:0.1 finds where
main executes 2 and 3 and then calls f, which begins with 0 and 1.")]
pub(crate) struct Arguments {
    /// Show only this function, by index, name or demangled name: its path traces, its hot paths,
    /// or the blocks to find
    #[arg(long, value_name = "F")]
    function: Option<String>,
    /// Show hot paths: acyclic stretches (Ball and Larus), with counts, shares and source lines
    #[arg(long, conflicts_with = "find")]
    hot: bool,
    /// Find where these blocks run in succession, with any calls in between; `>` is a
    /// call, `<` a return
    #[arg(long, value_name = "2.3.4")]
    find: Option<String>,
    /// Form of the path traces of a function [default: blocks]
    #[arg(long, requires = "function", conflicts_with_all = ["hot", "find"])]
    form: Option<Form>,
    /// Write long traces in full
    #[arg(long, requires = "function", conflicts_with_all = ["hot", "find"])]
    whole: bool,
    /// Order of the functions [default: calls]
    #[arg(long, conflicts_with_all = ["function", "hot", "find"])]
    sort: Option<Order>,
    /// Show only the first N functions, traces, paths or occurrences [default: 25 for text; for
    /// JSON 1000 occurrences, otherwise all]
    #[arg(long = "limit", alias = "top", value_name = "N")]
    top: Option<usize>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    report: ReportArguments,
}

choices! { Form => TraceForm {
    /// Sequences of blocks
    Blocks,
    /// Sequences of dynamic basic blocks, with dictionaries that list their blocks
    #[value(name = "dbb")]
    Dynamic,
    /// The steps at which each dynamic basic block runs: l, l:h or l:h:s
    #[value(name = "twpp")]
    Timestamped,
}}

choices! { Order => CountOrder {
    /// Most calls first
    Calls,
    /// Most executed blocks first
    Blocks,
    /// Most unique path traces first
    #[value(name = "traces")]
    Paths,
    /// In program order
    Program,
}}

formats!(Text, Json);

/// The default number of rows in text.
const TEXT_ROWS: usize = 25;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = arguments
        .code
        .session(|| finished(&arguments.report.file))?;
    let style = arguments.report.to.style();
    let form = arguments.form.unwrap_or(Form::Blocks).into();
    let whole = if arguments.whole {
        Whole::All
    } else {
        Whole::Beginning
    };
    let found = arguments.query()?.answer(&session, |found, names| {
        arguments.report.to.write(|out| {
            if arguments.format == Format::Json {
                return Ok(paths_json(out, found, names)?);
            }
            narrow(out, style, |out| {
                match found {
                    PathsJson::Found(found) => found_text(out, found, names, style)?,
                    PathsJson::Hot(hot) => hot_text(out, hot, names, style)?,
                    PathsJson::Traces(traces, rows) => {
                        let listing = TraceListing { form, whole, rows };
                        traces_text(out, traces, names, listing, style)?;
                    }
                    PathsJson::Counts(counts) => trace_counts_text(out, counts, names, style)?,
                }
                Ok(())
            })
        })
    });
    arguments.report.named(found)?;
    Ok(Exit::Success)
}

impl Arguments {
    fn query(&self) -> Result<PathsQuery> {
        let text = self.format == Format::Text;
        // The other formats are complete, unless code was chosen.
        let code = if text || self.code.is_given() {
            self.code.filter()?
        } else {
            CodeFilter::All
        };
        Ok(PathsQuery {
            about: match &self.find {
                Some(text) => PathsAbout::Occurrences(text.clone()),
                None if self.hot => PathsAbout::Hot,
                None => PathsAbout::Traces(self.sort.map(CountOrder::from).unwrap_or_default()),
            },
            function: self.function.clone(),
            top: self.top.or(text.then_some(TEXT_ROWS)),
            blocks: None,
            code,
        })
    }
}
