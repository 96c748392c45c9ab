//! `afterimage why`

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;

use afterimage::explain::Scene;
use afterimage::why::{Byte, Start, Way, WhyAbout, WhyQuery, printed};
use afterimage_analyses::why::Stream;
use afterimage_present::document::row;
use afterimage_present::{
    WhyDot, WhyEntry, WhyHead, WhyText, grouped, shell_word, why_head, why_origin,
};
use anyhow::{Context, Result};
use clap::ArgGroup;

use crate::arguments::{ReportArguments, entries};
use crate::build::Lens;
use crate::early;
use crate::exit::Exit;
use crate::lens;
use crate::output::{pasted, write};

/// Explain a value: where it came from, step by step, down to the constant, the host call or the input byte that it started from
///
/// The way back is a chain, not a slice. What only moved the value (locals, memory, copies, arguments and results) is told in one line. Where it was computed, the
/// operands are shown with their values, and one of them is followed: none that is a constant; the one on the shortest way to something that the program was given, if there is
/// one near; otherwise one that was computed itself, the earliest. How to ask about the others stands below. What repeats is folded.
///
/// What is followed are values, not the addresses that they were read from, unless that is the way to what the program was given, through a table that nothing ever wrote.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = ArgGroup::new("about").required(true))]
#[command(override_usage = "\
afterimage why [OPTIONS] --at <PLACE#K> <FILE.aft>
       afterimage why [OPTIONS] <--stdout|--stderr> <BYTE|line:N> <FILE.aft>
       afterimage why [OPTIONS] --trap <FILE.aft>")]
#[command(after_help = "\
Examples:
  afterimage why app.aft --at parser.c:42#7
  afterimage why app.aft --at parser.c:42#7 --var depth
  afterimage why app.aft --at @0x1f3#last
  afterimage why app.aft --at @0x1f3#1000 --operand left
  afterimage why app.aft --stdout 1000
  afterimage why app.aft --stdout line:3
  afterimage why app.aft --stderr 12
  afterimage why app.aft --trap
  afterimage why app.aft --at parse+0x2a --format json
  afterimage why app.aft --at parser.c:42#7 --format dot | dot -Tsvg > a.svg")]
pub(crate) struct Arguments {
    /// The statement and which of its executions: func+0x2a#K, @0x1f3#last [default: the first]; or file.c:42#K, the last statement with a value that the K-th arrival at the line executes; of func#K, that the K-th call does
    #[arg(
        long,
        value_name = "PLACE#K",
        group = "about",
        allow_hyphen_values = true
    )]
    at: Option<String>,
    /// Explain a byte that the program printed, counted from 0, or with line:N, from 1, the first one of a line
    #[arg(long, value_name = "BYTE|line:N", group = "about")]
    stdout: Option<Byte>,
    /// Explain a byte that the program printed as an error, counted in the same way
    #[arg(long, value_name = "BYTE|line:N", group = "about")]
    stderr: Option<Byte>,
    /// Explain what killed the program: the operand that trapped, the exit code, or the branch that led to where it ended
    #[arg(long, group = "about")]
    trap: bool,
    /// Explain what a variable of the source, or an expression such as p->next, holds right before the place is executed; --at is then a moment as for `afterimage state`
    #[arg(long, value_name = "NAME", requires = "at", conflicts_with = "operand")]
    var: Option<String>,
    /// Explain this operand of the statement instead of its value: left, right, address, value, condition, …, or its number from 1
    #[arg(long, value_name = "OPERAND", requires = "at")]
    operand: Option<String>,
    /// Show a long way from beginning to end as text, too: otherwise only both ends of it
    #[arg(long)]
    all: bool,
    /// Go back at most so many moves and computations
    #[arg(long, value_name = "N", default_value_t = WhyQuery::STEPS, value_parser = entries)]
    steps: u64,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    /// One object a line: first what was asked about, then the entries
    Json,
    /// A graph for Graphviz
    Dot,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    let session = lens::finished(file)?;
    early::places(&session, Lens::Full, arguments.at.as_deref())?;
    if arguments.trap {
        early::killed(&session, "ask with --at or --stdout")?;
    }
    let put = [
        (Stream::Output, arguments.stdout),
        (Stream::Error, arguments.stderr),
    ];
    for (stream, byte) in put {
        if let Some(byte) = byte
            && !early::is_built(&session, Lens::Full)
        {
            let found = printed::check(session.file(), session.program(), &stream, byte);
            found.with_context(|| file.display().to_string())?;
        }
    }
    lens::opened(&session, |scene| answer(&arguments, scene))
        .with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

impl Arguments {
    fn query(&self) -> WhyQuery {
        let about = match (&self.at, &self.var) {
            (Some(at), Some(name)) => WhyAbout::Variable {
                at: at.clone(),
                name: name.clone(),
            },
            (Some(at), None) => WhyAbout::Statement {
                at: at.clone(),
                operand: self.operand.clone(),
            },
            (None, _) => match (self.stdout, self.stderr) {
                (Some(byte), _) => WhyAbout::Output(byte),
                (None, Some(byte)) => WhyAbout::Error(byte),
                (None, None) => WhyAbout::Trap,
            },
        };
        WhyQuery {
            about,
            steps: self.steps,
        }
    }
}

