//! Reports where a value came from, as text, JSON, a table or a graph.

mod csv;
mod dot;
mod expression;
mod json;
mod origin;

use std::io::Write;

use afterimage_profile::SourceLine;
pub use csv::WhyCsv;
pub use dot::WhyDot;
pub use expression::expression;
pub use json::{WhyDeath, WhyHead, WhyInLine, why_head};
pub use origin::{SEARCHED, why_origin};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects::{Function, MemoryRange, Position, TypedValue, position};
use crate::name::short_function;
use crate::number::counted;
use crate::plain::plain;
use crate::shell::shell_word;
use crate::table::{width, wrapped};
use crate::{PresentError, grouped};

/// An execution of an operator. Its strings may contain hidden characters, which are escaped when
/// they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyPlace {
    /// Its function.
    pub function: Function,
    /// Its line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The line of the inlined call to which the operator belongs. Present if `source` is a
    /// library's line and this line is the user's own, or if only the text of this line is
    /// available.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub around: Option<SourceLine>,
    /// The text of the line `around` if present, otherwise of the line `source`, if available.
    pub text: Option<String>,
    /// The operator's name in the text format.
    pub operator: String,
    /// Its name in commands: `@0x1f3#7`.
    pub at: String,
    /// The time of its block.
    pub t: u64,
    /// `true` if neither its line nor a line that it was inlined into is the user's own code;
    /// otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
    /// The innermost call in the user's own code during which a library executed the operator. Its
    /// `at` names the calling operator, without an execution. Absent if there is no such call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_from: Option<Box<WhyPlace>>,
}

impl WhyPlace {
    /// Returns [`at`](Self::at) without the execution.
    pub fn site(&self) -> &str {
        self.at.split_once('#').map_or(&self.at, |(site, _)| site)
    }

    /// Returns the place as text for people: `file.c:42`, or `main.rs:7 (index.rs:568)` for inlined
    /// code.
    pub fn line(&self) -> Option<String> {
        let source = self.source.as_ref()?;
        Some(plain(&match &self.around {
            Some(around) => format!("{around} ({source})"),
            None => source.to_string(),
        }))
    }

    /// Returns the line, or the operator if the line is unknown, as text for people.
    pub fn line_or_at(&self) -> String {
        self.line().unwrap_or_else(|| self.at.clone())
    }

    /// Returns the place and its function as text for people: `file.c:42 in main`.
    pub fn described(&self) -> String {
        let function = plain(&short_function(&self.function.name));
        format!("{} in {function}", self.line_or_at())
    }

    /// Like [`line_or_at`](Self::line_or_at), but for library code that the user's own code called,
    /// the calling line precedes the library's: `app.cc:7 (vector:1457)`.
    pub fn own_line_or_at(&self) -> String {
        match self.own_call() {
            Some(call) => format!("{} ({})", call.line_or_at(), self.line_or_at()),
            None => self.line_or_at(),
        }
    }

    /// Like [`described`](Self::described), but with the line and function of the call for library
    /// code that the user's own code called: `app.cc:7 in main (vector:1457)`.
    pub fn own_described(&self) -> String {
        match self.own_call() {
            Some(call) => format!("{} ({})", call.described(), self.line_or_at()),
            None => self.described(),
        }
    }

    /// Returns the call in the user's own code that led to library code. If the call was itself
    /// inlined, its line is the line of the user's own code.
    fn own_call(&self) -> Option<WhyPlace> {
        let call = self.called_from.as_deref()?;
        Some(WhyPlace {
            source: call.around.clone().or_else(|| call.source.clone()),
            around: None,
            ..call.clone()
        })
    }

    /// Returns the name of the operator for sentences: `the branch` for a branch or an `if`,
    /// otherwise the operator.
    pub(crate) fn called(&self) -> &str {
        match self.operator.as_str() {
            operator if operator.starts_with("br") || operator == "if" => "the branch",
            operator => operator,
        }
    }
}

