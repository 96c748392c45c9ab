//! `afterimage addresses`

use afterimage::Session;
use afterimage::addresses::{Accesses, of_stretches};
use afterimage::named::{NamedProgram, with_names};
use afterimage::steps::follow;
use afterimage_present::document::JsonLines;
use afterimage_present::{
    PresentError, accessed_binary, accessed_rows, accessed_text, address_rows, address_stats_rows,
    address_stats_text, addresses_text,
};
use afterimage_replay::steps::{AccessSite, AccessedStretches, address_stats};
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::lens::{session, with_whole_path};
use crate::output::write;

/// Show which addresses loads and stores accessed
///
/// It lists each execution, or sums them up. Loads and stores are those of single values; what bulk operations and the host access is in `afterimage trace --level memory`. The run is
/// followed from its beginning; for --instances and #K only where these are executed, from the last checkpoint or snapshot before.
/// Different addresses and strides are told apart up to 4,096 of them. An access that trapped is listed, and marked; sums and --each do not have it.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["at", "all"]))]
#[command(after_help = "\
Examples:
  afterimage addresses app.aft --all
  afterimage addresses app.aft --all --each --format bin -o addresses.bin
  afterimage addresses app.aft --at parser.c:42
  afterimage addresses app.aft --at @0x1f3 --instances 1000..1010
  afterimage addresses app.aft --at parse+0x2a --stats
In text, 0x1040 +4 x 1000 are 1000 executions after each other, of which each accessed what is 4 bytes after the one before.")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function for all of its loads and stores; #K or #last at its end is one execution, of a line one arrival at it, of a function one call
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// Which executions of each: A..B, K, last, or t=T for those in block T and later
    #[arg(long, value_name = "WHICH", requires = "at", conflicts_with = "stats")]
    instances: Option<String>,
    /// Sum up: how many accesses and addresses, the smallest and largest, the most frequent stride
    #[arg(long)]
    stats: bool,
    /// Sum up those of the whole program
    #[arg(long, conflicts_with = "at")]
    all: bool,
    /// All addresses of the whole program instead, one instruction's after the other, up to 256 at a time
    #[arg(long, requires = "all", conflicts_with = "stats")]
    each: bool,
    /// At most N lines [default: 100 for text on standard output]
    #[arg(long, value_name = "N|all", value_parser = entries)]
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
    /// One object a line
    Json,
    /// Addresses of --all --each for other programs, see docs/TRACE.md
    Bin,
}

/// Lines that text has on standard output if nothing else is asked for.
const LINES: u64 = 100;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin is for --all --each");
    }
    let session = session(file)?;
    let early = arguments.answer_early(&session);
    if early.with_context(|| file.display().to_string())? {
        return Ok(Exit::Success);
    }
    let session = with_whole_path(session)?;
    let found = with_names(&session, |program| arguments.answer(program));
    found.with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

impl Arguments {
    /// Whether stretches of the run gave the answer.
    fn answer_early(&self, session: &Session) -> Result<bool> {
        let Some(at) = self.at.as_deref().filter(|_| !self.stats) else {
            return Ok(false);
        };
        let found = of_stretches(session, at, self.instances.as_deref(), |found| {
            self.listed(found)
        });
        Ok(found?.is_some())
    }

    fn answer(&self, program: NamedProgram<'_>) -> Result<()> {
        if self.each {
            return self.each(program);
        }
        let Some(at) = &self.at else {
            return self.summed(program, None);
        };
        let found = Accesses::find(program, at, self.instances.as_deref())?;
        if !self.stats {
            return self.listed(&found);
        }
        if found.is_one {
            bail!("{at} names one execution, of which there is nothing to sum up")
        }
        self.summed(program, Some(&found.sites))
    }

    fn limit(&self) -> Option<u64> {
        let screen = self.format == Format::Text && self.report.output.is_none();
        self.limit.or(screen.then_some(LINES))
    }

    fn summed(&self, program: NamedProgram<'_>, sites: Option<&[AccessSite]>) -> Result<()> {
        let stats = follow(program.session, |run, log| {
            Ok(address_stats(run, log, sites)?)
        })?;
        let scene = &program.scene(self.report.style());
        write(self.report.output.as_deref(), false, |out| {
            match self.format {
                Format::Text => {
                    if address_stats_text(out, scene, &stats, self.limit())? {
                        writeln!(out, "… and more: see them with --limit N, or -o FILE")?;
                    }
                }
                Format::Json | Format::Bin => {
                    address_stats_rows(&mut JsonLines(out), scene, &stats)?
                }
            }
            Ok(())
        })
    }

    /// All addresses of the program.
    fn each(&self, program: NamedProgram<'_>) -> Result<()> {
        let (scene, limit) = (&program.scene(self.report.style()), self.limit());
        follow(program.session, |run, log| {
            let mut stretches = AccessedStretches::new(run, log)?;
            let mut next = || {
                let next = stretches.next();
                next.map_err(|error| PresentError::Path(Box::new(error)))
            };
            let (output, binary) = (self.report.output.as_deref(), self.format == Format::Bin);
            write(output, binary, |out| {
                match self.format {
                    Format::Text => {
                        if accessed_text(out, scene, &mut next, limit)? {
                            writeln!(out, "… and more: see them with --limit N, or -o FILE")?;
                        }
                    }
                    Format::Json => accessed_rows(&mut JsonLines(out), scene, &mut next, limit)?,
                    Format::Bin => accessed_binary(out, scene, &mut next, limit)?,
                }
                Ok(())
            })
        })
    }

    fn listed(&self, found: &Accesses<'_, '_>) -> Result<()> {
        let (scene, limit) = (&found.program.scene(self.report.style()), self.limit());
        found.each(|next| {
            write(self.report.output.as_deref(), false, |out| {
                let sites = &found.sites;
                match self.format {
                    Format::Text => {
                        if addresses_text(out, scene, sites, next, limit)? {
                            writeln!(
                                out,
                                "… and more: see them with --limit N, --instances A..B, or -o FILE"
                            )?;
                        }
                    }
                    Format::Json | Format::Bin => {
                        address_rows(&mut JsonLines(out), scene, sites, next, limit)?
                    }
                }
                Ok(())
            })
        })
    }
}
