//! Reports the activations of a stretch, as a tree or one by one.

use std::io::Write;

use afterimage_ids::{BlockId, FuncId};
use afterimage_profile::Source;
use afterimage_replay::whole_path::CallEntry;
use afterimage_wpp::Segments;
use schemars::JsonSchema;
use serde::Serialize;

use super::inlined::InlinedLevels;
use super::json::{TraceHead, TraceRow, head, source};
use super::text::{Functions, Indent, shown_line};
use super::{CallSource, Scene, Stretch};
use crate::PresentError;
use crate::document::TakeRows;
use crate::document::objects::{Function, Position};
use crate::name::short_function;
use crate::number::{counted, grouped};
use crate::own::left_out;
use crate::table::{Paint, plain, shortened, width};

/// The maximum number of enclosing activations to show, counted from the innermost.
const AROUND: usize = 8;
/// The minimum width of a place.
const PLACE: usize = 22;

/// An activation of a function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallRow {
    /// The time of its first block.
    pub t: u64,
    /// The time of its last block, including blocks of its callees; `null` if it was still open
    /// when the run ended.
    pub end_t: Option<u64>,
    /// The number of blocks executed by it and its callees.
    pub blocks: u64,
    /// The number of enclosing activations.
    pub depth: usize,
    /// The function.
    pub function: Function,
    /// The number of the call in the whole run, from 1. Present only with `--function`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// The call site: the last block executed before the call; `null` if the host made the call, or
    /// if the block was left out of the path.
    pub from: Option<CallSite>,
}

impl CallRow {
    /// Creates the row of a call, with its number among the calls to its function.
    pub(crate) fn new<S: Segments>(
        scene: &Scene<'_, S>,
        call: &CallEntry,
        number: Option<u64>,
    ) -> Result<Self, PresentError> {
        let site = call.site.map(|site| CallSite::new(scene, site));
        Ok(Self {
            t: call.entered,
            end_t: call.left,
            blocks: call.blocks(scene.path.length()),
            depth: call.depth,
            function: Function::new(scene.names, call.function),
            call: number,
            from: site.transpose()?,
        })
    }
}

/// The place of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallSite {
    /// Its function.
    pub function: Function,
    /// Its block.
    pub block: u32,
    /// The line of the block's last instruction.
    pub source: Option<Position>,
    /// The functions that were inlined at this place, the innermost first. Absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
}

impl CallSite {
    pub(crate) fn new<S>(
        scene: &Scene<'_, S>,
        (function, block): (FuncId, BlockId),
    ) -> Result<Self, PresentError> {
        let place = scene.place(function, block)?;
        Ok(Self {
            function: Function::new(scene.names, function),
            block: block.as_u32(),
            source: place.end.map(|position| source(scene, position)),
            inlined: scene.places.inlined(place.last),
        })
    }
}

