//! Writes steps as text for people.

use std::io::Write;

use afterimage_replay::steps::{Level, Range, Step};

use super::{Amount, Folded, FoldedSteps, ShownStep, StepRow, StepScene, StepTried, StepWhat};
use crate::PresentError;
use crate::document::objects::{MemoryRange, TypedValue};
use crate::name::short_function;
use crate::number::{counted, grouped};
use crate::table::{Paint, plain, width};

/// The minimum width of a source line.
const SOURCE: usize = 22;
/// The width of an operator's place.
const PLACE: usize = 9;
/// The minimum width of the function column.
const FUNCTION: usize = 24;
/// The minimum width of an operator.
const OPERATOR: usize = 16;

/// Writes rows of steps of a level for people, one per line. `last` is the last possible time.
///
/// Returns the step with which to continue, if there are more than `limit` lines.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
pub fn steps_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    rows: &mut FoldedSteps<'_>,
    (level, last): (Level, u64),
    limit: Option<u64>,
) -> Result<Option<Step>, PresentError> {
    let time = grouped(last).len().max(6);
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
    loop {
        if limit == Some(written)
            && let Some(step) = rows.begin_of_next()?
        {
            return Ok(Some(step));
        }
        let Some(row) = rows.next()? else { break };
        written += 1;
        let text = row.text(scene, level, source)?;
        let line = format!("{:>time$}  {text}", grouped(row.step.time));
        writeln!(out, "{}", scene.style.cut(&line))?;
    }
    if written == 0 {
        writeln!(out, "no steps match")?;
    }
    Ok(None)
}

impl ShownStep {
    /// Formats the row. `source` is the width of the source line.
    fn text(
        &self,
        scene: &StepScene<'_>,
        level: Level,
        source: usize,
    ) -> Result<String, PresentError> {
        // A single step is shown if its line is shown.
        let folded = self.folded.as_ref();
        let is_shown = |folded: &&Folded| folded.amount != Amount::Steps(1) || self.own.is_none();
        let Some(Folded { amount, last }) = folded.filter(is_shown) else {
            let row = StepRow {
                own: self.own.clone(),
                ..StepRow::new(scene, &self.step)?
            };
            return Ok(row.text(scene.memories, source));
        };
        let steps = match (level, amount) {
            (_, Amount::Blocks(count)) => counted(*count, "block"),
            (Level::Statement, Amount::Steps(count)) => counted(*count, "statement"),
            (Level::Memory, Amount::Steps(1)) => "1 access".to_owned(),
            (Level::Memory, Amount::Steps(count)) => format!("{} accesses", grouped(*count)),
        };
        let code = scene
            .own
            .map_or("library code", |own| own.folded.left_out());
        let Some(own) = &self.own else {
            return Ok(format!("… {steps} of {code}"));
        };
        let line = plain(&own.line.to_string());
        let last = match last {
            Some(last) => {
                let effect = StepRow::new(scene, last)?.effect(scene.memories);
                format!(", the last: {effect}")
            }
            None => String::new(),
        };
        Ok(format!("{line:source$}  … {steps} of {code}{last}"))
    }
}

impl StepRow {
    /// Formats the source line, the function, the place as commands name it, and the effect.
    /// Includes the memory if there are several (`memories`). `source` is the width of the source
    /// line.
    pub(crate) fn text(&self, memories: u32, source: usize) -> String {
        let line = self.own.as_ref().map(|own| &own.line);
        let line = line.or(self.source.as_ref());
        let line = line.map(|line| plain(&line.to_string()));
        let from = match (line, source) {
            (None, 0) => String::new(),
            (from, source) => format!("{:source$}  ", from.unwrap_or_default()),
        };
        let place = self.offset.map(|offset| format!("@0x{offset:x}"));
        let place = place.unwrap_or_default();
        let function = self.shown_function();
        let name = self.doing();
        let room = FUNCTION.saturating_sub(width(&function));
        let effect = self.effect_and_contents(memories);
        let line = format!(
            "{from}{function}{:room$}  {place:PLACE$}  {name:OPERATOR$}  {effect}",
            ""
        );
        line.trim_end().to_owned()
    }

    /// Returns the part of [`text`](Self::text) that fits into `room` columns. If the whole text
    /// does not fit, returns only the operator and the effect.
    pub(crate) fn text_in(&self, memories: u32, room: Option<usize>) -> String {
        let text = self.text(memories, 0);
        if room.is_none_or(|room| width(&text) <= room) {
            return text;
        }
        format!("{}  {}", self.doing(), self.effect(memories))
    }

    /// Formats the effect on memory, the source line, and the place as commands name it.
    pub(crate) fn sentence(&self, memories: u32) -> String {
        let function = self.shown_function();
        let place = self.offset.map(|offset| format!("@0x{offset:x}"));
        let line = self
            .own
            .as_ref()
            .map(|own| &own.line)
            .or(self.source.as_ref());
        let (at, place) = match (line, place) {
            (Some(line), place) => {
                let place = place.map_or(String::new(), |place| format!("  {place}"));
                (plain(&line.to_string()), place)
            }
            (None, place) => (place.unwrap_or_default(), String::new()),
        };
        let how = match self.doing() {
            host if host.starts_with("host") => format!("{host} "),
            _ => String::new(),
        };
        format!(
            "{at} in {function}: {how}{}{place}",
            self.effect_and_contents(memories)
        )
        .trim_start_matches(" in ")
        .to_owned()
    }

