//! Writes the differences for people: one sentence, then the evidence.

use std::io::Write;

use afterimage_analyses::diff::{CallPlace, OutputDifference, Written};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_profile::{CodeFilter, Folded, Source};
use afterimage_replay::state::quoted;
use afterimage_replay::steps::{Step, What};

use super::replaced::alike_text;
use super::{CALLS, DiffReport, FirstDifference, PartingDifference, Spot, ended, import_name};
use crate::PresentError;
use crate::Sources;
use crate::name::{short_function, without_parameters};
use crate::number::{self, counted, grouped};
use crate::sources::Cache;
use crate::steps::{StepRow, StepScene};
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain, width, wrapped};

/// The default maximum number of lines to show.
const LINES: usize = 20;

/// Writes the differences between two runs, for people. Lists lines of the selected code,
/// with their text if available.
///
/// # Errors
/// Returns an error if `out` fails or the module cannot be read.
pub fn diff_text(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport,
    (sources, code): (&dyn Sources, &CodeFilter),
) -> Result<(), PresentError> {
    let [a, b] = report.names().map(plain);
    let scene = &scenes[0];
    if report.alike.is_none() {
        ended(out, report.names(), report.endings.as_ref(), scene.style)?;
    }
    if let Some(alike) = &report.alike {
        alike_text(out, scenes, report, alike)?;
    }
    let Some(first) = &report.first else {
        let blocks = counted(report.lengths[0], "block");
        let same = "every value, address and host call";
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
        return questions(out, scenes, report, false);
    };
    let title = |text: &str| scene.style.paint(Paint::Bold, text);
    let width = a.chars().count().max(b.chars().count());
    let sides = [format!("{a:width$}"), format!("{b:width$}")];
    let folded = Folded::new(scene.source, code);
    // Separate parts by one empty line. Parts outside the user's own code become one line at the
    // end.
    let (mut is_first, mut outside) = (true, Vec::new());
    let mut part = |out: &mut dyn Write| {
        if std::mem::take(&mut is_first) {
            Ok(())
        } else {
            writeln!(out)
        }
    };
    let spots = report.spots(scene, &folded)?;
    match sentence(scene, report, first, &spots.first)? {
        (head, _) if spots.first == OwnSpot::Outside => outside.push(head),
        (head, what) => {
            part(out)?;
            let head = format!("{head}: {what}");
            writeln!(out, "{}", title(&wrapped(&head, scene.style.width, 2)))?;
            differing(out, scenes, first, (&sides, &spots.first))?;
            called_from(out, scene, &first.calls, (&folded, &spots.first))?;
        }
    }
    match &report.parting {
        None => {
            part(out)?;
            let blocks = counted(report.lengths[0], "block");
            writeln!(out, "control takes the same path in both, through {blocks}")?;
        }
        Some(parting) if spots.parting == OwnSpot::Outside => {
            outside.push(format!(
                "control diverges at t={}",
                grouped(parting.parting.time)
            ));
        }
        Some(parting) => {
            part(out)?;
            parted(out, scenes, parting, (&sides, &folded, &spots.parting))?;
        }
    }
    for output in &report.outputs {
        part(out)?;
        put_out(out, scene.style, &output.difference, &sides)?;
    }
    if let Some(lines) = &report.lines {
        part(out)?;
        line_counts(out, scene, report, lines, (sources, code))?;
    }
    if !outside.is_empty() {
        let text = format!(
            "outside your own code: {}; --code all shows it",
            outside.join("; ")
        );
        writeln!(out, "\n{}", wrapped(&text, scene.style.width, 2))?;
    }
    questions(out, scenes, report, !outside.is_empty())
}

/// Writes the first difference, with the differing bytes. Leaves out the operators if the
/// difference is in a library.
fn differing(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    first: &FirstDifference,
    (sides, spot): (&[String; 2], &OwnSpot),
) -> Result<(), PresentError> {
    let steps = [&first.difference.a, &first.difference.b];
    for ((side, scene), step) in sides.iter().zip(scenes).zip(steps) {
        if *spot == OwnSpot::Here {
            let room = room(scene, side);
            let line = format!("  {side}  {}", step_text(scene, step.as_ref(), room)?);
            writeln!(out, "{}", scene.style.cut(&line))?;
        }
    }
    if let Some(bytes) = &first.difference.bytes {
        writeln!(out, "  from byte {} on:", grouped(bytes.offset))?;
        for (side, bytes) in sides.iter().zip([&bytes.a, &bytes.b]) {
            let line = format!("  {side}  {}", quoted(bytes));
            writeln!(out, "{}", scenes[0].style.cut(&line))?;
        }
    }
    Ok(())
}

/// The relation of a difference to the shown code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnSpot {
    /// The difference is in the shown code, or no code is shown.
    Here,
    /// The difference is in library code that shown code called at this place.
    Called(String),
    /// The difference is in library code that shown code did not call, such as the startup before
    /// `main`.
    Outside,
}

/// The places of the differences.
pub(super) struct Spots {
    pub(super) first: OwnSpot,
    pub(super) parting: OwnSpot,
}

