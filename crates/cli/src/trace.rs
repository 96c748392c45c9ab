//! Implements `afterimage trace`.

use std::sync::Arc;

use afterimage::check::Needs;
use afterimage::rows::Form;
use afterimage::trace::{LineVariables, StepInto, TraceQuery};
use anyhow::{Result, bail};

use crate::arguments::{StretchArguments, ViewArguments, choices, entries};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Show what a run executed, in order
///
/// It shows the run by block, path, call, line, statement or memory access. Time t counts executed
/// blocks from 1. For --level statement and memory, the run is followed from the last checkpoint
/// before --from (`build --lens full` makes checkpoints), or else from its beginning. With
/// --reverse the run is followed piece by piece, so a long stretch without checkpoints takes a long
/// time. Text on standard output stops after 100 lines, and shows how to continue. It does not stop
/// if --limit, --last, or both --from and --to choose how much to show. No other output is cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Positions:
  123456, t=123456    the 123456th executed block
  start, end, -1000   the first block, the last, the 1000th from the end
  50%                 halfway through the run
  main#3, main#last   the third call to main, the last (without #: the first)
  file.c:42#3         the third arrival at line 42
  @0x1f3#3, f+0x2a    the block that executes this operator the third time, or
                      the first
A line or an operator means its block. With --level statement or memory, it
means exactly the line's first statement, or the operator.

Examples:
  afterimage trace app.aft
  afterimage trace app.aft --last 50
  afterimage trace app.aft --from 'parse#3' --level call --depth 2
  afterimage trace app.aft --level call --last 20
  afterimage trace app.aft --from main.c:42#last --reverse
  afterimage trace app.aft --level line --from main.c:42#3 --over
  afterimage trace app.aft --level line --reverse
  afterimage trace app.aft --level statement --from 'parse#3' --limit 50
  afterimage trace app.aft --level memory --function parse
  afterimage trace app.aft --format bin | my-analysis")]
pub(crate) struct Arguments {
    #[command(flatten)]
    stretch: StretchArguments,
    /// Show only the last N entries
    #[arg(long, value_name = "N", value_parser = entries)]
    last: Option<u64>,
    /// Go backward from --from to --to [default: from end to start]
    #[arg(long)]
    reverse: bool,
    /// Show only entries of this function, by index, name or demangled name
    #[arg(long, value_name = "F")]
    function: Option<String>,
    /// Kind of entries
    #[arg(long, default_value = "block")]
    level: Level,
    /// With --level call, show N levels of calls, counted from the beginning of the stretch
    /// [default: 8 for text without --last or --reverse, all otherwise]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// With --level line, step over calls
    #[arg(long)]
    over: bool,
    /// With --level line, step over calls, but into those of this function
    #[arg(long, value_name = "F", conflicts_with = "over")]
    into: Option<String>,
    /// With --level line, leave out the variables, for a faster answer
    #[arg(long)]
    no_variables: bool,
    /// Show at most N entries, or all
    #[arg(long, value_name = "N|all", value_parser = limit)]
    limit: Option<Limit>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    view: ViewArguments,
}

choices! { Level => afterimage::trace::Level {
    /// A basic block
    Block,
    /// A path: blocks without a call in between, up to a loop's next iteration
    Path,
    /// A call to a function
    Call,
    /// A source line, with the variables that changed since the function's previous line
    Line,
    /// A statement, with its values: an instruction that yields a value or has an effect
    Statement,
    /// A load, a store, a bulk operation, or an access by the host
    Memory,
}}

choices! { Format => Form {
    Text,
    /// One object per line
    Json,
    /// Fixed records for other programs; see docs/TRACE.md
    Bin,
}}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    All,
    Entries(u64),
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "all" {
        return Ok(Limit::All);
    }
    let entries = entries(text).map_err(|error| format!("{error}, or all"))?;
    Ok(Limit::Entries(entries))
}

/// The default number of lines of text on standard output.
const LINES: u64 = 100;
/// The maximum number of entries to keep in memory at once. Questions with more entries are not
/// answered from stretches of the run.
const AT_ONCE: u64 = 1_000_000;
/// The default number of levels of calls in text.
const LEVELS: usize = 8;

impl Arguments {
    /// Returns the maximum number of entries.
    fn entries(&self) -> Option<u64> {
        let StretchArguments { from, to } = &self.stretch;
        let whole = self.last.is_some() || from.is_some() && to.is_some();
        let is_long = self.format == Format::Text && !whole && self.view.report.to.output.is_none();
        match self.limit {
            Some(Limit::Entries(entries)) => Some(entries),
            None if is_long => Some(LINES),
            Some(Limit::All) | None => None,
        }
    }

    fn query(&self) -> TraceQuery {
        // The last calls are the latest calls, at any depth.
        let overview = self.format == Format::Text && !self.reverse && self.last.is_none();
        let levels = if overview { LEVELS } else { usize::MAX };
        TraceQuery {
            bounds: self.stretch.bounds(),
            last: self.last,
            reverse: self.reverse,
            function: self.function.clone(),
            level: self.level.into(),
            depth: self.depth.unwrap_or(levels),
            into: match &self.into {
                Some(function) => StepInto::Function(function.clone()),
                None if self.over => StepInto::Nothing,
                None => StepInto::Calls,
            },
            variables: if self.no_variables {
                LineVariables::Omitted
            } else {
                LineVariables::Changed
            },
            limit: self.entries(),
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    check(&arguments)?;
    let query = arguments.query();
    query.check()?;
    let report = &arguments.view.report;
    let session = arguments.view.session(lens::session)?;
    let is_stretch = query.use_words(&session, Form::from(arguments.format))?;
    let (output, style) = (report.to.output.as_deref(), report.to.style());
    let form = Form::from(arguments.format);
    let files = Arc::clone(session.sources());
    let shown = (&*files as _, style);
    if !is_stretch && query.limit.is_some_and(|limit| limit <= AT_ONCE) {
        let text = session.answer(Needs::Path, lens::build_path, |session| {
            let mut text = Vec::new();
            query.write(session, false, form, shown, |write| write(&mut text))?;
            Ok(text)
        })?;
        write(output, form.content(), |out| Ok(out.write_all(&text)?))?;
        lens::say_not_at_hand(&session);
        return Ok(Exit::Success);
    }
    if is_stretch {
        lens::check_stops(&session)?;
    } else {
        lens::build_path(&session)?;
    }
    let written = query.write(&session, is_stretch, form, shown, |told| {
        write(output, form.content(), |out| told(out))
    });
    report.named(written)?;
    lens::say_not_at_hand(&session);
    Ok(Exit::Success)
}

/// Refuses options that would have no effect.
fn check(arguments: &Arguments) -> Result<()> {
    if arguments.depth == Some(0) {
        bail!("--depth 0 shows nothing; give a number from 1 on");
    }
    let steps = arguments.over || arguments.into.is_some();
    if steps && arguments.level != Level::Line {
        bail!("--over and --into need --level line");
    }
    if arguments.no_variables && arguments.level != Level::Line {
        bail!("--no-variables needs --level line");
    }
    if arguments.function.is_some() && (arguments.over || arguments.into.is_some()) {
        bail!("--function shows the lines of one function: leave out --over and --into");
    }
    if arguments.level == Level::Line && arguments.format == Format::Bin {
        bail!("--level line has no binary form: choose --format text or json");
    }
    let tree = arguments.level == Level::Call && arguments.function.is_none();
    if arguments.depth.is_some() && !tree {
        bail!("--depth limits a tree of calls: use it with --level call, and without --function");
    }
    Ok(())
}
