//! Implements `afterimage memory`.

use afterimage::check::Needs;
use afterimage::memory::{MemoryBytes, MemoryQuery, addresses};
use afterimage::rows::Form;
use anyhow::{Result, bail};

use crate::arguments::{CodeArguments, ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::lens;

/// Show what memory held, what wrote it, and what uses it next
///
/// This includes reads and writes by the host. The run is followed near the moment, and where an
/// index shows that the bytes were written. In a long run, accesses far from the moment may not be
/// found; the answer then says how far it searched. Once the recording has values (afterimage build
/// --lens full), all accesses are found.
///
/// With --var the bytes are those of a source variable, which the debug information (-g) locates.
/// It may be a global variable of any file, or a variable of the function that executes at the
/// moment; only accesses during its call then count.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["address", "var"]))]
#[command(after_help = "\
Examples:
  afterimage memory app.aft --address 0x1040
  afterimage memory app.aft --address 0x1040..0x107f --at 'parse#3'
  afterimage memory app.aft --address 0x1040..0x1043 --all
  afterimage memory app.aft --var 'pool[3].next'
  afterimage memory app.aft --var 'head->key'
  afterimage memory app.aft --var total --at app.c:17#2
  afterimage memory app.aft --var total --at app.c:17#2 --all")]
pub(crate) struct Arguments {
    /// The bytes: A for the 8 bytes from A on, or A..B, both included
    #[arg(long, value_name = "A[..B]", value_parser = addresses, conflicts_with = "var")]
    address: Option<(u64, u64)>,
    /// The bytes of this source variable or expression: total, p->next, s.member
    #[arg(long, value_name = "NAME", conflicts_with = "memory")]
    var: Option<String>,
    /// Index of the memory
    #[arg(long, value_name = "N", default_value_t = 0)]
    memory: u32,
    /// The moment right before this place or block executes, as in `afterimage state`; end is after
    /// the run [default: end; for a local variable, the last moment at which it was in scope]
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    at: Option<String>,
    /// List every read and write of the bytes in order; for a variable with --at, those during its
    /// call
    #[arg(long)]
    all: bool,
    /// With --all, show at most N entries [default: 100 for text on standard output]
    #[arg(long, value_name = "N", value_parser = entries, requires = "all")]
    limit: Option<u64>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    report: ReportArguments,
}

formats! {
    Text,
    /// One object, or one per line with --all
    Json,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    let session = arguments.code.session(|| lens::session(file))?;
    if arguments.all && arguments.at.is_some() && arguments.var.is_none() {
        bail!(
            "{}: --all shows the whole run: leave out --at",
            file.display()
        );
    }
    let bytes = match (&arguments.var, arguments.address) {
        (Some(expression), _) => MemoryBytes::Variable(expression.clone()),
        (None, address) => {
            let (address, bytes) = address.unwrap_or_default();
            MemoryBytes::Range {
                memory: arguments.memory,
                address,
                bytes,
            }
        }
    };
    let query = MemoryQuery {
        bytes,
        at: arguments.at.clone(),
    };
    if arguments.all {
        let traced = lens::with_whole_path(session)?;
        let form = match arguments.format {
            Format::Text => Form::Text,
            Format::Json => Form::Json,
        };
        let rows = &arguments.report.to.rows(form, arguments.limit);
        let written = query.write_accesses(&traced, &|| lens::ensure_values(&traced), rows);
        arguments.report.named(written)?;
        return Ok(Exit::Success);
    }
    let report = session.answer(Needs::Values, lens::build_whole_path, |session| {
        query.answer(session, &|| lens::ensure_values(session))
    })?;
    arguments.report.to.show(&report, arguments.format)?;
    Ok(Exit::Success)
}