/// An operand of an operator that computed a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyOperand {
    /// Its role in the operator.
    pub role: String,
    /// Its value, as text.
    pub value: String,
    /// Its value, with type and exact bits.
    pub typed: TypedValue,
    /// Whether it is a constant of the code.
    pub constant: bool,
    /// Whether `why` can follow the operand although all operands are constants, because the
    /// operand was passed, returned, or set in another block.
    #[serde(skip)]
    pub elsewhere: bool,
    /// Whether the next entry is about this operand.
    pub followed: bool,
}

/// A move of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyMove {
    /// The kind of move: `loaded`, `stored`.
    pub how: String,
    /// The place of the value: `memory 0x1040..0x1043`, `global 0`.
    pub what: String,
    /// The bytes of memory, if the place is in a memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRange>,
    /// The value at the place that `what` names; empty if unknown.
    #[serde(serialize_with = "unless_empty")]
    #[schemars(with = "Option<String>")]
    pub value: String,
    /// The value at the place that `what` names, with type and exact bits. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<TypedValue>,
    /// The place in the program.
    pub place: WhyPlace,
    /// The number of other parts of the value that were read but are not followed.
    pub besides: u64,
}

/// A computed value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyMade {
    /// The way in which the value was produced.
    pub step: WhyHow,
    /// The value, as text.
    pub value: String,
    /// The value, with type and exact bits. Absent if the operator gives no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<TypedValue>,
    /// Its operands. If no operand is followed, the chain ends here.
    pub operands: Vec<WhyOperand>,
    /// The place in the program.
    pub place: WhyPlace,
}

/// The way in which a value was produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum WhyHow {
    /// The value was computed from its operands.
    #[serde(rename = "computed")]
    Computed,
    /// The value was read from a table that was never written.
    #[serde(rename = "looked up")]
    LookedUp,
}

impl WhyMade {
    /// Returns the index of the operand that is followed.
    pub fn followed(&self) -> Option<usize> {
        self.operands.iter().position(|operand| operand.followed)
    }

    /// Whether the operator only converts an integer, a character or a truth value to another type,
    /// and its value stays the same.
    fn is_conversion(&self) -> bool {
        let Some(followed) = self.followed() else {
            return false;
        };
        let operator = self.place.operator.as_str();
        let scalar = ["i32.", "i64."];
        let own = scalar.iter().find_map(|space| operator.strip_prefix(space));
        let others = self.operands.iter().enumerate();
        let mut others = others.filter(|(number, _)| *number != followed);
        let mut all = |constants: &[&str]| {
            others.all(|(_, other)| other.constant && constants.contains(&&*other.value))
        };
        let converts = match own {
            Some("and") => all(&["1", "255", "65535"]),
            Some("ne") => all(&["0"]),
            Some(own) => own == "wrap_i64" || own.starts_with("extend"),
            None => false,
        };
        converts && self.step == WhyHow::Computed && self.operands[followed].value == self.value
    }
}

/// A branch, with the value that decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyBranch {
    /// The branch.
    pub place: WhyPlace,
    /// The value that decided it; empty if it is not stored.
    pub value: String,
}

/// A branch that led to the place that an activation had reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyLed {
    /// The branch.
    #[serde(flatten)]
    pub branch: WhyBranch,
    /// Whether the next entry is about the value that decided it.
    pub followed: bool,
}

/// An activation that was open when the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyFrame {
    /// The place that the activation had reached.
    pub place: WhyPlace,
    /// The functions that were inlined at `place`, the innermost first. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// The branch in the activation that led to `place`.
    pub branch: Option<WhyLed>,
    /// Whether its function belongs to the program itself and not to a library, according to the
    /// debug information.
    pub own: bool,
    /// The inlined call to a function of the user's own code that was open at `place`, if there is
    /// one.
    #[serde(skip)]
    pub within: Option<InlinedCall>,
}

/// A call to a function that was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// The function.
    pub function: String,
    /// The nearest line of the user's own code around the call.
    pub called_from: Option<SourceLine>,
}

impl WhyFrame {
    /// Returns the branch that led to the activation's place, if the branch is followed.
    pub fn followed(&self) -> Option<&WhyBranch> {
        let led = self.branch.as_ref().filter(|led| led.followed);
        led.map(|led| &led.branch)
    }

