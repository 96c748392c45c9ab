//! The differences for a person: one sentence, then the evidence.

use std::io::Write;

use afterimage_analyses::diff::{CallPlace, OutputDifference, Written};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_profile::{CodeFilter, Folded};
use afterimage_replay::state::quoted;
use afterimage_replay::steps::{Step, What};

use super::replaced::alike_text;
use super::{CALLS, DiffReport, FirstDifference, PartingDifference, Spot, ended, import_name};
use crate::PresentError;
use crate::Sources;
use crate::number::{self, counted, grouped};
use crate::sources::Cache;
use crate::steps::{StepRow, StepScene};
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain, width, wrapped};

/// The default number of lines to show.
const LINES: usize = 20;

/// Writes how two executions differ, for a person. Lists lines of the selected code, with their
/// text if available.
///
/// # Errors
/// If `out` fails or the module cannot be read.
pub fn diff_text(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport<'_>,
    (sources, code): (&dyn Sources, &CodeFilter),
) -> Result<(), PresentError> {
    let [a, b] = report.names.map(plain);
    let scene = &scenes[0];
    if report.alike.is_none() {
        ended(out, report.names, report.endings.as_ref(), scene.style)?;
    }
    if let Some(alike) = &report.alike {
        alike_text(out, scenes, report, alike)?;
    }
    let Some(first) = &report.first else {
        let blocks = counted(report.lengths[0], "block");
        let same = "every value, address and call of the host";
        let ended = match report.endings {
            None => "",
            Some(_) => " up to where they ended",
        };
        match &report.alike {
            None if report.endings.is_none() => {
                writeln!(out, "{a} and {b} are the same execution: {blocks}, {same}")?;
            }
            None => writeln!(out, "{a} and {b} did the same{ended}: {blocks}, {same}")?,
            Some(alike) => writeln!(
                out,
                "{a} and {b} did the same{ended}: {blocks}, {same}{}",
                alike.unseen()
            )?,
        }
        return questions(out, scenes, report);
    };
    let title = |text: &str| scene.style.paint(Paint::Bold, text);
    let width = a.chars().count().max(b.chars().count());
    let sides = [format!("{a:width$}"), format!("{b:width$}")];
    let folded = Folded::new(scene.source, code);
    let head = sentence(scene, report, first, &folded)?;
    writeln!(out, "{}", title(&wrapped(&head, scene.style.width, 2)))?;
    let steps = [&first.difference.a, &first.difference.b];
    for ((side, scene), step) in sides.iter().zip(scenes).zip(steps) {
        let room = room(scene, side);
        let line = format!("  {side}  {}", told(scene, step.as_ref(), room)?);
        writeln!(out, "{}", scene.style.cut(&line))?;
    }
    if let Some(bytes) = &first.difference.bytes {
        writeln!(out, "  from byte {} on:", grouped(bytes.offset))?;
        for (side, bytes) in sides.iter().zip([&bytes.a, &bytes.b]) {
            writeln!(out, "  {side}  {}", quoted(bytes))?;
        }
    }
    called_from(out, scene, &first.calls)?;
    writeln!(out)?;
    match &report.parting {
        None => writeln!(
            out,
            "control goes the same way in both, through {}",
            counted(report.lengths[0], "block")
        )?,
        Some(parting) => parted(out, scenes, report, parting, (&sides, &folded))?,
    }
    for output in &report.outputs {
        writeln!(out)?;
        put_out(out, scene.style, &output.difference, &sides)?;
    }
    if let Some(lines) = &report.lines {
        writeln!(out)?;
        line_counts(out, scene, report, lines, (sources, code))?;
    }
    questions(out, scenes, report)
}

fn questions(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport<'_>,
) -> Result<(), PresentError> {
    let questions = report.questions(scenes)?;
    if !questions.is_empty() {
        let head = scenes[0].style.paint(Paint::Bold, "what led there");
        writeln!(out, "\n{head}")?;
        for question in questions {
            writeln!(out, "  {}", question.command)?;
        }
    }
    Ok(())
}

