//! `cargo xtask freeze`: asks nearly four thousand questions about a dozen small recordings, and
//! compares the answers with the stored answers.
//!
//! The sources of the recorded programs are in `xtask/freeze`. The answers are in
//! `xtask/freeze/answers`, one file per recording, with the digest of the module and each command
//! with its output. A recording is skipped, with a message, if this machine's compiler makes a
//! different module. An answer is *reworded* if only its words changed. It is *changed* if a
//! number, a position or a name changed, appeared, disappeared or moved.

mod answers;
mod questions;
mod recordings;

use crate::{FreezeArguments, corpus, tool};
use answers::{Answer, Difference};
use anyhow::{Context, Result};
use recordings::Recording;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// The number of a recording's differences to show. All differences are counted.
const SHOWN: usize = 5;

/// Makes the recordings, asks the questions, and compares the answers. With `--bless`, stores the
/// present answers.
///
/// # Errors
/// Returns an error if a recording cannot be made, or a file cannot be read or written.
pub fn run(arguments: &FreezeArguments) -> Result<ExitCode> {
    let tool = match &arguments.tool {
        Some(tool) => fs::canonicalize(tool)
            .with_context(|| format!("{}: no such program", tool.display()))?,
        None => tool::build()?,
    };
    let kept = corpus::workspace().join("xtask/freeze/answers");
    let folder = corpus::workspace().join("target/freeze");
    let recordings = made(&tool, &folder)?;
    let wanted = || recordings.iter().filter(|one| arguments.wants(one.name));
    let mut questions = Vec::new();
    if arguments.bless {
        for recording in wanted() {
            questions.push(questions::about(&tool, &folder, recording, &recordings)?);
        }
        // Finding questions builds lenses, but questions must be asked about bare recordings, as in
        // a comparison.
        made(&tool, &folder)?;
    }
    let mut questions = questions.into_iter();
    let mut sums = Sums::default();
    for recording in wanted() {
        let file = kept.join(recording.name).with_extension("txt");
        if arguments.bless {
            let asked = questions.next().unwrap_or_default();
            let now = answers::ask_all(&tool, &folder, asked)?;
            answers::write(&file, &recording.sha256, &now)?;
            println!("{}: {} answers kept", recording.name, now.len());
        } else {
            compare(&tool, &folder, recording, &file, &mut sums)?;
        }
    }
    if arguments.bless {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{} answers: {} the same, {} reworded, {} changed",
        sums.asked,
        sums.asked - sums.reworded - sums.changed,
        sums.reworded,
        sums.changed
    );
    let failed = sums.changed > 0 || arguments.words && sums.reworded > 0;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Makes the recordings again in an empty folder.
fn made(tool: &Path, folder: &Path) -> Result<Vec<Recording>> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("{}: cannot be emptied", folder.display()))?;
    }
    recordings::make(tool, folder)
}

impl FreezeArguments {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

#[derive(Default)]
struct Sums {
    asked: usize,
    reworded: usize,
    changed: usize,
}

/// Asks the questions in `file`, and shows which answers differ.
fn compare(
    tool: &Path,
    folder: &Path,
    recording: &Recording,
    file: &Path,
    sums: &mut Sums,
) -> Result<()> {
    let (sha256, kept) = answers::read(file)?;
    if sha256 != recording.sha256 {
        println!(
            "SKIPPED {}: this machine's compiler makes a different module from the module of the stored answers",
            recording.name
        );
        return Ok(());
    }
    let asked = kept.iter().map(|answer| answer.question.clone()).collect();
    let now = answers::ask_all(tool, folder, asked)?;
    let mut shown = 0;
    for (then, now) in kept.iter().zip(&now) {
        sums.asked += 1;
        let what = match answers::difference(then, now) {
            Difference::None => continue,
            Difference::Words => {
                sums.reworded += 1;
                "reworded"
            }
            Difference::Facts => {
                sums.changed += 1;
                "changed"
            }
        };
        shown += 1;
        if shown <= SHOWN {
            show(recording.name, what, then, now);
        }
    }
    if shown > SHOWN {
        println!("{}: {} more\n", recording.name, shown - SHOWN);
    }
    Ok(())
}

/// Shows the first line in which two answers differ.
fn show(name: &str, what: &str, then: &Answer, now: &Answer) {
    println!("{name}: {what}: afterimage {}", then.question.join(" "));
    let at = then
        .lines
        .iter()
        .zip(&now.lines)
        .take_while(|(a, b)| a == b)
        .count();
    let line = |answer: &Answer| match answer.lines.get(at) {
        Some(line) => line.chars().take(300).collect(),
        None => "(no more lines)".to_owned(),
    };
    println!("  line {}\n  - {}\n  + {}\n", at + 1, line(then), line(now));
}