    /// Returns the name of the function, or `library code` if a line is shown that called it.
    fn shown_function(&self) -> String {
        match &self.own {
            Some(own) if own.called => "library code".to_owned(),
            _ => plain(&short_function(&self.function.name)),
        }
    }

    /// Returns the action in one or two words: the operator, or the action of the host.
    fn doing(&self) -> &str {
        match &self.what {
            StepWhat::HostRead { .. } => "host read",
            StepWhat::HostWrite { .. } => "host write",
            StepWhat::HostReturn { .. } => "host return",
            _ => self.operator.as_deref().unwrap_or("host"),
        }
    }

    /// Describes the effect of an operator, and the bytes that it moved.
    fn effect_and_contents(&self, memories: u32) -> String {
        let effect = self.effect(memories);
        match self.contents.as_deref() {
            Some(bytes) if !bytes.is_empty() => format!("{effect}: {}", bytes_text(bytes)),
            _ => effect,
        }
    }

    /// Describes the effect of an operator.
    fn effect(&self, memories: u32) -> String {
        let range = |range: &MemoryRange| range_text(memories, (*range).into());
        match &self.what {
            StepWhat::Value { value } => format!("= {}", value.text),
            StepWhat::Load { access, value } => format!("{} = {}", range(access), value.text),
            StepWhat::Store { access, value } => format!("{} <- {}", range(access), value.text),
            StepWhat::Copy { access, from } => format!("{} <- {}", range(access), range(from)),
            StepWhat::Fill { access, byte } => format!("{} <- 0x{byte:02x}", range(access)),
            StepWhat::Init {
                access,
                segment,
                offset_in_segment,
            } => format!(
                "{} <- data {segment} from 0x{offset_in_segment:x}",
                range(access)
            ),
            StepWhat::Grow {
                memory,
                pages,
                value,
            } => format!(
                "memory {memory} by {} = {}",
                counted(*pages, "page"),
                value.text
            ),
            StepWhat::SetGlobal { global, value } => format!("global {global} <- {}", value.text),
            StepWhat::Change { values } | StepWhat::Throw { values } => all(values),
            StepWhat::Branch { value } => format!("on {}", value.text),
            StepWhat::Jump => String::new(),
            StepWhat::Call { callee, values } => {
                let name = plain(&short_function(&callee.name));
                match self.operator {
                    Some(_) => format!("{name}({})", all(values)),
                    None => format!("calls {name}({})", all(values)),
                }
            }
            StepWhat::Return { values } if values.is_empty() => "returns".to_owned(),
            StepWhat::Return { values } => format!("returns {}", all(values)),
            StepWhat::HostReturn { callee, values } => {
                let name = plain(&callee.name);
                if values.is_empty() {
                    name
                } else {
                    format!("{name} = {}", all(values))
                }
            }
            StepWhat::HostRead { callee, access } | StepWhat::HostWrite { callee, access } => {
                format!("{} by {}", range(access), plain(&callee.name))
            }
            StepWhat::Trap { trap, tried: None } => format!("traps: {trap}"),
            StepWhat::Trap {
                trap,
                tried: Some(tried),
            } => format!("traps: {trap}: {}", tried.text(range)),
        }
    }
}

impl StepTried {
    /// Describes the access that a trapped operator would have made.
    fn text(&self, range: impl Fn(&MemoryRange) -> String) -> String {
        match self {
            Self::Load { access } => range(access),
            Self::Store { access, value } => format!("{} <- {}", range(access), value.text),
            Self::Copy { access, from } => format!("{} <- {}", range(access), range(from)),
            Self::Fill { access, byte } => format!("{} <- 0x{byte:02x}", range(access)),
            Self::Init {
                access,
                segment,
                offset_in_segment,
            } => format!(
                "{} <- data {segment} from 0x{offset_in_segment:x}",
                range(access)
            ),
        }
    }
}

fn all(values: &[TypedValue]) -> String {
    let texts = values.iter().map(|value| value.text.as_str());
    texts.collect::<Vec<_>>().join(", ")
}

/// Formats bytes as text if all are printable characters, and otherwise in hexadecimal.
fn bytes_text(bytes: &[u8]) -> String {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if bytes.iter().all(is_text) {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().join(" ")
}

/// Formats the first address and the number of bytes, with the memory if there are several
/// (`memories`).
pub fn range_text(memories: u32, range: Range) -> String {
    let bytes = counted(range.length, "byte");
    match memories {
        0 | 1 => format!("0x{:x}, {bytes}", range.address),
        _ => format!("memory {} 0x{:x}, {bytes}", range.memory, range.address),
    }
}
