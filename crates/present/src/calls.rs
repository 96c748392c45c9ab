//! Reports the dynamic call graph, and single calls.

use std::collections::BTreeMap;
use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::OwnFunctions;
use afterimage_program::Names;
use afterimage_replay::whole_path::CallEntry;
use afterimage_wpp::{CallEdge, CallGraph, CallTotal};
use schemars::JsonSchema;
use serde::Serialize;

use crate::csv::{Csv, known};
use crate::document::objects::Function;
use crate::document::{Document, NoRows, begin};
use crate::name::{ShortNames, short_function};
use crate::number::{counted, grouped, percent};
use crate::own::left_out;
use crate::render::Render;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};
use crate::trace::{CallRow, CalledAt, InlinedCaller, Scene};
use crate::{PresentError, Style};

/// The calls of a run.
pub struct CallGraphView<'a> {
    /// The callers and callees.
    pub graph: &'a CallGraph,
    /// The calls to each function.
    pub totals: &'a BTreeMap<FuncId, CallTotal>,
    /// The number of blocks that the run executed.
    pub length: u64,
    /// The functions' names.
    pub names: &'a Names,
    /// The functions that the text form shows.
    pub own: &'a OwnFunctions<'a>,
    /// Whether the compiler inlined some of these functions. Inlined calls do not count as calls.
    pub inlined: bool,
    /// A description of the missing parts of the path; empty if it is complete.
    pub left_out: &'a str,
    /// The function to show, with its callers and callees; `None` for all functions.
    pub only: Option<FuncId>,
    /// The maximum number of rows in the text form.
    pub top: usize,
}

/// The name of callers that are not functions of the module.
const HOST: &str = "(host)";
/// The name for the place of a call that was left out of the path.
const LEFT_OUT: &str = "(left out)";

impl CallGraphView<'_> {
    fn total(&self, function: FuncId) -> CallTotal {
        self.totals.get(&function).copied().unwrap_or_default()
    }

    /// Returns the edges to show: all edges, or the edges from and to one function.
    fn edges(&self) -> impl Iterator<Item = &CallEdge> {
        self.graph.edges().iter().filter(|edge| {
            self.only
                .is_none_or(|only| edge.callee == only || edge.caller == Some(only))
        })
    }
}

/// Writes at most `top` of the functions that were called, the functions with the longest active
/// time first.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn calls_text(
    out: &mut dyn Write,
    report: &CallGraphView<'_>,
    top: usize,
    style: Style,
) -> Result<(), PresentError> {
    let mut rows: Vec<_> = report.totals.iter().collect();
    rows.sort_by_key(|(_, total)| std::cmp::Reverse((total.inclusive, total.own)));
    let calls: u128 = rows.iter().map(|(_, total)| u128::from(total.calls)).sum();
    writeln!(
        out,
        "{} to {} in {}",
        counted(u64::try_from(calls).unwrap_or(u64::MAX), "call"),
        counted(rows.len() as u64, "function"),
        counted(report.length, "block"),
    )?;
    writeln!(out)?;
    let functions = rows.len();
    rows.retain(|(function, _)| report.own.shows(**function));
    let others = functions - rows.len();
    let mut callers = BTreeMap::<FuncId, u64>::new();
    for edge in report.graph.edges() {
        *callers.entry(edge.callee).or_default() += 1;
    }
    let mut table = Table::new(&[
        ("share", Right),
        ("inclusive", Right),
        ("self", Right),
        ("calls", Right),
        ("callers", Right),
        ("callees", Right),
        ("function", Left),
    ]);
    let names = ShortNames::new(report.names, rows.iter().take(top).map(|row| *row.0));
    for &(&function, total) in rows.iter().take(top) {
        table.row([
            percent(total.inclusive, report.length),
            grouped(total.inclusive),
            grouped(total.own),
            grouped(total.calls),
            grouped(callers.get(&function).copied().unwrap_or(0)),
            grouped(report.graph.callees(Some(function)).len() as u64),
            names.of(function).to_owned(),
        ]);
    }
    let own = |row: usize| Paint::of_share(rows[row].1.own, report.length);
    table.write(out, style, own)?;
    if rows.len() > top {
        let more = counted((rows.len() - top) as u64, "more function");
        writeln!(
            out,
            "… and {more}; --limit shows them, and --function shows the callers and callees of one"
        )?;
    }
    left_out(out, report.own, others as u64, "function")?;
    if report.inlined {
        writeln!(
            out,
            "calls that the compiler inlined are not listed; profile counts the instructions of \
             inlined functions"
        )?;
    }
    Ok(())
}