fn sentence(
    scene: &StepScene<'_>,
    report: &DiffReport<'_>,
    first: &FirstDifference,
    folded: &Folded<'_>,
) -> Result<String, PresentError> {
    let [a, b] = report.names.map(plain);
    let difference = &first.difference;
    let step = difference.a.as_ref().or(difference.b.as_ref());
    let Some(step) = step else {
        return Ok(format!("{a} and {b} differ"));
    };
    let spot = Spot::of(scene, step.function, step.op)?;
    let what = match (&difference.a, &difference.b) {
        (None, _) => format!("{a} has ended there"),
        (_, None) => format!("{b} has ended there"),
        // If operators replaced each other, only one may be a statement.
        (Some(x), Some(y)) if (x.time, x.function) == (y.time, y.function) && x.op != y.op => {
            "another operator is executed".to_owned()
        }
        (Some(x), Some(y)) if (x.function, x.op) != (y.function, y.op) => {
            "control continues elsewhere".to_owned()
        }
        (Some(x), Some(y)) => kind(scene, x, y),
    };
    let own = own_call(scene, (step.function, step.op), &first.calls, folded)?;
    Ok(format!(
        "{a} and {b} first differ at t={}, {}: {what}",
        grouped(step.time),
        own.unwrap_or_else(|| spot.text())
    ))
}

/// The line of the user's own code that called library code, if the place is in a library.
fn own_call(
    scene: &StepScene<'_>,
    at: (FuncId, Option<OpId>),
    calls: &[CallPlace],
    folded: &Folded<'_>,
) -> Result<Option<String>, PresentError> {
    if !folded.shows_any() {
        return Ok(None);
    }
    let calls = calls.iter().map(|call| (call.function, Some(call.op)));
    for (depth, (function, op)) in [at].into_iter().chain(calls).enumerate() {
        let Some(op) = op else { continue };
        let found = scene.operators.get(function, op)?;
        let position = found.and_then(|found| found.position);
        if position.is_some_and(|position| folded.shows(position.file)) {
            let spot = Spot::of(scene, function, Some(op))?;
            return Ok((depth > 0).then(|| format!("in library code called at {}", spot.text())));
        }
    }
    Ok(None)
}

/// Describes the difference in one operator.
fn kind(scene: &StepScene<'_>, a: &Step, b: &Step) -> String {
    let import = |function: &FuncId| import_name(scene.names, *function);
    match (&a.what, &b.what) {
        (What::HostReturn(f, _), What::HostReturn(..)) => {
            format!("{} returned another value", import(f))
        }
        (What::HostWrite(f, x), What::HostWrite(_, y)) if x.address == y.address => {
            format!("{} wrote other bytes", import(f))
        }
        (What::HostWrite(f, _), What::HostWrite(..)) => format!("{} wrote elsewhere", import(f)),
        (What::HostRead(f, x), What::HostRead(_, y)) if x == y => {
            format!("{} was given other bytes", import(f))
        }
        (What::HostRead(f, _), What::HostRead(..)) => {
            format!("{} read elsewhere, or another number of bytes", import(f))
        }
        (What::Load(x, _), What::Load(y, _)) if x == y => "another value was read".into(),
        (What::Store(x, _), What::Store(y, _)) if x == y => "another value is written".into(),
        (What::Load(..) | What::Store(..), What::Load(..) | What::Store(..)) => {
            "another address".into()
        }
        (What::Call { callee: x, .. }, What::Call { callee: y, .. }) if x != y => {
            "another function is called".into()
        }
        (What::Call { .. }, What::Call { .. }) => "called with other arguments".into(),
        (What::Branch(_), What::Branch(_)) => "a branch is decided by another value".into(),
        _ if a.time != b.time => "control took another way".into(),
        _ => "another value".into(),
    }
}

/// The number of columns after the name of a side.
fn room(scene: &StepScene<'_>, side: &str) -> Option<usize> {
    let taken = width(side) + 4;
    scene
        .style
        .width
        .map(|columns| columns.saturating_sub(taken))
}

fn told(
    scene: &StepScene<'_>,
    step: Option<&Step>,
    room: Option<usize>,
) -> Result<String, PresentError> {
    match step {
        None => Ok("has ended".to_owned()),
        Some(step) => Ok(StepRow::new(scene, step)?.text_in(scene.memories, room)),
    }
}

fn called_from(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    calls: &[CallPlace],
) -> Result<(), PresentError> {
    let mut texts = Vec::new();
    for call in calls.iter().take(CALLS) {
        texts.push(Spot::of(scene, call.function, Some(call.op))?.text());
    }
    if !texts.is_empty() {
        let line = format!("  called from {}", texts.join(", from "));
        writeln!(out, "{}", scene.style.cut(&line))?;
    }
    Ok(())
}

