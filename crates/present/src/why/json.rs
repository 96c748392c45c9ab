//! Writes the chain as JSON: a head, then one entry per line.

use std::io::Write;

use afterimage_profile::SourceLine;
use schemars::JsonSchema;
use serde::Serialize;

use super::{WhyEntry, WhyPlace};
use crate::PresentError;
use crate::document::objects::{Position, position};
#[cfg(doc)]
use crate::document::row;
use crate::document::{Document, begin};
use crate::name::without_parameters;
use crate::plain::plain;
use crate::state::WrittenSince;

/// The origin of a value. The lines after the first form the chain, in order of discovery: how the
/// value was moved, how it was computed, and its origin.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyHead {
    /// The subject, in words.
    pub about: String,
    /// The value, as text.
    pub value: String,
    /// The statement, as `--at` takes it: `@OFFSET#K`.
    pub at: Option<String>,
    /// The end of the run in terms of the user's own code. Present with `--trap` if the run ended
    /// in a library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub death: Option<WhyDeath>,
    /// The last write to the variable's place since the call began. This write may have stored
    /// something other than the variable's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
    /// The other numbers of a line of output. Present if the question named only the line, and the
    /// line has several numbers. The answer then explains the last number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_line: Option<WhyInLine>,
}

/// The numbers of a line of output. The answer explains the last number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyInLine {
    /// The number of numbers in the line.
    pub numbers: u64,
    /// The number before the last, as printed, without a sign.
    pub before: String,
    /// The option that asks about the output: `--stdout` or `--stderr`.
    pub option: String,
    /// The place of the number `before`, as the option takes it: `line:3:7`.
    pub at: String,
}

/// The end of a run in a library: the library's message, and the line of the user's own code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyDeath {
    /// The event: `panicked`, `panicked without printing a message`, `panicked after printing` if
    /// a panic hook printed other text, `assertion failed`, `aborted`, `aborted after printing` if
    /// the user's own function printed the message before it aborted, or how the run ended.
    pub what: String,
    /// The printed message. If a panic did not print its message, the text passed to the panic.
    pub message: Option<String>,
    /// The place where the user's own code called the library.
    pub place: WhyPlace,
    /// The function of the user's own code at `place`, if it was inlined into the function of
    /// `place`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
    /// The line of the user's own code that called this function.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub called_from: Option<SourceLine>,
}

impl WhyDeath {
    /// Returns the text as one sentence.
    pub fn text(&self) -> String {
        let message = match self.message.as_deref() {
            Some(message) => {
                let lines = message.lines().map(|line| plain(line.trim()));
                format!(": {}", Vec::from_iter(lines).join("; "))
            }
            None => String::new(),
        };
        let from = self.called_from.as_ref();
        let from = from.map_or(String::new(), |line| {
            format!(", called from {}", plain(&line.to_string()))
        });
        let Self {
            what,
            place,
            inlined,
            ..
        } = self;
        let own = place.around.as_ref().or(place.source.as_ref());
        let at = own.map_or_else(|| place.at.clone(), |line| plain(&line.to_string()));
        let function = inlined.as_ref().unwrap_or(&place.function.name);
        let function = plain(without_parameters(function));
        format!("{what}{message}, at {at} in {function}{from}")
    }
}

impl Document for WhyHead {
    const NAME: &'static str = "why";
    const COMMAND: &'static str = "why";
    type Row = WhyEntry;
}

/// Writes the subject. The entries, written with [`row`], follow.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn why_head(out: &mut dyn Write, head: &WhyHead) -> Result<(), PresentError> {
    begin(out, head)
}
