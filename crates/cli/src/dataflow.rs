//! `afterimage dataflow`

use afterimage::dataflow::DataflowQuery;
use afterimage::files;
use afterimage::named::{NamedProgram, with_names};
use afterimage_present::render;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::lens::traced_whole;
use crate::output::write;

/// Answer a GEN-KILL question at each execution of a place
///
/// The answer is always, never, or how often, and what decided it. The path that was taken is looked at and no other: nothing is said of paths that the run did not take, and nothing is assumed of those that it took. A fact is about the
/// call in which the place is executed, with all that it calls. Of single executions it is told which one decided what: they are numbered from 1, in the order of time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Facts:
  available:PLACE  what a load, or an operator that only computes, gives was
                   read, written or computed before, and has not changed since,
                   as far as the code tells without addresses
  reaching:PLACE   which definitions of its local a local.get reads
  last-use:PLACE   the local of a local.get is not read again before it is set,
                   or the call ends
  gen=PLACES kill=PLACES at=PLACE
                   it was a place of gen, not of kill, that was executed last
                   before; with the word ahead, that is executed next. Several
                   are separated by commas; one of gen and kill may be left
                   out; parts are separated by spaces or semicolons

Places are file.c:42, func+0x2a and @0x1f3, functions by name or, if that has
spaces or commas in it, as func[12], by index. Of a line it is all operators there
that the fact can be about. For gen and kill, a function is a call of it. With
#7 or #last behind the place of an operator that is asked about, only this
execution is.

Examples:
  afterimage dataflow app.aft --fact available:@0x1f3
  afterimage dataflow app.aft --fact available:parser.c:42 --paths 5
  afterimage dataflow app.aft --fact reaching:parse+0x2a
  afterimage dataflow app.aft --fact reaching:parse+0x2a#7
  afterimage dataflow app.aft --fact 'gen=lock kill=unlock at=shared.c:17'
  afterimage dataflow app.aft --fact 'gen=free kill=a.c:17 at=a.c:20 ahead'")]
pub(crate) struct Arguments {
    /// The question
    #[arg(long, value_name = "FACT")]
    fact: String,
    /// Show the N path traces that most calls took, and at which of the call's blocks the fact held
    #[arg(long, value_name = "N", value_parser = entries)]
    paths: Option<u64>,
    /// Of each that decided, list N stretches of executions, or N series of equal ones [default: 3 for text, 100 for JSON]
    #[arg(long, value_name = "N", value_parser = entries)]
    instances: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

formats! {
    Text,
    Json,
    /// A row for each operator and what decided
    Csv,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    let usual = match arguments.format {
        Format::Text => 3,
        Format::Json => 100,
        Format::Csv => 0,
    };
    let query = DataflowQuery {
        fact: arguments.fact.clone(),
        paths: arguments.paths.unwrap_or(0),
        instances: arguments.instances.unwrap_or(usual),
    };
    query.check()?;
    files::ended(file)?;
    let session = traced_whole(file)?;
    let found = with_names(&session, |program| arguments.answer(&query, program));
    found.with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

impl Arguments {
    fn answer(&self, query: &DataflowQuery, program: NamedProgram<'_>) -> Result<()> {
        let lists = self.paths.is_some() || self.instances.is_some();
        let is_csv = self.format == Format::Csv;
        if is_csv && lists {
            bail!(
                "--paths and --instances are for text and JSON: comma-separated values have a row for what decided"
            );
        }
        let found = query.answer(program)?;
        if found.rows.iter().any(|row| row.one.is_some()) {
            if is_csv {
                bail!(
                    "{}: comma-separated values are of all executions; of one, ask for text or JSON",
                    found.at
                );
            }
            if lists {
                bail!(
                    "{} is one execution: leave out --paths and --instances, or what is behind the #",
                    found.at
                );
            }
        }
        let style = self.report.style();
        found.shown(query, program, style, |view| {
            write(self.report.output.as_deref(), false, |out| {
                Ok(render(out, view, self.format, style)?)
            })
        })
    }
}
