//! Steps for a person who debugs.

use std::io::Write;

use afterimage_replay::steps::{Range, Step, Tried, Value, What};

use super::{NextStep, Operator, StepScene};
use crate::PresentError;
use crate::name::without_parameters;
use crate::number::counted;
use crate::table::{Paint, plain, width};
use crate::value::value_text;

/// Columns that a source line takes, unless it is longer.
const SOURCE: usize = 22;
/// Columns that the place of an operator takes.
const PLACE: usize = 9;
/// Columns that a function takes, unless it is longer.
const FUNCTION: usize = 24;
/// Columns that an operator takes, unless it is longer.
const OPERATOR: usize = 16;

/// Writes steps for a person, a line for each. `last` is the last time that may come.
///
/// Returns the step with which it goes on, if there are more than `limit` lines.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn steps_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextStep<'_>,
    last: u64,
    limit: Option<u64>,
) -> Result<Option<Step>, PresentError> {
    let time = last.to_string().len().max(6);
    let has_files = !scene.source.files().is_empty();
    let source = if has_files { SOURCE } else { 0 };
    let name = if has_files {
        format!("{:SOURCE$}  ", "source")
    } else {
        String::new()
    };
    let head = format!(
        "{:>time$}  {name}{:FUNCTION$}  {:PLACE$}  {:OPERATOR$}  effect",
        "t", "function", "place", "operator"
    );
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    let mut written = 0;
    while let Some(step) = next()? {
        if limit == Some(written) {
            return Ok(Some(step));
        }
        written += 1;
        let line = format!("{:>time$}  {}", step.time, step_text(scene, &step, source)?);
        writeln!(out, "{}", scene.style.cut(&line))?;
    }
    if written == 0 {
        writeln!(out, "nothing of this kind happens")?;
    }
    Ok(None)
}

/// Where a step is, in which function, the place that other commands know, and what it did; a source line has so many columns.
pub(crate) fn step_text(
    scene: &StepScene<'_>,
    step: &Step,
    source: usize,
) -> Result<String, PresentError> {
    let operator = scene.operator(step)?;
    let from = match (source_text(scene, &operator), source) {
        (None, 0) => String::new(),
        (from, source) => format!("{:source$}  ", from.unwrap_or_default()),
    };
    let offset = operator.offset.map(|offset| format!("@{offset}"));
    let place = offset.unwrap_or_default();
    let function = plain(without_parameters(scene.names.function(step.function)));
    let name = doing(&step.what, &operator.name);
    let room = FUNCTION.saturating_sub(width(&function));
    let mut effect = effect(scene, step);
    if let Some(bytes) = step.bytes.as_deref().filter(|bytes| !bytes.is_empty()) {
        effect = format!("{effect}: {}", bytes_text(bytes));
    }
    let line = format!(
        "{from}{function}{:room$}  {place:PLACE$}  {name:OPERATOR$}  {effect}",
        ""
    );
    Ok(line.trim_end().to_owned())
}

/// `file.c:42`, if that is known.
fn source_text(scene: &StepScene<'_>, operator: &Operator) -> Option<String> {
    let position = operator.position?;
    let file = scene.source.shown_path(position.file);
    Some(plain(&format!("{file}:{}", position.line)))
}

/// What is done, in a word or two: the operator, unless it is the host that does it.
fn doing<'o>(what: &What, operator: &'o str) -> &'o str {
    match what {
        What::HostRead(..) => "host read",
        What::HostWrite(..) => "host write",
        What::HostReturn(..) => "host return",
        _ => operator,
    }
}

/// What an operator did.
fn effect(scene: &StepScene<'_>, step: &Step) -> String {
    let range = |range: &Range| range_text(scene.memories, *range);
    match &step.what {
        What::Computed(value) => format!("= {}", shown(value)),
        What::Load(read, value) => format!("{} = {}", range(read), shown(value)),
        What::Store(written, value) => format!("{} <- {}", range(written), shown(value)),
        What::Copy { from, to } => format!("{} <- {}", range(to), range(from)),
        What::Fill(written, byte) => format!("{} <- 0x{byte:02x}", range(written)),
        What::Init { to, segment, from } => {
            format!("{} <- data {segment} from 0x{from:x}", range(to))
        }
        What::Grow { memory, by, result } => format!(
            "memory {memory} by {} = {}",
            counted(*by, "page"),
            shown(result)
        ),
        What::SetGlobal(global, value) => format!("global {global} <- {}", shown(value)),
        What::Changed(operands) => all(operands),
        What::Branch(value) => format!("on {}", shown(value)),
        What::Jump => String::new(),
        What::Call { callee, arguments } => {
            let name = plain(without_parameters(scene.names.function(*callee)));
            match step.op {
                Some(_) => format!("{name}({})", all(arguments)),
                None => format!("calls {name}({})", all(arguments)),
            }
        }
        What::Return(values) if values.is_empty() => "returns".to_owned(),
        What::Return(values) => format!("returns {}", all(values)),
        What::HostReturn(import, values) => {
            let name = plain(scene.names.function(*import));
            if values.is_empty() {
                name
            } else {
                format!("{name} = {}", all(values))
            }
        }
        What::HostRead(import, touched) | What::HostWrite(import, touched) => {
            let name = plain(scene.names.function(*import));
            format!("{} by {name}", range(touched))
        }
        What::Throw(values) => all(values),
        What::Trap(trap, None) => format!("traps: {trap}"),
        What::Trap(trap, Some(tried)) => format!("traps: {trap}: {}", tried_text(scene, tried)),
    }
}

/// What an operator that trapped would have done.
fn tried_text(scene: &StepScene<'_>, tried: &Tried) -> String {
    let range = |range: &Range| range_text(scene.memories, *range);
    match tried {
        Tried::Load(read) => range(read),
        Tried::Store(written, value) => format!("{} <- {}", range(written), shown(value)),
        Tried::Copy { from, to } => format!("{} <- {}", range(to), range(from)),
        Tried::Fill(written, byte) => format!("{} <- 0x{byte:02x}", range(written)),
        Tried::Init { to, segment, from } => {
            format!("{} <- data {segment} from 0x{from:x}", range(to))
        }
    }
}

fn shown(value: &Value) -> String {
    value_text(value.ty, value.bits)
}

fn all(values: &[Value]) -> String {
    let texts = values.iter().map(shown);
    texts.collect::<Vec<_>>().join(", ")
}

/// Bytes as a text, if all are characters of one, otherwise as hexadecimal digits.
fn bytes_text(bytes: &[u8]) -> String {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if bytes.iter().all(is_text) {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().join(" ")
}

/// The first address and how many bytes there are, with the memory where there are several: `memories`.
pub fn range_text(memories: u32, range: Range) -> String {
    let bytes = counted(range.length, "byte");
    match memories {
        0 | 1 => format!("0x{:x}, {bytes}", range.address),
        _ => format!("memory {} 0x{:x}, {bytes}", range.memory, range.address),
    }
}
