//! Implements `afterimage slice`.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage::check::{self, Needs};
use afterimage::explain::Scene;
use afterimage::memory::addresses;
use afterimage::places::and_why_not;
use afterimage::slice::{self, FoundSlice, Wanted};
use afterimage::why::show::chain;
use afterimage::{Session, SliceAbout, SliceAlong, SliceQuery};
use afterimage_analyses::slices::{Algorithm as Exactness, Direction};
use afterimage_present::{Content, SliceRows, SliceView, grouped, render, shell_word};
use anyhow::{Result, bail};

use crate::arguments::{ViewArguments, choices, formats, rows};
use crate::exit::Exit;
use crate::lens;
use crate::output::{pasted, say, write};

/// Show everything that an execution depends on or influences
///
/// This is a dynamic slice. It contains every execution of a statement that passed a value on,
/// computed an address along the way, or decided whether such an execution ran. It reaches through
/// memory, calls and the host, over the whole run. Nothing outside the slice influenced these
/// executions, but a change there might have let other code run (docs/SLICES.md).
///
/// The slice begins at one execution of a place or, for a line, at all statements that one arrival
/// at the line executes. With --var, the slice begins at the value of a variable right before the
/// place executes. With --address, it begins at bytes of memory. With --forward, it contains every
/// execution whose own slice contains the place.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
afterimage slice [OPTIONS] --at <PLACE#K> <FILE.aft>
       afterimage slice [OPTIONS] --trap <FILE.aft>
       afterimage slice [OPTIONS] --saved <NAME> <FILE.aft>")]
#[command(after_help = "\
Examples:
  afterimage slice app.aft --at parser.c:42#7
  afterimage slice app.aft --at parser.c:42#last --var 'p->next'
  afterimage slice app.aft --at parser.c:42#7 --thin --by statement
  afterimage slice app.aft --at parser.c:42#7 --chain
  afterimage slice app.aft --at @0x1f3#1000 --operand 2 --data-only
  afterimage slice app.aft --at end --address 0x1040..0x1043
  afterimage slice app.aft --trap
  afterimage slice app.aft --at parser.c:42#7 --forward
  afterimage slice app.aft --at report.c:10#last --chop parser.c:42#7
  afterimage slice app.aft --at parser.c:42#7 --depth 2 --by statement
  afterimage slice app.aft --at parser.c:42#7 --save crash
  afterimage slice app.aft --saved crash --annotate
  afterimage slice app.aft --at parser.c:42#7 --format dot | dot -Tsvg > a.svg
  afterimage slice app.aft --at parser.c:42#7 --format html -o slice.html")]
pub(crate) struct Arguments {
    /// The place and its execution: file.c:42#K, func+0x2a#last, @0x1f3#3 [default: the first];
    /// with --var and --address, any moment
    #[arg(long, value_name = "PLACE#K", allow_hyphen_values = true)]
    at: Option<String>,
    /// Slice what ended the program: the statement that trapped, or the call or throw that ended
    /// it, with its operands and the decisions that led there; not with --at, --var, --address,
    /// --operand, --forward, --algorithm or --chain
    #[arg(long, conflicts_with_all = ["at", "var", "address", "operand", "forward", "algorithm"])]
    trap: bool,
    /// Slice the value of a source variable, or of an expression such as `total` or `p->next`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["address", "operand"])]
    var: Option<String>,
    /// Slice bytes of memory 0: A for the 8 bytes from A on, or A..B, both included
    #[arg(long, value_name = "A[..B]", value_parser = addresses, conflicts_with = "operand")]
    address: Option<(u64, u64)>,
    /// Slice one operand of the statement: left, right, address, value, condition, …, or its
    /// number from 1
    #[arg(long, value_name = "NAME")]
    operand: Option<String>,
    /// Show what depends on the place instead: everything that it influenced
    #[arg(long)]
    forward: bool,
    /// Show only what also depends on this other place, that is, how it influenced --at; not with
    /// --forward, --depth or --chain
    #[arg(long, value_name = "PLACE#K", conflicts_with = "forward")]
    chop: Option<String>,
    /// Precision of the slice
    #[arg(long, value_name = "ALGORITHM", default_value = "full")]
    algorithm: Algorithm,
    /// Follow data dependences only
    #[arg(long, conflicts_with_all = ["control_only", "thin"])]
    data_only: bool,
    /// Follow control dependences only
    #[arg(long, conflicts_with = "thin")]
    control_only: bool,
    /// Follow values only, without control dependences or the computation of addresses
    #[arg(long)]
    thin: bool,
    /// Show only what is at most N dependences away, up to 253; not with --chop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=SliceQuery::DEEPEST.into()), conflicts_with = "chop")]
    depth: Option<u8>,
    /// Keep the slice in the recording under this name; the same question is then answered at once
    #[arg(long, value_name = "NAME", value_parser = slice::name)]
    save: Option<String>,
    /// Show the slice kept under this name; not with options that select a slice, nor with --save
    /// or --chain
    #[arg(long, value_name = "NAME", conflicts_with_all = ["at", "trap", "var", "address", "operand", "forward", "chop", "algorithm", "data_only", "control_only", "thin", "depth", "save"])]
    saved: Option<String>,
    /// After the slice, in text, also show the chain of values that leads to --at, as `afterimage
    /// why` does; not with --trap, --saved, --address, --forward or --chop
    #[arg(long, conflicts_with_all = ["saved", "trap", "address", "forward", "chop"])]
    chain: bool,
    /// Kind of rows [default: line]
    #[arg(long, conflicts_with = "annotate")]
    by: Option<By>,
    /// Show whole source files as text, with the slice marked; not with --by
    #[arg(long)]
    annotate: bool,
    /// Show at most N rows [default: 200 in text on standard output]; not with --annotate
    #[arg(long, value_name = "N", value_parser = rows, conflicts_with = "annotate")]
    limit: Option<usize>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    view: ViewArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Line,
    Statement,
}