    /// Whether another activation is at the same operator and the same branch led to it, in any
    /// execution. Two activations differ if the branch of one is followed.
    fn is_alike(&self, other: &Self) -> bool {
        let branch = |of: &Self| {
            let led = of.branch.as_ref();
            led.map(|led| led.branch.place.site().to_owned())
        };
        let followed = self.followed().or(other.followed());
        followed.is_none()
            && self.place.site() == other.place.site()
            && branch(self) == branch(other)
    }
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyEnd {
    /// The kind in one word: `constant`, `input`, …
    pub kind: &'static str,
    /// The origin in words that follow "it comes from".
    pub what: String,
    /// The file, if the value is a part of a file.
    pub file: Option<String>,
    /// The offset of the byte in the file or the data segment, from 0.
    pub offset: Option<u64>,
    /// The number of bytes.
    pub bytes: Option<u64>,
    /// The place in the program, if there is one.
    pub place: Option<WhyPlace>,
    /// The place of the value's latest read from a computed address.
    pub read: Option<WhyPlace>,
    /// The branch that led to the value, with the value that decided the branch. Present only if
    /// the origin is a constant.
    pub led: Option<Box<WhyBranch>>,
    /// A further remark.
    pub remark: Option<String>,
}

/// A step of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "step", rename_all = "lowercase")]
#[expect(
    clippy::large_enum_variant,
    reason = "steps are handled one at a time, and few are kept"
)]
pub enum WhyEntry {
    /// The activations and branches at the end of the run; only with `--trap`.
    Led {
        /// The activations that were open, the innermost first.
        frames: Vec<WhyFrame>,
        /// The number of further activations.
        more: u64,
    },
    /// The value was moved.
    Moved {
        /// The moves, the latest first.
        moves: Vec<WhyMove>,
        /// The number of earlier moves.
        more: u64,
    },
    /// The last steps repeat.
    Again {
        /// The number of repeated steps.
        #[serde(rename = "steps")]
        period: usize,
        /// The number of repetitions.
        times: u64,
        /// The earliest of the repeated steps.
        back: WhyMade,
    },
    /// The origin of the value.
    End(WhyEnd),
    /// The value was computed.
    #[serde(untagged)]
    Made(WhyMade),
}

/// Library steps that are left out between two other entries.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    steps: u64,
    /// The calls in the user's own code to which the steps belong, the latest first.
    called_from: Vec<String>,
}

impl LeftOut {
    /// Returns the number of steps left out.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Adds an entry that is folded.
    pub fn add(&mut self, entry: &WhyEntry) {
        match entry {
            WhyEntry::Made(made) => self.at(1, &made.place),
            WhyEntry::Again {
                period,
                times,
                back,
            } => self.at((*period as u64).saturating_mul(*times), &back.place),
            WhyEntry::Moved { moves, more } => self.moves(moves, *more),
            WhyEntry::Led { .. } | WhyEntry::End(_) => {}
        }
    }

    fn moves(&mut self, moves: &[WhyMove], more: u64) {
        for one in moves {
            self.at(1, &one.place);
        }
        self.steps = self.steps.saturating_add(more);
    }

    fn at(&mut self, steps: u64, place: &WhyPlace) {
        self.steps = self.steps.saturating_add(steps);
        if let Some(call) = &place.called_from {
            let call = call.described();
            if !self.called_from.contains(&call) {
                self.called_from.push(call);
            }
        }
    }
}

/// Serialises a string, or `null` if it is empty.
fn unless_empty<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    (!text.is_empty()).then_some(text).serialize(to)
}

/// Writes the chain, entry by entry.
pub struct WhyText<'o> {
    /// The receiver.
    pub out: &'o mut dyn Write,
    /// The name of the recording in commands.
    pub file: String,
    /// The source line that was last shown.
    pub shown: Option<String>,
    /// The width of the terminal, if the output goes to one.
    pub width: Option<usize>,
}