impl DiffReport {
    pub(super) fn spots(
        &self,
        scene: &StepScene<'_>,
        folded: &Folded<'_>,
    ) -> Result<Spots, PresentError> {
        let of = |step: Option<&Step>, calls: &[CallPlace]| match step {
            Some(step) => own_spot(scene, (step.function, step.op), calls, folded),
            None => Ok(OwnSpot::Here),
        };
        let (mut first, mut parting) = (OwnSpot::Here, OwnSpot::Here);
        if let Some(found) = &self.first {
            let difference = &found.difference;
            let step = difference.a.as_ref().or(difference.b.as_ref());
            first = of(step, &found.calls)?;
        }
        if let Some(found) = &self.parting {
            parting = of(found.decided.last().map(|(step, _)| step), &found.calls)?;
        }
        Ok(Spots { first, parting })
    }
}

/// Returns the line of shown code that contains a place, or into which its code was inlined.
fn own_line(
    scene: &StepScene<'_>,
    (function, op): (FuncId, OpId),
    folded: &Folded<'_>,
) -> Result<Option<OwnSpot>, PresentError> {
    let Some(found) = scene.operators.get(function, op)? else {
        return Ok(None);
    };
    if found.position.is_some_and(|at| folded.shows(at.file)) {
        return Ok(Some(OwnSpot::Here));
    }
    Ok(folded.locate(found.offset).map(|at| {
        let file = scene.source.short_path(at.file);
        let name = short_function(without_parameters(scene.names.function(function)));
        OwnSpot::Called(plain(&format!("{file}:{} in {name}", at.line)))
    }))
}

/// Returns the relation of a place to the shown code. If no code is shown, every place is
/// [`OwnSpot::Here`].
fn own_spot(
    scene: &StepScene<'_>,
    (function, op): (FuncId, Option<OpId>),
    calls: &[CallPlace],
    folded: &Folded<'_>,
) -> Result<OwnSpot, PresentError> {
    if !folded.shows_any() {
        return Ok(OwnSpot::Here);
    }
    if let Some(op) = op
        && let Some(here) = own_line(scene, (function, op), folded)?
    {
        return Ok(here);
    }
    for call in calls {
        match own_line(scene, (call.function, call.op), folded)? {
            Some(OwnSpot::Here) => {
                let spot = Spot::of(scene, call.function, Some(call.op))?;
                return Ok(OwnSpot::Called(spot.text()));
            }
            Some(called) => return Ok(called),
            None => {}
        }
    }
    Ok(OwnSpot::Outside)
}

/// Writes the questions to ask next. Questions about places in the module come last if the places
/// are outside the user's own code.
fn questions(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport,
    is_outside: bool,
) -> Result<(), PresentError> {
    let mut questions = report.questions(scenes)?;
    if is_outside {
        questions.sort_by_key(|question| question.command.contains(" --at @"));
    }
    if !questions.is_empty() {
        let head = scenes[0].style.paint(Paint::Bold, "questions to ask next");
        writeln!(out, "\n{head}")?;
        for question in questions {
            writeln!(out, "  {}", question.command)?;
        }
    }
    Ok(())
}

/// Describes the first difference between the two runs, and its place.
fn sentence(
    scene: &StepScene<'_>,
    report: &DiffReport,
    first: &FirstDifference,
    spot: &OwnSpot,
) -> Result<(String, String), PresentError> {
    let [a, b] = report.names().map(plain);
    let difference = &first.difference;
    let step = difference.a.as_ref().or(difference.b.as_ref());
    let Some(step) = step else {
        return Ok((format!("{a} and {b} differ"), "in some respect".to_owned()));
    };
    let what = match (&difference.a, &difference.b) {
        (None, _) => format!("{a} has ended there"),
        (_, None) => format!("{b} has ended there"),
        // If one operator replaced the other, perhaps only one of the two is a statement.
        (Some(x), Some(y)) if (x.time, x.function) == (y.time, y.function) && x.op != y.op => {
            "a different operator is executed".to_owned()
        }
        (Some(x), Some(y)) if (x.function, x.op) != (y.function, y.op) => {
            "control continues elsewhere".to_owned()
        }
        (Some(x), Some(y)) => kind(scene, x, y),
    };
    let place = match spot {
        OwnSpot::Called(at) => format!("in library code called at {at}"),
        OwnSpot::Here | OwnSpot::Outside => Spot::of(scene, step.function, step.op)?.text(),
    };
    let time = grouped(step.time);
    Ok(match spot {
        OwnSpot::Outside => (format!("at t={time}, {place}: {what}"), String::new()),
        _ => (
            format!("{a} and {b} first differ at t={time}, {place}"),
            what,
        ),
    })
}