/// Writes the callers and callees of a function, the edges with the longest time first.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn function_calls_text(
    out: &mut dyn Write,
    report: &CallGraphView<'_>,
    function: FuncId,
    top: usize,
    style: Style,
) -> Result<(), PresentError> {
    let total = report.total(function);
    let name = plain(&report.names.short(function));
    if total.calls == 0 {
        writeln!(out, "{}", absent(&name, report.left_out))?;
        return Ok(());
    }
    writeln!(
        out,
        "{name}: {}, {} of its own, {} with everything that it calls ({} of the run)",
        counted(total.calls, "call"),
        counted(total.own, "block"),
        grouped(total.inclusive),
        percent(total.inclusive, report.length),
    )?;
    let callers: Vec<_> = report.graph.callers(function).copied().collect();
    let callees = report.graph.callees(Some(function)).to_vec();
    for (title, mut edges, who) in [
        (
            "called by",
            callers,
            (|edge| edge.caller) as fn(&CallEdge) -> _,
        ),
        ("calls", callees, |edge| Some(edge.callee)),
    ] {
        writeln!(out)?;
        if edges.is_empty() {
            writeln!(out, "{title} nothing")?;
            continue;
        }
        let functions = edges.len();
        edges.retain(|edge| who(edge).is_none_or(|function| report.own.shows(function)));
        let others = functions - edges.len();
        edges.sort_by_key(|edge| std::cmp::Reverse((edge.inclusive, edge.calls)));
        let mut table = Table::new(&[
            ("calls", Right),
            ("inclusive", Right),
            ("self", Right),
            (title, Left),
        ]);
        let shown = edges.iter().take(top);
        let names = ShortNames::new(report.names, shown.clone().filter_map(who));
        for edge in shown {
            let name = who(edge).map_or(HOST, |function| names.of(function));
            table.row([
                grouped(edge.calls),
                grouped(edge.inclusive),
                grouped(edge.own),
                name.to_owned(),
            ]);
        }
        table.write(out, style, |_| Paint::Plain)?;
        if edges.len() > top {
            let more = counted((edges.len() - top) as u64, "more function");
            writeln!(out, "… and {more}; --limit shows them")?;
        }
        left_out(out, report.own, others as u64, "function")?;
    }
    if !report.left_out.is_empty() {
        writeln!(
            out,
            "\nCalls that were left out are not counted: the path lacks {}",
            report.left_out
        )?;
    }
    Ok(())
}

/// Returns the message for a function without calls. It mentions the parts missing from the path.
pub fn absent(function: &str, left_out: &str) -> String {
    match left_out {
        "" => format!("{function} was never called"),
        left_out => format!("there is no call to {function} in the path, which lacks {left_out}"),
    }
}

/// The dynamic call graph. With `--function`, it contains only this function and the edges from and
/// to it.
///
/// `own` counts the blocks that the callee's activations executed themselves. `inclusive` counts
/// the blocks that were executed while these activations were open. Among nested activations of the
/// same function, only the outermost counts. So the sum over a function's callers counts each block
/// at most once. The caller in a tail call is the caller of the function that made the tail call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallsDocument {
    /// The number of blocks that the run executed.
    pub blocks: u64,
    /// A description of the missing parts of the path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub left_out: String,
    /// The functions that were called.
    pub functions: Vec<CallsFunction>,
    /// The calls by caller and callee.
    pub edges: Vec<CallsEdge>,
}

