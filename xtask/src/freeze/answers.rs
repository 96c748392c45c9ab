//! Asks for answers, normalises them, stores them as text, and compares them.

use super::questions::Question;
use crate::tool;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// The number of lines of an answer to keep. The rest becomes a checksum.
const KEPT: usize = 16;
/// The number of bytes of a line to keep.
const KEPT_OF_LINE: usize = 400;

/// The beginnings of lines that differ from run to run. The lines contain dates, versions, sizes of
/// files, or data built for an answer, which earlier questions may have built.
const VARYING: [&str; 6] = [
    "recorded  ",
    "engine  ",
    "size  ",
    "sound: ",
    "afterimage: path of ",
    "afterimage: values of ",
];

/// A question and its output.
pub struct Answer {
    pub question: Question,
    /// Standard output and error, then the exit code.
    pub lines: Vec<String>,
}

/// The difference between two answers.
pub enum Difference {
    None,
    Words,
    Facts,
}

/// Asks the questions in order, because later answers may use data that earlier answers added to
/// the recording.
///
/// # Errors
/// Returns an error if afterimage cannot be run.
pub fn ask_all(program: &Path, folder: &Path, questions: Vec<Question>) -> Result<Vec<Answer>> {
    let ask = |question: Question| -> Result<Answer> {
        let output = tool::start(program)
            .args(&question)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .context("cannot run afterimage")?;
        let mut lines = normalised(&String::from_utf8_lossy(&output.stdout));
        lines.extend(normalised(&String::from_utf8_lossy(&output.stderr)));
        lines.push(format!("= {:?}", output.status.code()));
        Ok(Answer { question, lines })
    };
    questions.into_iter().map(ask).collect()
}

/// Returns the lines of `text`, except lines that vary from run to run.
fn normalised(text: &str) -> Vec<String> {
    let varies = |line: &str| VARYING.iter().any(|start| line.starts_with(start));
    let all: Vec<_> = text
        .lines()
        .filter(|line| !varies(line))
        .map(in_order)
        .collect();
    let mut kept: Vec<_> = all
        .iter()
        .take(KEPT)
        .map(|line| {
            let line = without_fields(line.clone());
            match line.char_indices().nth(KEPT_OF_LINE) {
                Some((end, _)) => format!("{}… {:08x}", &line[..end], checksum(&line[end..])),
                None => line,
            }
        })
        .collect();
    if all.len() > KEPT {
        let rest = all[KEPT..].join("\n");
        kept.push(format!(
            "… {} more, {:08x}",
            all.len() - KEPT,
            checksum(&rest)
        ));
    }
    kept
}

/// Sorts the fields of the objects in a line of JSON by name, and the sections of a recording by
/// kind. The order of fields has no meaning, and several threads write sections.
fn in_order(line: &str) -> String {
    let object = Some(line).filter(|line| line.starts_with('{'));
    let value = object.and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let Some(mut value) = value else {
        return line.to_owned();
    };
    if let Some(sections) = value.get_mut("sections").and_then(|all| all.as_array_mut()) {
        sections.sort_by_key(|section| section["kind"].to_string());
    }
    value.to_string()
}

/// Removes the fields that differ from run to run from a line of JSON.
fn without_fields(mut line: String) -> String {
    const FIELDS: [&str; 7] = [
        "\"recorded_unix\":",
        "\"engine\":",
        "\"tool_version\":",
        "\"length\":",
        "\"bytes\":",
        "\"chunks\":",
        "\"stored_bytes\":",
    ];
    let about_the_file = ["info", "verify"]
        .iter()
        .any(|what| line.contains(&format!("\"schema\":\"afterimage/{what}/")));
    // The number of cuts of the path depends on the speed of the machine.
    if let Some(at) = line.find(" of the run, with its path, in ") {
        line.replace_range(..at, "SNAPSHOTS");
        line.truncate(line.rfind(" in ").unwrap_or(line.len()));
    }
    if !about_the_file {
        return line;
    }
    for field in FIELDS {
        let mut from = 0;
        while let Some(found) = line[from..].find(field) {
            let start = from + found + field.len();
            let end = line[start..]
                .find([',', '}'])
                .map_or(line.len(), |end| start + end);
            line.replace_range(start..end, "_");
            from = start;
        }
    }
    line
}

/// Computes the FNV-1a hash (Fowler, Noll, Vo), which is sufficient to detect a difference.
fn checksum(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

/// Determines whether facts differ, or only words.
pub fn difference(then: &Answer, now: &Answer) -> Difference {
    if then.lines == now.lines {
        return Difference::None;
    }
    if facts(&then.lines) == facts(&now.lines) {
        return Difference::Words;
    }
    Difference::Facts
}

/// Returns the parts of an answer other than words, in order: numbers, positions, and names that
/// are not plain words.
fn facts(lines: &[String]) -> Vec<&str> {
    let apart = |c: char| c.is_whitespace() || "\"',;()[]{}".contains(c);
    let words = lines.iter().flat_map(|line| line.split(apart));
    let trimmed = words.map(|word| word.trim_matches(['.', ':', '…']));
    trimmed
        .filter(|word| {
            word.contains(|c: char| c.is_ascii_digit())
                || word.contains("::")
                || word.contains(['_', '.', '<', '$'])
        })
        .collect()
}

/// Stores answers about a recording, with the digest of its module.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(file: &Path, sha256: &str, answers: &[Answer]) -> Result<()> {
    let mut text = format!("module {sha256}\n");
    for answer in answers {
        let words: Vec<_> = answer.question.iter().map(|word| quoted(word)).collect();
        writeln!(text, "$ {}", words.join(" "))?;
        for line in &answer.lines {
            writeln!(text, "| {line}")?;
        }
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot be made", folder.display()))?;
    }
    fs::write(file, text).with_context(|| format!("{}: cannot be written", file.display()))
}

/// Quotes a word for [`unquoted`]. A tab replaces a space.
fn quoted(word: &str) -> String {
    word.replace(' ', "\t")
}

fn unquoted(word: &str) -> String {
    word.replace('\t', " ")
}

/// Returns the digest of the module and the answers in `file`.
///
/// # Errors
/// Returns an error if the file cannot be read or was not written by [`write()`].
pub fn read(file: &Path) -> Result<(String, Vec<Answer>)> {
    let text = fs::read_to_string(file).with_context(|| {
        format!(
            "{}: there are no stored answers; store them with `cargo xtask freeze --bless`",
            file.display()
        )
    })?;
    let mut lines = text.lines();
    let Some(sha256) = lines.next().and_then(|line| line.strip_prefix("module ")) else {
        bail!(
            "{}: does not begin with the module's digest",
            file.display()
        );
    };
    let mut answers: Vec<Answer> = Vec::new();
    for (number, line) in lines.enumerate() {
        if let Some(words) = line.strip_prefix("$ ") {
            answers.push(Answer {
                question: words.split(' ').map(unquoted).collect(),
                lines: Vec::new(),
            });
        } else if let (Some(line), Some(answer)) = (line.strip_prefix("| "), answers.last_mut()) {
            answer.lines.push(line.to_owned());
        } else {
            bail!(
                "{}:{}: neither a question nor an answer",
                file.display(),
                number + 2
            );
        }
    }
    Ok((sha256.to_owned(), answers))
}
