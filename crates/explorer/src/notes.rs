//! Stores notes about a run as plain text next to the recording. Users can also edit this file.
//!
//! ```text
//! # Notes on app.aft
//!
//! ## The fee is negative here
//! at: `bank.c:48#11`
//!
//! The discount is larger than the fee.
//! ```
//! Each note consists of a second-level heading, the moment, and text. Text before the first note
//! stays unchanged.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub title: String,
    /// The moment, if the note has one.
    #[serde(default)]
    pub at: Option<String>,
    #[serde(default)]
    pub text: String,
}

/// All notes about a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notes {
    pub notes: Vec<Note>,
    /// The contents of the file when it was read. Clients send the contents back when they save
    /// notes, so that changes in the meantime are not overwritten.
    #[serde(default)]
    pub before: String,
}

/// Returns the place of the notes about a recording.
pub(crate) fn beside(recording: &Path) -> PathBuf {
    let mut name = recording.as_os_str().to_owned();
    name.push(".notes.md");
    name.into()
}

fn read(at: &Path) -> Result<String> {
    match fs::read_to_string(at) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| at.display().to_string()),
    }
}

/// Reads the notes about a recording.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(crate) fn load(recording: &Path) -> Result<Notes> {
    let before = read(&beside(recording))?;
    let notes = parsed(&before).1;
    Ok(Notes { notes, before })
}

/// Writes all notes. The new notes replace the notes that existed when `notes` were read.
///
/// # Errors
/// Returns an error if the file has changed in the meantime, or cannot be written.
pub(crate) fn save(recording: &Path, notes: &Notes) -> Result<Notes> {
    let at = beside(recording);
    let held = read(&at)?;
    if held != notes.before {
        bail!(
            "{} has changed in the meantime; reload the page, then write the note again",
            at.display()
        );
    }
    let name = recording.file_name().unwrap_or_default().to_string_lossy();
    let head = match parsed(&held).0 {
        "" => format!("# Notes on {name}\n\n"),
        head => head.to_owned(),
    };
    let text = written(head, &notes.notes);
    let mut new = at.clone().into_os_string();
    new.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(new);
    let kept = || -> Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(fs::rename(&new, &at)?)
    };
    kept()
        .inspect_err(|_| drop(fs::remove_file(&new)))
        .with_context(|| format!("the notes cannot be written to {}", at.display()))?;
    Ok(Notes {
        notes: parsed(&text).1,
        before: text,
    })
}

/// Returns the text before the first note, and the notes.
fn parsed(text: &str) -> (&str, Vec<Note>) {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("## ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let notes = starts.iter().zip(ends).map(|(&start, end)| {
        let (title, rest) = text[start + 3..end]
            .split_once('\n')
            .unwrap_or((&text[start + 3..end], ""));
        let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let moment = first
            .strip_prefix("at: ")
            .map(|at| at.trim().trim_matches('`'));
        let body = if moment.is_some() { after } else { rest };
        Note {
            title: title.trim().to_owned(),
            at: moment.map(str::to_owned),
            text: unescaped(body.trim()),
        }
    });
    (
        &text[..starts.first().copied().unwrap_or(text.len())],
        notes.collect(),
    )
}

/// Whether a line is a second-level heading, escaped any number of times.
fn is_heading(line: &str) -> bool {
    line.trim_start_matches('\\').starts_with("## ")
}

/// Removes the escapes that [`written`] adds.
fn unescaped(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.strip_prefix('\\') {
        Some(rest) if is_heading(rest) => rest,
        _ => line,
    });
    Vec::from_iter(lines).join("\n")
}

fn written(mut text: String, notes: &[Note]) -> String {
    let one_line = |text: &str| text.replace(['\n', '\r'], " ").trim().to_owned();
    for note in notes {
        text.push_str(&format!("## {}\n", one_line(&note.title)));
        if let Some(at) = &note.at {
            text.push_str(&format!("at: `{}`\n", one_line(at)));
        }
        text.push('\n');
        for line in note.text.trim().lines() {
            // A heading inside a note would begin another note, so it is escaped as in Markdown.
            if is_heading(line) {
                text.push('\\');
            }
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_as_they_were_written() {
        let notes = [
            Note {
                title: "The fee is negative".to_owned(),
                at: Some("bank.c:48#11".to_owned()),
                text: "## at: x\nTwo lines,\n\nand `code`.\n ## no heading\n## one\n\\## two"
                    .to_owned(),
            },
            Note {
                title: "No moment".to_owned(),
                ..Note::default()
            },
        ];
        let text = written("My own words.\n\n".to_owned(), &notes);
        assert_eq!(parsed(&text), ("My own words.\n\n", notes.to_vec()));
    }

    #[test]
    fn what_somebody_else_wrote_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("a.aft");
        let mut notes = load(&recording).unwrap();
        notes.notes.push(Note {
            title: "One".to_owned(),
            ..Note::default()
        });
        let saved = save(&recording, &notes).unwrap();
        assert_eq!(saved.notes, notes.notes);
        let refused = save(&recording, &notes).unwrap_err().to_string();
        assert!(
            refused.contains("a.aft.notes.md has changed in the meantime"),
            "{refused}"
        );
        assert_eq!(load(&recording).unwrap(), saved);
    }
}