/// Writes activations for programs.
///
/// # Errors
/// Returns an error if `to` fails or the path cannot be read.
pub fn call_rows<S: Segments>(
    to: &mut dyn TakeRows<TraceHead>,
    scene: &Scene<'_, S>,
    calls: &mut CallSource<'_, S>,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<(), PresentError>
where
    S::Error: Send + Sync,
{
    head(to, scene, stretch, "call")?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some((number, call)) = calls.next_call()?
    {
        let entry = CallRow::new(scene, &call, number)?;
        to.row(TraceRow::Call(entry))?;
        room -= 1;
    }
    Ok(())
}

/// Writes activations for people. The activations that enclose the stretch come first. Each
/// activation has its time, the number of blocks that it and its callees executed, and its call
/// site. In a tree in order of time, inlined functions that made a call are frames around it. In
/// other lists, rows that follow a call need not belong to its frame, so the innermost inlined
/// function is named beside the call.
///
/// Returns the time at which to continue, if there are more than `limit` activations.
///
/// # Errors
/// Returns an error if `out` fails or the path cannot be read.
pub fn calls_in_text<S: Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    calls: &mut CallSource<'_, S>,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<Option<u64>, PresentError>
where
    S::Error: Send + Sync,
{
    let length = scene.path.length();
    let time = grouped(stretch.window.last).len().max(6);
    let blocks = grouped(length).len().max(6) + 1;
    let head = format!(
        "{:>time$}  {:>blocks$}  depth  {:PLACE$}  function",
        "t", "blocks", "called at"
    );
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    let (mut functions, mut names) = (Functions::new(scene.names), Functions::new(scene.names));
    let mut indent = Indent::default();

    let is_tree = matches!(calls, CallSource::Tree(_)) && !stretch.reverse;
    let mut frames = InlinedLevels::default();
    let (all, around) = calls.around(AROUND)?;
    let hidden = all - around.len();
    if stretch.reverse {
        // The least indented activation comes last, so set the indentation from it first.
        indent.of(hidden);
    }
    let more = |out: &mut dyn Write| match hidden {
        0 => Ok(()),
        _ => writeln!(
            out,
            "{:>time$}  … in {}",
            "",
            counted(hidden as u64, "more call")
        ),
    };
    let inlined = |out: &mut dyn Write, frames: &mut InlinedLevels, indent: &mut Indent| {
        for (depth, caller) in frames.unwritten() {
            let (blanks, place) = (indent.of(depth), caller.place(scene));
            let before = format!(
                "{:>time$}  {:>blocks$}  {:>5}  {place:PLACE$}  {:blanks$}",
                "", "", "", ""
            );
            let name = caller.shown(scene.style, width(&before));
            writeln!(out, "{before}{name}")?;
        }
        Ok::<_, PresentError>(())
    };
    let mut outer = |call: &CallEntry, blanks: usize| {
        let (entered, name) = (grouped(call.entered), names.name(call.function));
        format!(
            "{entered:>time$}  {:>blocks$}  {:>5}  {:PLACE$}  {:blanks$}{name}",
            "…", call.depth, "(open before)", ""
        )
    };
    if !stretch.reverse {
        more(out)?;
        for call in &around {
            let depth = frames.enter(scene, call)?;
            if scene.shows(call.function) {
                inlined(out, &mut frames, &mut indent)?;
                writeln!(out, "{}", outer(call, indent.of(depth)))?;
            }
        }
    }
    let (mut written, mut others) = (0, 0);
    while let Some((number, call)) = calls.next_call()? {
        let row = match is_tree {
            true => frames.enter(scene, &call)?,
            false => call.depth,
        };
        if !scene.shows(call.function) {
            others += 1;
            continue;
        }
        if limit == Some(written) {
            return Ok(Some(call.entered));
        }
        written += 1;
        let CallEntry {
            function,
            depth,
            entered,
            left,
            site,
            is_tail,
            ..
        } = call;
        // A call that was still open at the end took at least this long.
        let lasted = grouped(call.blocks(length)) + if left.is_some() { " " } else { "+" };
        let site = site.map(|site| CalledAt::new(scene, site)).transpose()?;
        let CalledAt { line: place, by } = site.unwrap_or_default();
        // A tail call was made by a function whose frame is not in the tree any more.
        let by = if is_tree && !is_tail { "" } else { &by };
        inlined(out, &mut frames, &mut indent)?;
        let blanks = match calls {
            CallSource::Of(..) => 0,
            CallSource::Tree(_) => indent.of(row),
        };
        let (entered, name) = (grouped(entered), functions.name(function));
        write!(
            out,
            "{entered:>time$}  {lasted:>blocks$}  {depth:>5}  {place:PLACE$}  {:blanks$}{name}",
            ""
        )?;
        if let Some(number) = number {
            write!(out, "#{}", grouped(number))?;
        }
        writeln!(out, "{by}")?;
    }
    if stretch.reverse {
        let shown = around.iter().rev();
        for call in shown.filter(|call| scene.shows(call.function)) {
            writeln!(out, "{}", outer(call, indent.of(call.depth)))?;
        }
        more(out)?;
    }
    if let Some(own) = scene.own {
        left_out(out, own, others, "call")?;
    }
    Ok(None)
}

/// The maximum number of characters in the name of an inlined function beside a call.
const NAME: usize = 40;

/// The place of a call as text: the line, or the block if the line is unknown, and the inlined
/// function that made the call.
#[derive(Default)]
pub(crate) struct CalledAt {
    pub line: String,
    /// The caller, as in `, called by parse (inlined)`; empty if the function itself made the call.
    pub by: String,
}

impl CalledAt {
    pub(crate) fn new<S>(
        scene: &Scene<'_, S>,
        (function, block): (FuncId, BlockId),
    ) -> Result<Self, PresentError> {
        let place = scene.place(function, block)?;
        let inlined = scene.places.inlined(place.last).into_iter().next();
        let by = inlined.map(|name| {
            let name = shortened(&plain(&short_function(&name)), NAME, NAME / 2);
            format!(", called by {name} (inlined)")
        });
        Ok(Self {
            // A place in hidden code is shown as the line that led to it.
            line: match scene
                .own
                .map_or(place.end, |own| own.folded.locate(place.last))
            {
                Some(position) => shown_line::<S>(scene, position),
                None if !scene.shows(function) => "library code".to_owned(),
                None => format!("{} {block}", place.offset),
            },
            by: by.unwrap_or_default(),
        })
    }
}
