//! `afterimage why`

mod bounds;
mod ends;
mod led;
mod printed;
mod start;
mod tell;
mod trap;
mod variable;

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;

use afterimage_analyses::why::{Chain, Folder, Stream};
use afterimage_present::document::row;
use afterimage_present::{
    WhyDot, WhyEntry, WhyHead, WhyText, expression, grouped, shell_word, why_head,
};
use anyhow::{Context, Result};
use clap::ArgGroup;

use crate::arguments::{ReportArguments, entries};
use crate::build::Lens;
use crate::early;
use crate::exit::Exit;
use crate::explain::{Scene, opened};
use crate::input;
use crate::output::{pasted, write};
use crate::places::and_why_not;
use printed::Byte;
pub(crate) use start::{Held, Start};
use tell::{Teller, steps_were};

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
    #[arg(long, value_name = "N", default_value_t = STEPS, value_parser = entries)]
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

/// So many links are gone back.
const STEPS: u64 = 10_000;

/// If the end is found within so many links, it is told in the first sentence.
const SOON: u64 = 500;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    input::ended(file)?;
    early::places(file, Lens::Full, arguments.at.as_deref())?;
    if arguments.trap {
        early::killed(file, "ask with --at or --stdout")?;
    }
    let put = [
        (Stream::Output, arguments.stdout),
        (Stream::Error, arguments.stderr),
    ];
    for (stream, byte) in put {
        if let Some(byte) = byte {
            printed::check(file, &stream, byte)?;
        }
    }
    opened(file, |scene| answer(&arguments, scene)).with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, scene: &Scene<'_, '_>) -> Result<()> {
    let file = &arguments.report.file;
    let start = match (&arguments.at, &arguments.var) {
        (Some(at), Some(name)) => {
            variable::find(scene, at, name).map_err(|error| and_why_not(error, file, at))?
        }
        (Some(at), None) => start::find(scene, file, at, arguments.operand.as_deref())?,
        (None, _) => match (arguments.stdout, arguments.stderr) {
            (Some(byte), _) => printed::find(scene, &Stream::Output, byte)?,
            (None, Some(byte)) => printed::find(scene, &Stream::Error, byte)?,
            (None, None) => trap::find(scene)?,
        },
    };
    write(arguments.report.output.as_deref(), false, |out| {
        let mut begun = start.prelude.clone();
        match arguments.format {
            Format::Text => {
                let rest = match arguments.all {
                    true => Rest::Shown,
                    false => Rest::Hidden("--all shows them"),
                };
                text(out, file, scene, &start, (arguments.steps, rest))?;
            }
            Format::Dot => {
                let mut way = Way::new(scene, &start, arguments.steps)?;
                way.begin(&mut begun)?;
                let mut graph = WhyDot::new(out, start.what.trim_end_matches(','))?;
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
                let about = start.what.trim_end_matches(", which").trim_end_matches(',');
                let head = WhyHead {
                    about: about.to_owned(),
                    value: start.value.clone(),
                    place: place.map(|place| place.at),
                    written: start.written.map(Into::into),
                };
                why_head(out, &head)?;
                out.flush()?;
                let mut way = Way::new(scene, &start, arguments.steps)?;
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
    let start = match name {
        Some(name) => variable::find(scene, at, name)?,
        None => start::find(scene, file, at, operand)?,
    };
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
    text(out, file, scene, &start, (STEPS, Rest::Hidden(&more)))
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
        writeln!(out, "{}", origin(&begun, way.links()))?;
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

/// What was found, behind what it was found of.
pub(crate) fn origin(begun: &[WhyEntry], links: u64) -> String {
    let back = |links: u64| match links {
        0 => String::new(),
        1 => ", one step back".to_owned(),
        links => format!(", {} steps back", grouped(links)),
    };
    match begun.last() {
        Some(WhyEntry::End(end)) if end.kind == "stopped" => {
            format!(
                "has a longer way behind it: {} gone back, and the beginning was not reached",
                steps_were(links)
            )
        }
        Some(WhyEntry::End(end)) => {
            let back = back(links);
            let place = end.place.as_ref();
            let at = place.map_or(String::new(), |place| {
                format!(" at {}", place.source_or_at())
            });
            format!("comes from {}{at}{back}", end.what)
        }
        Some(WhyEntry::Made(made)) if made.followed().is_none() => {
            let of = match made.operands.is_empty() {
                true => made.place.operator.clone(),
                false => format!("constants, {}", expression(made)),
            };
            let at = made.place.source_or_at();
            // The last one of the steps is this one.
            let back = back(links.saturating_sub(1));
            format!("comes from {of} at {at}{back}")
        }
        _ => "has a long way behind it: how far that was gone back, and to what, is told last"
            .to_owned(),
    }
}

/// The way back, told entry by entry.
pub(crate) struct Way<'t, 's, 'a> {
    chain: Option<Chain<'t, 'a>>,
    folder: Option<Folder>,
    teller: Teller<'t, 's, 'a>,
}

impl<'t, 's, 'a> Way<'t, 's, 'a> {
    /// # Errors
    /// If the recording is damaged.
    pub(crate) fn new(scene: &'t Scene<'s, 'a>, start: &Start, most: u64) -> Result<Self> {
        let from = start.held(scene)?;
        let chain = from.map(|(at, bits)| {
            let chain = Chain::new(scene.walk(), &scene.controllers, at).at_most(most);
            match bits {
                Some(bits) => chain.only(bits),
                None => chain,
            }
        });
        Ok(Self {
            folder: chain.as_ref().map(|_| Folder::new()),
            chain,
            teller: Teller::new(scene, start)?,
        })
    }

    pub(crate) fn links(&self) -> u64 {
        self.chain.as_ref().map_or(0, Chain::links)
    }

    /// Goes on until what the first sentence says is known.
    pub(crate) fn begin(&mut self, told: &mut Vec<WhyEntry>) -> Result<()> {
        while self.links() < SOON && self.more(told)? {}
        Ok(())
    }

    /// Goes one step on, and adds what is known to be told. Whether there may be more.
    pub(crate) fn more(&mut self, told: &mut Vec<WhyEntry>) -> Result<bool> {
        let (Some(chain), Some(folder)) = (&mut self.chain, &mut self.folder) else {
            return Ok(false);
        };
        let mut entries = Vec::new();
        let step = chain.next();
        let (mut over, mut last) = (false, None);
        match step {
            Ok(Some(step)) => folder.push(step, &mut entries),
            Ok(None) => over = true,
            Err(error) if error.is_outside() => {
                over = true;
                last = Some(ends::outside(&error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        if over && let Some(folder) = self.folder.take() {
            folder.finish(&mut entries);
        }
        for entry in entries {
            self.teller.tell(entry, told)?;
        }
        if over && last.is_none() && !self.teller.ended {
            last = Some(self.teller.stopped(self.links())?);
        }
        told.extend(last.map(WhyEntry::End));
        Ok(!over)
    }
}