formats! {
    Text,
    Json,
    Csv,
    /// A page with the source files and the slice marked in them
    Html,
    /// A graph for Graphviz of the lines and their dependences
    Dot,
}

choices! { Algorithm => Exactness {
    /// By executions: everything that this one execution depends on; also called instances
    #[value(alias = "instances")]
    Full,
    /// By statements: over dependences of any execution up to that moment or, with --forward, in
    /// the whole run
    Edges,
    /// By executed statements: over dependences that the code allows, through any memory
    Nodes,
}}

/// The default number of rows of text on standard output.
const ROWS: usize = 200;

/// The maximum number of edges that Graphviz lays out within seconds.
const MANY_EDGES: usize = 20_000;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let wanted = arguments.wanted()?;
    let report = &arguments.view.report;
    let session = arguments.view.session(lens::finished)?;
    let places = [arguments.at.as_deref(), arguments.chop.as_deref()];
    check::places(&session, Needs::Values, places.into_iter().flatten())?;
    if arguments.trap {
        check::killed(&session, "ask with --at")?;
    }
    let build = match wanted {
        Wanted::Kept(_) => lens::build_whole_path,
        Wanted::Answer(_) => lens::build_values,
    };
    let save = arguments.save.as_deref();
    let show =
        |session: &Session| slice::find(session, &wanted, save, |found| arguments.shown(found));
    // A slice of limited depth may need only a few stretches of the run.
    if arguments.depth.is_some() && save.is_none() && !arguments.chain {
        session.answer(Needs::Values, build, show)?;
    } else {
        report.named(build(&session).and_then(|()| show(&session)))?;
    }
    lens::say_not_at_hand(&session);
    Ok(Exit::Success)
}

impl Arguments {
    fn wanted(&self) -> Result<Wanted> {
        self.check()?;
        if let Some(name) = &self.saved {
            return Ok(Wanted::Kept(name.clone()));
        }
        if self.at.is_none() && !self.trap {
            bail!(
                "choose what to slice: an execution of a place with --at, what ended the \
                 program with --trap, or a kept slice with --saved"
            );
        }
        Ok(Wanted::Answer(self.query()))
    }

    /// Refuses options that would have no effect.
    fn check(&self) -> Result<()> {
        let format = self.format;
        if self.annotate && format != Format::Text {
            bail!("--annotate writes only text; --format html has the same files as a page");
        }
        if self.limit.is_some() && matches!(format, Format::Html | Format::Dot) {
            bail!("--limit shortens tables and JSON: leave it out for a page or a graph");
        }
        if self.by.is_some() && format == Format::Html {
            bail!(
                "--by selects the rows of a table, but --format html has whole files; leave \
                it out"
            );
        }
        if self.chain && format != Format::Text {
            bail!("--chain writes only text; for other formats use afterimage why");
        }
        Ok(())
    }

    fn query(&self) -> SliceQuery {
        let at = self.at.clone().unwrap_or_default();
        let about = match (&self.var, self.address, &self.operand) {
            _ if self.trap => SliceAbout::Trap,
            (Some(name), ..) => SliceAbout::Variable {
                at,
                name: name.clone(),
            },
            (_, Some((address, length)), _) => SliceAbout::Bytes {
                at,
                address,
                length,
            },
            (.., Some(operand)) => SliceAbout::Operand {
                at,
                operand: operand.clone(),
            },
            _ => SliceAbout::Statement { at },
        };
        SliceQuery {
            about,
            direction: if self.forward {
                Direction::Forward
            } else {
                Direction::Backward
            },
            algorithm: self.algorithm.into(),
            along: match (self.data_only, self.control_only, self.thin) {
                (true, ..) => SliceAlong::Data,
                (_, true, _) => SliceAlong::Control,
                (.., true) => SliceAlong::Thin,
                _ => SliceAlong::All,
            },
            chop: self.chop.clone(),
            depth: self.depth,
        }
    }