/// Describes the difference in one operator.
fn kind(scene: &StepScene<'_>, a: &Step, b: &Step) -> String {
    let import = |function: &FuncId| import_name(scene.names, *function);
    match (&a.what, &b.what) {
        (What::HostReturn(f, _), What::HostReturn(..)) => {
            format!("{} returned a different value", import(f))
        }
        (What::HostWrite(f, x), What::HostWrite(_, y)) if x.address == y.address => {
            format!("{} wrote different bytes", import(f))
        }
        (What::HostWrite(f, _), What::HostWrite(..)) => format!("{} wrote elsewhere", import(f)),
        (What::HostRead(f, x), What::HostRead(_, y)) if x == y => {
            format!("{} was given different bytes", import(f))
        }
        (What::HostRead(f, _), What::HostRead(..)) => {
            format!(
                "{} read elsewhere, or read a different number of bytes",
                import(f)
            )
        }
        (What::Load(x, _), What::Load(y, _)) if x == y => "a different value was read".into(),
        (What::Store(x, _), What::Store(y, _)) if x == y => "a different value is written".into(),
        (What::Load(..) | What::Store(..), What::Load(..) | What::Store(..)) => {
            "a different address".into()
        }
        (What::Call { callee: x, .. }, What::Call { callee: y, .. }) if x != y => {
            "a different function is called".into()
        }
        (What::Call { .. }, What::Call { .. }) => "called with different arguments".into(),
        (What::Branch(_), What::Branch(_)) => "a branch is decided by a different value".into(),
        _ if a.time != b.time => "control took a different path".into(),
        _ => "a different value".into(),
    }
}

/// Returns the number of columns that remain after the name of a side, if the width is limited.
fn room(scene: &StepScene<'_>, side: &str) -> Option<usize> {
    let taken = width(side) + 4;
    scene
        .style
        .width
        .map(|columns| columns.saturating_sub(taken))
}

fn step_text(
    scene: &StepScene<'_>,
    step: Option<&Step>,
    room: Option<usize>,
) -> Result<String, PresentError> {
    match step {
        None => Ok("has ended".to_owned()),
        Some(step) => Ok(StepRow::new(scene, step)?.text_in(scene.memories, room)),
    }
}

/// Writes the open calls in shown code, without the innermost call if the preceding sentence names
/// it.
fn called_from(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    calls: &[CallPlace],
    (folded, spot): (&Folded<'_>, &OwnSpot),
) -> Result<(), PresentError> {
    let mut texts = Vec::new();
    for call in calls {
        let at = (call.function, call.op);
        let is_own = !folded.shows_any() || own_line(scene, at, folded)?.is_some();
        if texts.len() < CALLS && is_own {
            texts.push(Spot::of(scene, call.function, Some(call.op))?.text());
        }
    }
    if let OwnSpot::Called(at) = spot {
        let is_named = texts.first() == Some(at);
        texts.drain(..usize::from(is_named));
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
    parting: &PartingDifference,
    (sides, folded, spot): (&[String; 2], &Folded<'_>, &OwnSpot),
) -> Result<(), PresentError> {
    let scene = &scenes[0];
    let at = &parting.parting;
    let behind = match (parting.decided.last(), spot) {
        (Some(_), OwnSpot::Called(own)) => format!(", in library code called at {own}"),
        (Some((step, _)), _) => {
            format!(
                ", after {}",
                Spot::of(scene, step.function, step.op)?.text()
            )
        }
        (None, _) => String::new(),
    };
    let head = format!("control diverges at t={}{behind}", grouped(at.time));
    let head = wrapped(&head, scene.style.width, 2);
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    if matches!(spot, OwnSpot::Called(_)) {
        return called_from(out, scene, &parting.calls, (folded, spot));
    }
    for ((side, scene), block) in sides.iter().zip(scenes).zip([at.a, at.b]) {
        let line = format!("  {side}  {}", goes_on(scene, block)?);
        writeln!(out, "{}", scene.style.cut(&line))?;
    }
    called_from(out, scene, &parting.calls, (folded, spot))?;
    if !parting.decided.is_empty() {
        writeln!(out, "  what differs in the block before:")?;
    }
    for (a, b) in &parting.decided {
        for ((side, scene), step) in sides.iter().zip(scenes).zip([a, b]) {
            let row = step_text(scene, Some(step), room(scene, side))?;
            writeln!(out, "{}", scene.style.cut(&format!("  {side}  {row}")))?;
        }
    }
    Ok(())
}

fn goes_on(
    scene: &StepScene<'_>,
    block: Option<(FuncId, BlockId)>,
) -> Result<String, PresentError> {
    let Some((function, block)) = block else {
        return Ok("has ended".to_owned());
    };
    let known = scene.operators.program().function(function);
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

/// Returns the common name of a file descriptor.
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
    report: &DiffReport,
    lines: &[super::LineDifference],
    (sources, code): (&dyn Sources, &CodeFilter),
) -> Result<(), PresentError> {
    if lines.is_empty() {
        writeln!(
            out,
            "each line ran equally often in both runs ({})",
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
                scene.source.short_path(row.line.file),
                row.line.number
            )),
            text,
        ]);
    }
    if !own.is_empty() {
        table.write(out, scene.style, |_| Paint::Plain)?;
    }
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

/// Formats the ratio B/A of two counts.
fn ratio(counts: [u64; 2]) -> String {
    number::ratio(counts).unwrap_or_else(|| match counts {
        [0, _] => "only B".to_owned(),
        _ => "only A".to_owned(),
    })
}
