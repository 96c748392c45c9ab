//! `afterimage memory`

use afterimage::memory::{MemoryBytes, MemoryQuery, addresses};
use afterimage::rows::Form;
use afterimage_present::{MemoryReport, render};
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Show what memory held, who wrote it, and who uses it next
///
/// What the host read and wrote is there, too. The run is followed near the moment, and where an index says that the bytes were written. In a long run what is far
/// away may not be found; then the answer says how far was looked. Once values are in the recording (afterimage build --lens full), everything is found.
///
/// With --var the bytes are those of a variable of the source, as the debug information (-g) has it: a global one of any file, or, with --at, one of the
/// function that is executed then, for as long as that call lasts.
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
    /// The bytes: A for the 8 bytes from there on, or A..B, both included
    #[arg(long, value_name = "A[..B]", value_parser = addresses, conflicts_with = "var")]
    address: Option<(u64, u64)>,
    /// The bytes of this variable of the source, or of an expression: total, p->next, s.member
    #[arg(long, value_name = "NAME", conflicts_with = "memory")]
    var: Option<String>,
    /// Which memory, by index
    #[arg(long, value_name = "N", default_value_t = 0)]
    memory: u32,
    /// When: right before this place is executed, or this block, as in `afterimage state`; end is when the run was over [default: end]
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    at: Option<String>,
    /// Every read and write of the bytes in order instead; of a variable with --at, those of the call that it lives in
    #[arg(long)]
    all: bool,
    /// With --all: at most N entries [default: 100 for text on standard output]
    #[arg(long, value_name = "N", value_parser = entries, requires = "all")]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

formats! {
    Text,
    /// One object, or with --all one a line
    Json,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    let session = lens::session(file)?;
    let name = || file.display().to_string();
    if arguments.all && arguments.at.is_some() && arguments.var.is_none() {
        bail!("{}: --all shows the whole run, so leave --at out", name());
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
    let early = match arguments.all {
        false => session.ask_stretches(|session| query.answer(session, &|| Ok(()))),
        true => Ok(None),
    };
    if let Some(report) = early.with_context(name)? {
        return show(&arguments, &report);
    }
    let traced = lens::with_whole_path(session)?;
    let ensure = || lens::values(&traced).map(|_| ());
    if arguments.all {
        let form = match arguments.format {
            Format::Text => Form::Text,
            Format::Json => Form::Json,
        };
        let rows = &arguments.report.rows(form, arguments.limit);
        let written = query.write_accesses(&traced, &ensure, rows);
        written.with_context(name)?;
        return Ok(Exit::Success);
    }
    let report = query.answer(&traced, &ensure).with_context(name)?;
    show(&arguments, &report)
}

fn show(arguments: &Arguments, report: &MemoryReport) -> Result<Exit> {
    let (out, style) = (arguments.report.output.as_deref(), arguments.report.style());
    write(out, false, |out| {
        Ok(render(out, report, arguments.format, style)?)
    })?;
    Ok(Exit::Success)
}