fn answer(arguments: &Arguments, scene: &Scene<'_, '_>) -> Result<()> {
    let file = &arguments.report.file;
    let query = arguments.query();
    let start = query.start(scene)?;
    write(arguments.report.output.as_deref(), false, |out| {
        let mut begun = start.prelude.clone();
        match arguments.format {
            Format::Text => {
                let rest = if arguments.all {
                    Rest::Shown
                } else {
                    Rest::Hidden("--all shows them")
                };
                text(out, file, scene, &start, (query.steps, rest))?;
            }
            Format::Dot => {
                let mut way = Way::new(scene, &start, query.steps)?;
                way.begin(&mut begun)?;
                let mut graph = WhyDot::new(out, start.about())?;
                loop {
                    for entry in begun.drain(..) {
                        graph.entry(&entry)?;
                    }
                    if !way.more(&mut begun)? && begun.is_empty() {
                        break;
                    }
                }
                graph.finish()?;
            }
            Format::Json => {
                let place = start.place(scene)?;
                let place = place.map(|spot| scene.place(spot)).transpose()?;
                let head = WhyHead {
                    about: start.about().to_owned(),
                    value: start.value.clone(),
                    at: place.map(|place| place.at),
                    written: start.written.map(Into::into),
                };
                why_head(out, &head)?;
                out.flush()?;
                let mut way = Way::new(scene, &start, query.steps)?;
                loop {
                    for entry in begun.drain(..) {
                        row::<WhyHead>(out, &entry)?;
                    }
                    out.flush()?;
                    if !way.more(&mut begun)? && begun.is_empty() {
                        break;
                    }
                }
            }
        }
        Ok(())
    })
}

/// Where a value of a statement, of an operand of it, or of a variable comes from, as text.
pub(crate) fn chain(
    out: &mut dyn Write,
    file: &Path,
    scene: &Scene<'_, '_>,
    at: &str,
    (name, operand): (Option<&str>, Option<&str>),
) -> Result<()> {
    let query = WhyQuery::new(match name {
        Some(name) => WhyAbout::Variable {
            at: at.to_owned(),
            name: name.to_owned(),
        },
        None => WhyAbout::Statement {
            at: at.to_owned(),
            operand: operand.map(str::to_owned),
        },
    });
    let start = query.start(scene)?;
    let about = match (name, operand) {
        (Some(name), _) => format!(" --var {}", shell_word(name)),
        (_, Some(operand)) => format!(" --operand {}", shell_word(operand)),
        _ => String::new(),
    };
    let more = format!(
        "see them with afterimage why {} --at {}{about} --all",
        pasted(file),
        shell_word(at)
    );
    text(out, file, scene, &start, (query.steps, Rest::Hidden(&more)))
}

fn text(
    out: &mut dyn Write,
    file: &Path,
    scene: &Scene<'_, '_>,
    start: &Start,
    (steps, rest): (u64, Rest<'_>),
) -> Result<()> {
    // What is asked about is known long before where it comes from.
    writeln!(out, "{}", start.what)?;
    out.flush()?;
    let mut way = Way::new(scene, start, steps)?;
    let mut begun = start.prelude.clone();
    way.begin(&mut begun)?;
    if start.from.is_some() {
        writeln!(out, "{}", why_origin(&begun, way.links()))?;
    }
    let mut text = WhyText {
        out,
        file: pasted(file),
        shown: None,
    };
    let mut shown = Shown::new(rest);
    loop {
        for entry in begun.drain(..) {
            shown.next(&mut text, entry)?;
        }
        text.out.flush()?;
        if !way.more(&mut begun)? && begun.is_empty() {
            break;
        }
    }
    shown.finish(&mut text)
}

/// What lies between the beginning and the end of a long way.
#[derive(Clone, Copy)]
enum Rest<'t> {
    Shown,
    /// This tells how to see it.
    Hidden(&'t str),
}

/// What is shown of a long way: its beginning and its end.
struct Shown<'t> {
    /// So many may still be shown at once.
    left: usize,
    last: VecDeque<WhyEntry>,
    /// How many are not shown.
    between: u64,
    /// How to see them.
    more: &'t str,
}

/// So many entries are shown at the beginning of the way, unless it is short.
const FIRST: usize = 40;
/// And at its end.
const LAST: usize = 12;

impl<'t> Shown<'t> {
    fn new(rest: Rest<'t>) -> Self {
        let (left, more) = match rest {
            Rest::Shown => (usize::MAX, ""),
            Rest::Hidden(more) => (FIRST, more),
        };
        Self {
            left,
            last: VecDeque::new(),
            between: 0,
            more,
        }
    }

    fn next(&mut self, text: &mut WhyText<'_>, entry: WhyEntry) -> Result<()> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(text.entry(&entry)?);
        }
        self.last.push_back(entry);
        if self.last.len() > LAST {
            self.last.pop_front();
            self.between += 1;
        }
        Ok(())
    }

    fn finish(self, text: &mut WhyText<'_>) -> Result<()> {
        if self.between > 0 {
            let between = grouped(self.between);
            writeln!(
                text.out,
                "  … {between} more lines like these: {}",
                self.more
            )?;
        }
        for entry in self.last {
            text.entry(&entry)?;
        }
        Ok(())
    }
}
