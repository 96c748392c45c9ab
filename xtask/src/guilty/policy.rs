//! Implements the fixed policy, which asks the questions of a simple agent, whatever the bug is.
//! `docs/AGENTS.md` describes the policy. It was committed before the first bug was planted.

use super::client::{Answer, Client};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The maximum number of calls.
pub const CALLS: usize = 10;

/// The question about the wrong output.
#[derive(Serialize, Deserialize)]
pub enum About {
    /// A byte, by its number.
    Byte(u64),
    /// The trap that ended the run.
    Trap,
}

/// A line of source.
pub struct Line {
    /// The file's path, or a suffix of it.
    pub file: String,
    pub line: usize,
}

/// The result of following the policy.
pub struct Outcome {
    /// The number of the call whose answer contains the line, from 1.
    pub found: Option<usize>,
    /// The number of calls made.
    pub calls: usize,
    /// The number of lines of text in the answers, up to the guilty line.
    pub lines: usize,
    /// The number of different source lines in this text, including the guilty one.
    pub shown: usize,
    /// The questions asked, for inspection.
    pub asked: Vec<String>,
    /// The reason why the server gave no answer, if that ended the questions.
    pub failed: Option<String>,
}

impl Outcome {
    /// Describes how the questions ended, if not with an answer.
    pub fn ended(&self) -> String {
        let failed = self.failed.as_ref();
        failed.map_or_else(String::new, |why| format!(": {why}"))
    }
}

/// Follows the policy until the guilty line is in an answer. A server that fails or does not answer
/// has not shown the line.
pub fn follow(client: &mut Client, recording: &str, about: &About, guilty: &Line) -> Outcome {
    let mut state = Followed {
        client,
        guilty,
        outcome: Outcome {
            found: None,
            calls: 0,
            lines: 0,
            shown: 0,
            asked: Vec::new(),
            failed: None,
        },
        places: HashSet::new(),
    };
    if let Err(error) = state.follow(recording, about) {
        state.outcome.failed = Some(format!("{error:#}"));
    }
    state.outcome
}

struct Followed<'f> {
    client: &'f mut Client,
    guilty: &'f Line,
    outcome: Outcome,
    places: HashSet<String>,
}

