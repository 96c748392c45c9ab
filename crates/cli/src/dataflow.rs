//! Implements `afterimage dataflow`.

use afterimage::DataflowQuery;
use afterimage::files;
use afterimage::named::{NamedProgram, with_names};
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::lens::traced_whole;

/// Answer a GEN-KILL question at each execution of a place
///
/// The answer is "always", "never" or the number of executions, with the places that decided it. It
/// covers only the path that the run took: it claims nothing about other paths, and assumes nothing
/// about this path. A fact is about the call that executes the place, including its callees. The
/// report also shows which places decided single executions, which are numbered from 1 in order of
/// time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Facts:
  available:PLACE  the result of a load, or of an operator that only computes,
                   was read, written or computed before and has not changed
                   since, as far as the code shows without addresses
  reaching:PLACE   which definitions of its local a local.get reads
  last-use:PLACE   the local of a local.get is not read again before it is set
                   or the call ends
  gen=PLACES kill=PLACES at=PLACE
                   of all places in gen and kill, a place in gen executed last
                   before `at`; with the word ahead, a place in gen executes
                   next. Separate several places by commas, and the parts by
                   spaces or semicolons; gen or kill may be left out

Write places as file.c:42, func+0x2a or @0x1f3. Write functions by name, or by
index as func[12] if the name has spaces or commas. A line means all of its
operators to which the fact can apply. In gen and kill, a function means its
calls. To ask about a single execution, append #7 or #last to the place of the
operator.

Examples:
  afterimage dataflow app.aft --fact available:@0x1f3
  afterimage dataflow app.aft --fact available:parser.c:42 --paths 5
  afterimage dataflow app.aft --fact reaching:parse+0x2a
  afterimage dataflow app.aft --fact reaching:parse+0x2a#7
  afterimage dataflow app.aft --fact 'gen=lock kill=unlock at=shared.c:17'
  afterimage dataflow app.aft --fact 'gen=free kill=a.c:17 at=a.c:20 ahead'")]
pub(crate) struct Arguments {
    /// The fact to ask about
    #[arg(long, value_name = "FACT")]
    fact: String,
    /// Show the N path traces that the most calls took, and the blocks of the call at which the
    /// fact held
    #[arg(long, value_name = "N", value_parser = entries)]
    paths: Option<u64>,
    /// For each place that decided, list N stretches of executions, or N series of equal stretches
    /// [default: 3 for text, 100 for JSON]
    #[arg(long, value_name = "N", value_parser = entries)]
    instances: Option<u64>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

formats! {
    Text,
    Json,
    /// One row for each operator and each place that decided
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
                "--paths and --instances work for text and JSON; csv has one row for each place \
                 that decided"
            );
        }
        let found = query.answer(program)?;
        if found.rows.iter().any(|row| row.one.is_some()) {
            if is_csv {
                bail!(
                    "{}: csv covers all executions; for one, choose --format text or json",
                    found.at
                );
            }
            if lists {
                bail!(
                    "{} is one execution: leave out --paths and --instances, or remove the # \
                     and the text after it",
                    found.at
                );
            }
        }
        let style = self.report.to.style();
        found.shown(query, program, style, |view| {
            self.report.to.show(view, self.format)
        })
    }
}