impl Document for CallsDocument {
    const NAME: &'static str = "calls";
    const COMMAND: &'static str = "calls";
    type Row = NoRows;
}

/// A function that was called.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallsFunction {
    /// The function.
    pub function: Function,
    /// The number of calls.
    pub calls: u64,
    /// The number of blocks that its activations executed themselves.
    pub own: u64,
    /// The number of blocks executed while its activations were open.
    pub inclusive: u64,
}

/// The calls from one function to another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallsEdge {
    /// The caller; `null` for the host.
    pub caller: Option<Function>,
    /// The callee.
    pub callee: Function,
    /// The number of calls.
    pub calls: u64,
    /// The number of blocks that the called activations executed themselves.
    pub own: u64,
    /// The number of blocks executed while the called activations were open.
    pub inclusive: u64,
}

impl CallGraphView<'_> {
    /// Returns the document for programs.
    pub fn document(&self) -> CallsDocument {
        let is_shown = |function| self.only.is_none_or(|only| only == function);
        let functions = self.totals.iter();
        let functions = functions.filter(|(function, _)| is_shown(**function));
        let functions = functions.map(|(&function, total)| CallsFunction {
            function: Function::new(self.names, function),
            calls: total.calls,
            own: total.own,
            inclusive: total.inclusive,
        });
        let edges = self.edges().map(|edge| CallsEdge {
            caller: edge.caller.map(|caller| Function::new(self.names, caller)),
            callee: Function::new(self.names, edge.callee),
            calls: edge.calls,
            own: edge.own,
            inclusive: edge.inclusive,
        });
        CallsDocument {
            blocks: self.length,
            left_out: self.left_out.to_owned(),
            functions: functions.collect(),
            edges: edges.collect(),
        }
    }
}

/// Writes the call graph, or a function's part of it, as comma-separated values. Each pair of
/// caller and callee has a row.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn calls_csv(out: &mut dyn Write, report: &CallGraphView<'_>) -> Result<(), PresentError> {
    let header = "caller,caller_name,callee,callee_name,calls,own,inclusive";
    let mut table = Csv::new(out, header)?;
    for edge in report.edges() {
        table.row(&[
            &known(edge.caller.map(|caller| caller.as_u32())),
            &known(edge.caller.map(|caller| report.names.function(caller))),
            &edge.callee.as_u32(),
            &report.names.function(edge.callee),
            &edge.calls,
            &edge.own,
            &edge.inclusive,
        ])?;
    }
    table.finish()
}

/// The maximum number of frames to show from each end of a stack.
const FRAMES: usize = 20;
/// The minimum width of a place.
const PLACE: usize = 22;

/// Writes one call: its time and the stack, innermost first. `calls` contains the enclosing calls,
/// outermost first, and then the call itself.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn call_text<S: afterimage_wpp::Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    calls: &[CallEntry],
    number: u64,
) -> Result<(), PresentError> {
    let Some(call) = calls.last() else {
        return Ok(());
    };
    let name = plain(&short_function(scene.names.function(call.function)));
    let blocks = counted(call.blocks(scene.path.length()), "block");
    write!(
        out,
        "{name}#{}: from t={}",
        grouped(number),
        grouped(call.entered)
    )?;
    match call.left {
        Some(left) => writeln!(out, " to t={}, {blocks}", grouped(left))?,
        None => writeln!(out, " to the end of the run, {blocks} so far")?,
    }
    let time = grouped(call.entered).len().max(6);
    let (frames, hidden) = stack(scene, calls, 5 + 2 + time + 2 + PLACE + 2)?;
    writeln!(out)?;
    writeln!(
        out,
        "{:>5}  {:>time$}  {:PLACE$}  function",
        "depth", "t", "called at"
    )?;
    let many = frames.len() > 2 * FRAMES;
    for (at, frame) in frames.iter().enumerate() {
        if at == FRAMES && many {
            let more = grouped((frames.len() - 2 * FRAMES) as u64);
            writeln!(out, "{:>5}  {more} more", "…")?;
        }
        if many && (FRAMES..frames.len() - FRAMES).contains(&at) {
            continue;
        }
        let (depth, entered) = frame.call.map_or_else(Default::default, |call| {
            (call.depth.to_string(), grouped(call.entered))
        });
        writeln!(
            out,
            "{depth:>5}  {entered:>time$}  {:PLACE$}  {}",
            frame.place, frame.name
        )?;
    }
    if let Some(own) = scene.own {
        left_out(out, own, hidden as u64, "frame")?;
    }
    Ok(())
}