impl Followed<'_> {
    fn follow(&mut self, recording: &str, about: &About) -> Result<()> {
        let mut first = match about {
            About::Byte(byte) => json!({ "stdout": byte }),
            About::Trap => json!({ "trap": true }),
        };
        first["recording"] = json!(recording);
        // The questions asked so far, and the leads of each answer, newest last.
        let mut known = HashSet::new();
        let mut leads: Vec<Vec<Value>> = Vec::new();
        let mut activations = HashSet::new();
        let mut next = Some(first);
        while let Some(arguments) = next.take() {
            known.insert(arguments.to_string());
            let Some(answer) = self.ask("why", &arguments)? else {
                break;
            };
            let all = answer.document["next"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let own = all.iter().filter(|next| next["own"] == true);
            let of = |tool: &str| {
                let calls = own.clone().filter(|next| next["tool"] == tool);
                Vec::from_iter(calls.map(|next| next["arguments"].clone()))
            };
            if let Some(step) = of("call").first()
                && let Some(call) = self.shown(step, &activations)?
            {
                activations.insert(call);
            }
            if self.is_over() {
                break;
            }
            leads.push(of("why"));
            while let Some(newest) = leads.last() {
                next = newest
                    .iter()
                    .find(|lead| !known.contains(&lead.to_string()))
                    .cloned();
                if next.is_some() {
                    break;
                }
                leads.pop();
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.outcome.found.is_some() || self.outcome.calls == CALLS
    }

    /// Makes a call, if one is still allowed, and looks for the line in the answer.
    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Option<Answer>> {
        if self.is_over() {
            return Ok(None);
        }
        self.outcome.calls += 1;
        self.outcome.asked.push(format!("{tool} {arguments}"));
        let answer = self.client.call(tool, arguments)?;
        let outcome = &mut self.outcome;
        outcome.lines += answer.text.lines().count();
        self.places.extend(places(&answer.text));
        outcome.shown = self.places.len();
        if self.guilty.is_in(&answer.text) {
            outcome.found = Some(outcome.calls);
        }
        Ok(Some(answer))
    }

    /// Asks for the activation around a step, unless it was shown before. Only the answer
    /// identifies the activation. An activation shown before costs no call, because the answer of
    /// `why` shows an agent that two steps are in the same call.
    fn shown(&mut self, step: &Value, known: &HashSet<String>) -> Result<Option<String>> {
        if self.is_over() {
            return Ok(None);
        }
        let key = |answer: &Answer| {
            let report = &answer.document["report"];
            format!("{} {}", report["function"]["index"], report["t"])
        };
        // The activation must be requested to find out whether it was shown before. The call counts
        // only if it was not.
        let answer = self.client.call("call", step)?;
        let key = key(&answer);
        if known.contains(&key) {
            return Ok(None);
        }
        self.ask("call", step)?;
        Ok(Some(key))
    }
}

/// Returns the lines of source that a text names, such as `compress.c:12` or `compress.c:12,14-16`:
/// the file, and the first and last line of each range.
fn named(text: &str) -> impl Iterator<Item = (&str, usize, usize)> {
    let is_part = |sign: char| sign.is_alphanumeric() || "/._-+:,".contains(sign);
    let words = text.split(move |sign| !is_part(sign));
    let lists = words.flat_map(|word| {
        let colons = word.match_indices(':');
        let before = |at| word[..at].rsplit(',').next().unwrap_or_default();
        colons.map(move |(at, _)| (before(at), &word[at + 1..]))
    });
    lists.flat_map(|(file, list)| {
        let is_list = |sign: char| sign.is_ascii_digit() || ",-".contains(sign);
        let end = list.find(|sign| !is_list(sign)).unwrap_or(list.len());
        let ranges = list[..end].split(',').map_while(|range| {
            let (begin, end) = range.split_once('-').unwrap_or((range, range));
            let begin = begin.parse::<usize>().ok()?;
            Some((begin, end.parse().unwrap_or(begin)))
        });
        ranges.map(move |(begin, end)| (file, begin, end))
    })
}

/// The maximum length of a range whose lines are counted. The text may quote the program.
const LONGEST: usize = 1000;

/// Returns the lines of source that a text names, one by one.
fn places(text: &str) -> impl Iterator<Item = String> {
    named(text).flat_map(|(file, begin, end)| {
        let name = file.rsplit('/').next().unwrap_or(file);
        let end = end.min(begin.saturating_add(LONGEST));
        let lines = (begin..=end).filter(|_| name.contains('.'));
        lines.map(move |line| format!("{name}:{line}"))
    })
}

impl Line {
    /// Whether a text shows the line, as `FILE:LINE` or in a range, with any suffix of the file's
    /// path.
    pub fn is_in(&self, text: &str) -> bool {
        named(text).any(|(shown, begin, end)| {
            let is_file = self.file == shown
                || self.file.ends_with(&format!("/{shown}"))
                || shown.ends_with(&format!("/{}", self.file));
            is_file && (begin..=end).contains(&self.line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_is_shown_by_its_file_and_number() {
        let line = Line {
            file: "package-1.0/src/mod.rs".to_owned(),
            line: 12,
        };
        for text in [
            "mod.rs:12",
            "at src/mod.rs:12 in f",
            "/x/package-1.0/src/mod.rs:12: y",
            "mod.rs:12:5",
            "url://x.y/package-1.0/src/mod.rs:12",
            "mod.rs:3,12, …",
            "a.rs:12; mod.rs:9,11-13",
            "mod.rs:12-14",
            "mod.rs:12-",
            "(a,mod.rs:12)",
        ] {
            assert!(line.is_in(text), "{text}");
        }
        for text in [
            "mod.rs:123",
            "other/mod.rs:12",
            "my_mod.rs:12",
            "mod.rs:1",
            "mod.rs:3-11,13",
            "mod.rs:3, 12",
            "mod.rs:3; a.rs:12",
            "mod.rs:14-12",
        ] {
            assert!(!line.is_in(text), "{text}");
        }
    }
}