    fn limit(&self) -> usize {
        let on_screen =
            self.format == Format::Text && self.view.report.to.output.is_none() && !self.annotate;
        let limit = self.limit.or(on_screen.then_some(ROWS));
        limit.unwrap_or(usize::MAX)
    }

    /// Shows a slice, and stores it if requested.
    fn shown(&self, found: &FoundSlice<'_, '_>) -> Result<()> {
        let report = found.report()?;
        let rows = match (self.annotate, self.by) {
            (true, _) => SliceRows::Annotated,
            (false, Some(By::Statement)) => SliceRows::Statements,
            (false, _) => SliceRows::Lines,
        };
        let limit = self.limit();
        let texts = match (self.format, rows) {
            (Format::Text, SliceRows::Statements) => found.texts(&report, limit)?,
            _ => Vec::new(),
        };
        let edges = match self.format {
            Format::Dot => found.edges()?,
            _ => BTreeSet::new(),
        };
        if edges.len() > MANY_EDGES {
            say(format_args!(
                "the graph has {} dependences between statements; if that is too many for \
                 Graphviz, narrow the slice with --depth, --thin or --chop",
                grouped(edges.len() as u64)
            ));
        }
        let view = SliceView {
            report: &report,
            rows,
            limit,
            texts: &texts,
            code: found.code(),
            sources: found.sources(),
            edges,
        };
        let (output, style) = (
            self.view.report.to.output.as_deref(),
            self.view.report.to.style(),
        );
        let written = write(output, Content::Text, |out| {
            render(out, &view, self.format, style)?;
            match found.scene.filter(|_| self.chain) {
                Some(scene) => self.chain(scene, out),
                None => Ok(()),
            }
        });
        // Show the slice even if it cannot be stored, and store it even if the reader of the output
        // left early.
        if let Some(name) = &self.save {
            found.keep(name)?;
            say(format_args!(
                "kept as {name:?}: {} statements; show it again with: afterimage slice {} \
                 --saved {}",
                grouped(report.statements.len() as u64),
                pasted(&self.view.report.file),
                shell_word(name)
            ));
        }
        written
    }

    fn chain(&self, scene: &Scene<'_, '_>, out: &mut dyn Write) -> Result<()> {
        let file = &self.view.report.file;
        let at = self.at.as_deref().unwrap_or_default();
        let about = (self.var.as_deref(), self.operand.as_deref());
        writeln!(out)?;
        chain(out, scene, at, about).map_err(|error| and_why_not(error, file, at))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;
    use afterimage_present::slice_command;

    /// Returns the query of a command line, as clap parses it.
    fn read(command: &str) -> SliceQuery {
        let words = command.strip_prefix("afterimage slice ").unwrap();
        let words = words.split(' ').map(|word| word.trim_matches('\''));
        let clap = Arguments::augment_args(Command::new("slice").no_binary_name(true));
        let matches = clap.try_get_matches_from(words).unwrap();
        Arguments::from_arg_matches(&matches).unwrap().query()
    }

    #[test]
    fn a_command_asks_what_it_was_made_of() {
        let at = "@0x1f3#7".to_owned();
        let all = [
            SliceAbout::Statement { at: at.clone() },
            SliceAbout::Operand {
                at: at.clone(),
                operand: "left".to_owned(),
            },
            SliceAbout::Variable {
                at: at.clone(),
                name: "p->next".to_owned(),
            },
            SliceAbout::Bytes {
                at: at.clone(),
                address: 0x1040,
                length: 4,
            },
            SliceAbout::Trap,
        ];
        let along = [
            SliceAlong::All,
            SliceAlong::Data,
            SliceAlong::Control,
            SliceAlong::Thin,
        ];
        let how = [Exactness::Full, Exactness::Edges, Exactness::Nodes];
        let mut asked = 0;
        for about in all {
            for along in along {
                for algorithm in how {
                    for (direction, chop, depth) in [
                        (Direction::Backward, None, None),
                        (Direction::Forward, None, Some(2)),
                        (Direction::Backward, Some("a.c:4#last".to_owned()), None),
                    ] {
                        let query = SliceQuery {
                            about: about.clone(),
                            direction,
                            algorithm,
                            along,
                            chop,
                            depth,
                        };
                        if query.refusal().is_none() {
                            let command = slice_command("app.aft", &query);
                            assert_eq!(read(&command), query, "{command}");
                            asked += 1;
                        }
                    }
                }
            }
        }
        assert!(asked > 150, "{asked}");
    }
}