fn parted(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport<'_>,
    parting: &PartingDifference,
    (sides, folded): (&[String; 2], &Folded<'_>),
) -> Result<(), PresentError> {
    let scene = &scenes[0];
    let at = &parting.parting;
    let behind = match parting.decided.last() {
        Some((step, _)) => {
            let at = (step.function, step.op);
            match own_call(scene, at, &parting.calls, folded)? {
                Some(own) => format!(", {own}"),
                None => format!(", after {}", Spot::of(scene, at.0, at.1)?.text()),
            }
        }
        None => String::new(),
    };
    let head = format!("control parts at t={}{behind}", grouped(at.time));
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    for ((side, scene), block) in sides.iter().zip(scenes).zip([at.a, at.b]) {
        writeln!(out, "  {side}  {}", goes_on(scene, report, block)?)?;
    }
    called_from(out, scene, &parting.calls)?;
    if !parting.decided.is_empty() {
        writeln!(out, "  what differs in the block before:")?;
    }
    for (a, b) in &parting.decided {
        for ((side, scene), step) in sides.iter().zip(scenes).zip([a, b]) {
            let row = told(scene, Some(step), room(scene, side))?;
            writeln!(out, "{}", scene.style.cut(&format!("  {side}  {row}")))?;
        }
    }
    Ok(())
}

fn goes_on(
    scene: &StepScene<'_>,
    report: &DiffReport<'_>,
    block: Option<(FuncId, BlockId)>,
) -> Result<String, PresentError> {
    let Some((function, block)) = block else {
        return Ok("has ended".to_owned());
    };
    let known = report.program.function(function);
    let spot = match known.and_then(|known| known.cfg.blocks.get(block)) {
        Some(block) => Spot::of_block(scene, function, block)?,
        None => Spot::of(scene, function, None)?,
    };
    Ok(format!("continues at {}, {block}", spot.text()))
}

pub(super) fn put_out(
    out: &mut dyn Write,
    style: Style,
    output: &OutputDifference,
    sides: &[String; 2],
) -> Result<(), PresentError> {
    let head = format!(
        "{} differs from byte {} on, in line {}",
        descriptor(output.descriptor),
        grouped(output.offset),
        grouped(output.line)
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    let before = quoted(&output.before);
    let before = before.strip_suffix('"').unwrap_or(&before);
    for (side, written) in sides.iter().zip([&output.a, &output.b]) {
        let text = match written {
            None => format!("{before}\", and nothing more"),
            Some(Written { bytes, time, .. }) => {
                let text = quoted(bytes);
                format!("{before}{}  at t={}", &text[1..], grouped(*time))
            }
        };
        writeln!(out, "  {side}  {text}")?;
    }
    Ok(())
}

/// The common name of a file descriptor.
pub(super) fn descriptor(number: u32) -> String {
    match number {
        1 => "standard output".to_owned(),
        2 => "standard error".to_owned(),
        other => format!("file descriptor {other}"),
    }
}

fn line_counts(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &DiffReport<'_>,
    lines: &[super::LineDifference],
    (sources, code): (&dyn Sources, &CodeFilter),
) -> Result<(), PresentError> {
    if lines.is_empty() {
        writeln!(
            out,
            "each of {} ran equally often in both",
            counted(report.known_lines as u64, "line")
        )?;
        return Ok(());
    }
    let head = format!(
        "{} of {} ran a different number of times",
        grouped(lines.len() as u64),
        counted(report.known_lines as u64, "line"),
    );
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    let folded = Folded::new(scene.source, code);
    let is_own = |row: &&super::LineDifference| !folded.shows_any() || folded.shows(row.line.file);
    let own = Vec::from_iter(lines.iter().filter(is_own));
    let mut table = Table::new(&[
        ("A", Right),
        ("B", Right),
        ("B/A", Right),
        ("line", Left),
        ("text", Left),
    ]);
    let mut cache = Cache::new(sources);
    let files = scene.source.files();
    let top = report.top.unwrap_or(LINES);
    for row in own.iter().take(top) {
        let path = files.get(row.line.file.0 as usize);
        let path = path.map_or("", String::as_str);
        let text = cache.line(path, row.line.number).map(str::trim);
        let text = text.map(plain).unwrap_or_default();
        table.row([
            grouped(row.counts[0]),
            grouped(row.counts[1]),
            ratio(row.counts),
            plain(&format!(
                "{}:{}",
                scene.source.shown_path(row.line.file),
                row.line.number
            )),
            text,
        ]);
    }
    table.write(out, scene.style, |_| Paint::Plain)?;
    if own.len() > top {
        let more = grouped((own.len() - top) as u64);
        writeln!(out, "… and {more} more: --limit N")?;
    }
    if lines.len() > own.len() {
        let others = counted((lines.len() - own.len()) as u64, "line");
        writeln!(out, "library code: {others}; --code all shows them")?;
    }
    Ok(())
}

/// The ratio B/A of two counts.
fn ratio(counts: [u64; 2]) -> String {
    number::ratio(counts).unwrap_or_else(|| match counts {
        [0, _] => "only B".to_owned(),
        _ => "only A".to_owned(),
    })
}