/// The width of the column for computations.
const WIDTH: usize = 34;
/// The width of the column for places.
const PLACE: usize = 28;
/// The maximum number of calls to name for library steps that are left out.
const CALLS: usize = 2;
/// The maximum length of a source line.
const SOURCE: usize = 60;

impl WhyText<'_> {
    /// Writes an entry.
    ///
    /// # Errors
    /// Returns an error if the entry cannot be written.
    pub fn entry(&mut self, entry: &WhyEntry) -> Result<(), PresentError> {
        match entry {
            _ if Self::hides(entry) => Ok(()),
            WhyEntry::Led { frames, more } => self.led(frames, *more),
            WhyEntry::Moved { moves, more } => self.moves(moves, *more),
            WhyEntry::Made(made) => self.made(made),
            WhyEntry::Again {
                period,
                times,
                back,
            } => {
                let what = match period {
                    1 => "this".to_owned(),
                    steps => format!("these {steps} steps"),
                };
                writeln!(
                    self.out,
                    "  … {what} {}, back to",
                    counted(*times, "more time")
                )?;
                self.made(back)
            }
            WhyEntry::End(end) => self.end(end),
        }
    }

    /// Writes how to ask about the other numbers of a line of output.
    ///
    /// # Errors
    /// Returns an error if the text cannot be written.
    pub fn in_line(&mut self, in_line: &WhyInLine) -> Result<(), PresentError> {
        let WhyInLine {
            numbers,
            before,
            option,
            at,
        } = in_line;
        let remark = format!(
            "the last of the line's {} numbers; for {before}",
            grouped(*numbers)
        );
        let command = format!("afterimage why {} {option} {at}", self.file);
        self.hint(&remark, &command)
    }

    /// Whether an entry is not shown, because it only converts a value to another type.
    pub fn hides(entry: &WhyEntry) -> bool {
        matches!(entry, WhyEntry::Made(made) if made.is_conversion())
    }

    /// Whether all steps of an entry are in libraries, so that they are folded.
    pub fn folds(entry: &WhyEntry) -> bool {
        match entry {
            WhyEntry::Made(made) | WhyEntry::Again { back: made, .. } => made.place.library,
            WhyEntry::Moved { moves, .. } => moves.iter().all(|one| one.place.library),
            WhyEntry::Led { .. } | WhyEntry::End(_) => false,
        }
    }

    /// Writes the number of steps that were left out, and the calls in the user's own code to which
    /// they belong.
    ///
    /// # Errors
    /// Returns an error if the entry cannot be written.
    pub fn left_out(&mut self, left_out: &LeftOut) -> Result<(), PresentError> {
        let LeftOut { steps, called_from } = left_out;
        if *steps == 0 {
            return Ok(());
        }
        let mut line = format!("  … {} in library code", counted(*steps, "step"));
        if !called_from.is_empty() {
            let (named, others) = called_from.split_at(called_from.len().min(CALLS));
            line += &format!(", called at {}", named.join(", and at "));
            if !others.is_empty() {
                line += &format!(", and in {}", counted(others.len() as u64, "other place"));
            }
        }
        Ok(writeln!(self.out, "{}", wrapped(&line, self.width, 4))?)
    }

    fn made(&mut self, made: &WhyMade) -> Result<(), PresentError> {
        let computed = format!("{} = {}", made.value, expression(made));
        let place = &made.place;
        let at = format!("{}  t={}", place.described(), grouped(place.t));
        self.line(&computed, &at, place)?;
        for (i, operand) in made.operands.iter().enumerate() {
            let open = !operand.constant || operand.elsewhere;
            if open && made.followed().is_some_and(|followed| followed != i) {
                let WhyOperand { role, value, .. } = operand;
                let (file, at) = (&self.file, &made.place.at);
                let role = shell_word(role);
                let command = format!("afterimage why {file} --at {at} --operand {role}");
                self.hint(value, &command)?;
            }
        }
        Ok(())
    }

    /// Writes one line about the library code, called by the user's own code, in which the run
    /// ended.
    fn ended_in_library(&mut self, frames: &[WhyFrame]) -> Result<(), PresentError> {
        let Some(innermost) = frames.first() else {
            return Ok(());
        };
        let calls = match frames.len() {
            1 => String::new(),
            calls => format!("{} deep, ", counted(calls as u64, "call")),
        };
        let line = format!(
            "  ended in library code ({calls}{})",
            innermost.place.described()
        );
        writeln!(self.out, "{}", wrapped(&line, self.width, 4))?;
        if let Some(led) = frames.iter().find_map(WhyFrame::followed) {
            let on = on(&led.value);
            writeln!(
                self.out,
                "      led there by a branch in it{on}, followed below"
            )?;
        }
        Ok(())
    }

    /// Writes a remark and the command that gives details, on separate lines if one line is too
    /// short.
    fn hint(&mut self, remark: &str, command: &str) -> Result<(), PresentError> {
        let line = format!("      {remark}: {command}");
        if self.fits(&[&line]) {
            writeln!(self.out, "{line}")?;
        } else {
            let remark = format!("      {remark}:");
            writeln!(self.out, "{}", wrapped(&remark, self.width, 8))?;
            writeln!(self.out, "        {command}")?;
        }
        Ok(())
    }

    /// Describes the branch that led to a place.
    fn led_by(branch: &WhyPlace, decided: &str) -> String {
        let on = on(decided);
        if branch.library {
            let at = branch.line_or_at();
            format!("led there by a branch in library code ({at}){on}")
        } else {
            format!(
                "led there by {} at {}{on}",
                branch.called(),
                branch.described()
            )
        }
    }

    fn led(&mut self, frames: &[WhyFrame], more: u64) -> Result<(), PresentError> {
        let mut rest = frames;
        let library = frames.iter().take_while(|frame| frame.place.library);
        let library = library.count();
        if library > 0 && library < frames.len() {
            self.ended_in_library(&frames[..library])?;
            rest = &frames[library..];
        }
        while let Some((frame, further)) = rest.split_first() {
            let is_last = rest.len() == frames.len();
            let is_folded = |frame: &&WhyFrame| frame.place.library && frame.followed().is_none();
            let library = rest.iter().take_while(is_folded).count();
            if !is_last && library > 0 {
                let calls = counted(library as u64, "call");
                writeln!(self.out, "  … {calls} in library code")?;
                rest = &rest[library..];
                continue;
            }
            self.frame(frame, if is_last { "ended at" } else { "called at" })?;
            let alike = further.iter().take_while(|other| frame.is_alike(other));
            let alike = alike.count();
            let folded = if is_last || alike < 2 { 0 } else { alike };
            if folded > 0 {
                writeln!(
                    self.out,
                    "  … and {} from there",
                    counted(folded as u64, "more time")
                )?;
            }
            rest = &further[folded..];
        }
        if more > 0 {
            writeln!(self.out, "  … and {} more", grouped(more))?;
        }
        Ok(())
    }

    fn frame(&mut self, frame: &WhyFrame, how: &str) -> Result<(), PresentError> {
        let line = format!("  {how} {}", frame.place.described());
        writeln!(self.out, "{}", wrapped(&line, self.width, 4))?;
        let Some(WhyLed { branch, followed }) = &frame.branch else {
            return Ok(());
        };
        let led = Self::led_by(&branch.place, &branch.value);
        if *followed {
            let line = format!("      {led}, followed below");
            writeln!(self.out, "{}", wrapped(&line, self.width, 8))?;
            Ok(())
        } else {
            let command = format!("afterimage why {} --at {}", self.file, branch.place.at);
            self.hint(&led, &command)
        }
    }

    /// Writes a value and its place, with the text of the place's line.
    fn line(&mut self, what: &str, at: &str, place: &WhyPlace) -> Result<(), PresentError> {
        let text = match &place.text {
            Some(text) if self.shown != place.line() => {
                let text = plain(text);
                let mut short: String = text.chars().take(SOURCE).collect();
                if short.len() < text.len() {
                    short.push('…');
                }
                format!("  | {short}")
            }
            _ => String::new(),
        };
        self.shown = place.line();
        let mut line = format!("  {what:<WIDTH$}  {at:<PLACE$}");
        if !self.fits(&[line.trim_end()]) {
            writeln!(self.out, "{}", wrapped(&format!("  {what}"), self.width, 4))?;
            line = format!("      {at}");
        }
        if text.is_empty() || self.fits(&[&line, &text]) {
            writeln!(self.out, "{}", format!("{line}{text}").trim_end())?;
        } else {
            writeln!(self.out, "{}", line.trim_end())?;
            writeln!(self.out, "    {text}")?;
        }
        Ok(())
    }

    /// Whether these strings together fit on one line.
    fn fits(&self, texts: &[&str]) -> bool {
        let all = texts.iter().map(|text| width(text)).sum::<usize>();
        self.width.is_none_or(|columns| all <= columns)
    }

    fn moves(&mut self, moves: &[WhyMove], more: u64) -> Result<(), PresentError> {
        if moves.iter().all(|one| one.place.library) {
            let mut left_out = LeftOut::default();
            left_out.moves(moves, more);
            return self.left_out(&left_out);
        }
        let mut told: Vec<String> = Vec::new();
        let mut function = None;
        for one in moves {
            let place = &one.place;
            if place.library {
                if told.last().is_none_or(|last| last != "…") {
                    told.push("…".to_owned());
                }
                continue;
            }
            let at = if function == Some(&place.function) {
                place.line_or_at()
            } else {
                place.described()
            };
            function = Some(&place.function);
            told.push(format!("{} at {at}", one.how));
        }
        if more > 0 {
            told.push(format!("moved {}", counted(more, "more time")));
        }
        let mut line = String::from("    ↑ ");
        for (i, one) in told.iter().enumerate() {
            let arrow = if i == 0 { "" } else { " ← " };
            if i > 0 && !self.fits(&[&line, arrow, one]) {
                writeln!(self.out, "{line}")?;
                line = String::from("     ");
            }
            line += arrow;
            line += one;
        }
        writeln!(self.out, "{line}")?;
        // A value was selected, but the condition is not followed. Tell the user how to ask about
        // the condition.
        for one in moves.iter().filter(|one| one.how == "selected") {
            let (file, at) = (&self.file, &one.place.at);
            let command = format!("afterimage why {file} --at {at} --operand condition");
            self.hint(&one.what, &command)?;
        }
        let besides: u64 = moves.iter().map(|one| one.besides).sum();
        if besides > 0 {
            let parts = match besides {
                1 => "another part".to_owned(),
                many => format!("{} other parts", grouped(many)),
            };
            let with = moves.iter().find(|one| one.besides > 0);
            let with = with.map_or("", |one| &one.place.at);
            let command = format!("afterimage deps {} --at {with} --data", self.file);
            self.hint(&format!("with {parts}"), &command)?;
        }
        Ok(())
    }

    fn end(&mut self, end: &WhyEnd) -> Result<(), PresentError> {
        match &end.place {
            Some(place) => {
                let at = format!("{}  t={}", place.own_described(), grouped(place.t));
                self.line(
                    &end.what,
                    &at,
                    place.called_from.as_deref().unwrap_or(place),
                )?;
            }
            None => writeln!(self.out, "  {}", end.what)?,
        }
        if let Some(remark) = &end.remark {
            writeln!(self.out, "      {remark}")?;
        }
        if let Some(led) = end.led.as_deref() {
            let command = format!("afterimage why {} --at {}", self.file, led.place.at);
            let led = Self::led_by(&led.place, &led.value);
            self.hint(&led, &command)?;
        }
        if let Some(read) = &end.read {
            let (file, at) = (&self.file, &read.at);
            let command = format!("afterimage why {file} --at {at} --operand address");
            self.hint("why that address", &command)?;
        }
        Ok(())
    }
}

/// Describes the value that decided a branch, if it is stored.
fn on(decided: &str) -> String {
    if decided.is_empty() {
        String::new()
    } else {
        format!(", on {decided}")
    }
}