/// A frame of a stack.
struct StackRow<'c> {
    /// The activation, or `None` for an inlined function.
    call: Option<&'c CallEntry>,
    name: String,
    /// The place in shown code that called it.
    place: String,
}

/// Returns the shown frames of a stack, the innermost first, and the number of hidden activations.
/// The activation of the last call is shown, whoever wrote it. Names come after `used` columns.
fn stack<'c, S: afterimage_wpp::Segments>(
    scene: &Scene<'_, S>,
    calls: &'c [CallEntry],
    used: usize,
) -> Result<(Vec<StackRow<'c>>, usize), PresentError> {
    let mut rows = Vec::<StackRow<'c>>::with_capacity(calls.len());
    let mut hidden = 0;
    for call in calls.iter().rev() {
        if rows.is_empty() || scene.shows(call.function) {
            rows.push(StackRow {
                call: Some(call),
                name: plain(&short_function(scene.names.function(call.function))),
                place: String::new(),
            });
        } else {
            hidden += 1;
        }
        // A place in hidden code gives way to the place that led there.
        let mut called_at = |place: String| {
            if let Some(row) = rows.last_mut() {
                row.place = place;
            }
        };
        let Some(site) = call.site else {
            let unknown = if call.depth == 0 { HOST } else { LEFT_OUT };
            called_at(unknown.to_owned());
            continue;
        };
        let CalledAt { line, by } = CalledAt::new(scene, site)?;
        called_at(line);
        // A tail call was made by a function whose frame is not on the stack any more.
        if call.is_tail
            && let Some(row) = rows.last_mut()
            && row.call == Some(call)
        {
            row.name.push_str(&by);
        }
        let Some(within) = call.within else {
            continue;
        };
        for caller in InlinedCaller::of_call(scene, within)? {
            rows.push(StackRow {
                call: None,
                name: caller.shown(scene.style, used),
                place: caller.place(scene),
            });
        }
    }
    Ok((rows, hidden))
}

/// One call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallDocument {
    /// The number of the call among the calls to its function, from 1.
    pub call: u64,
    /// The call, followed by the enclosing calls, the innermost first.
    pub stack: Vec<CallRow>,
}

impl Document for CallDocument {
    const NAME: &'static str = "call";
    const COMMAND: &'static str = "calls --function F --call K";
    type Row = NoRows;
}

/// Writes one call and the stack, innermost first, as one JSON document.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn call_json<S: afterimage_wpp::Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    calls: &[CallEntry],
    number: u64,
) -> Result<(), PresentError> {
    let stack = calls
        .iter()
        .rev()
        .map(|call| CallRow::new(scene, call, None));
    let document = CallDocument {
        call: number,
        stack: stack.collect::<Result<_, _>>()?,
    };
    begin(out, &document)
}

impl Render for CallGraphView<'_> {
    const NAME: &'static str = "a call graph";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        match self.only {
            None => calls_text(out, self, self.top, style),
            Some(function) => function_calls_text(out, self, function, self.top, style),
        }
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document())
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        calls_csv(out, self)
    }
}

/// One call.
pub struct CallView<'r, S> {
    /// The path.
    pub scene: Scene<'r, S>,
    /// The enclosing calls, the outermost first, and then the call itself.
    pub calls: Vec<CallEntry>,
    /// The number of the call among the calls to its function.
    pub number: u64,
}

impl<S: afterimage_wpp::Segments> Render for CallView<'_, S> {
    const NAME: &'static str = "a call";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        call_text(out, &self.scene, &self.calls, self.number)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        call_json(out, &self.scene, &self.calls, self.number)
    }
}
