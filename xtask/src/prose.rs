//! `cargo xtask prose`: measures the sentences of documents and doc comments.
//!
//! A sentence should have 12 to 18 words on average. A page fails if its mean is above [`MEAN`] or
//! one of its sentences has more than [`LONGEST`] words. The doc comments of a crate have their own
//! limits, [`COMMENTS`]. Code, tables, headings and generated parts are left out. A piece of code
//! within a sentence counts as one word.
//!
//! With `--draw`, prints random sentences of pages, doc comments, help and messages instead, for a
//! reviewer to judge.

mod sentences;

use crate::architecture::files;
use crate::corpus::workspace;
use crate::inputs::rng::Rng;
use anyhow::{Context, Result};
use sentences::{Sentence, of_comments, of_messages, of_page};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// The largest average number of words in a page's sentences.
const MEAN: f64 = 18.0;
/// The largest number of words in a page's longest sentence.
const LONGEST: usize = 45;
/// The limits on the mean and on the longest sentence for the doc comments of a crate.
const COMMENTS: (f64, usize) = (18.0, 90);

/// Pages that a chore writes, and pages that quote the output of programs.
const GENERATED: &[&str] = &["docs/screens/", "runs/"];
/// The text that ends the hand-written part of a page.
const GENERATED_FROM_HERE: &str = "<!-- What follows is made by";

/// Prints the mean and the longest sentence of each page and each crate, and the `show` longest
/// sentences of all.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn run(show: usize) -> Result<ExitCode> {
    let (text, code) = report(&groups()?, show);
    print(&text)?;
    Ok(code)
}

/// Prints `count` random sentences, each with its file and line. The same seed draws the same
/// sentences.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn draw(count: usize, seed: u64) -> Result<ExitCode> {
    let mut all: Vec<Sentence> = groups()?.into_values().flat_map(|g| g.sentences).collect();
    for (name, text) in sources()? {
        let own = text.split("#[cfg(test)]").next().unwrap_or_default();
        all.extend(of_messages(&name, own));
    }
    let mut random = Rng::new(seed);
    let mut text = String::new();
    for _ in 0..count.min(all.len()) {
        let one = all.swap_remove(random.below(all.len()));
        writeln!(text, "{}:{}  {}", one.file, one.line, one.text)?;
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the text, and ends quietly if the reader has gone.
fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the sentences of each page and of each crate's doc comments.
fn groups() -> Result<BTreeMap<String, Group>> {
    let root = workspace();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for path in files(&root, "md")? {
        let name = short(&root, &path);
        if GENERATED.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = read(&path)?;
        let written = text.split(GENERATED_FROM_HERE).next().unwrap_or_default();
        groups.insert(
            name.clone(),
            Group::new(MEAN, LONGEST, of_page(&name, written)),
        );
    }
    for (name, text) in sources()? {
        let group = name.split("/src/").next().unwrap_or(&name).to_owned();
        let comments = || Group::new(COMMENTS.0, COMMENTS.1, Vec::new());
        groups
            .entry(group)
            .or_insert_with(comments)
            .sentences
            .extend(of_comments(&name, &text));
    }
    Ok(groups)
}

/// Returns the names and texts of the crates' sources, without integration tests.
fn sources() -> Result<Vec<(String, String)>> {
    let root = workspace();
    let mut found = Vec::new();
    for folder in ["crates", "xtask"] {
        for path in files(&root.join(folder), "rs")? {
            let name = short(&root, &path);
            if name.contains("/src/") && !name.contains("/tests/") {
                found.push((name, read(&path)?));
            }
        }
    }
    Ok(found)
}

fn short(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A page, or the doc comments of a crate.
struct Group {
    mean: f64,
    longest: usize,
    sentences: Vec<Sentence>,
}

impl Group {
    fn new(mean: f64, longest: usize, sentences: Vec<Sentence>) -> Self {
        Self {
            mean,
            longest,
            sentences,
        }
    }

    fn words(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.words).sum()
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of words are small")]
    fn mean(&self) -> f64 {
        self.words() as f64 / self.sentences.len().max(1) as f64
    }

    fn too_long(&self) -> impl Iterator<Item = &Sentence> {
        self.sentences
            .iter()
            .filter(|sentence| sentence.words > self.longest)
    }
}

/// Writes the report. The exit code reports a failure if a limit is exceeded.
fn report(groups: &BTreeMap<String, Group>, show: usize) -> (String, ExitCode) {
    let mut failed = Vec::new();
    let mut lines = vec!["sentences    mean  longest  page, or doc comments of a crate".to_owned()];
    for (name, group) in groups {
        let longest = group.sentences.iter().map(|sentence| sentence.words).max();
        let (count, mean) = (group.sentences.len(), group.mean());
        lines.push(format!(
            "{count:9}  {mean:6.1}  {:7}  {name}",
            longest.unwrap_or(0)
        ));
        if mean > group.mean {
            failed.push(format!(
                "{name}: {mean:.1} words a sentence on average, at most {}",
                group.mean
            ));
        }
        for sentence in group.too_long() {
            failed.push(format!(
                "{}:{}: {} words, at most {}: {}",
                sentence.file,
                sentence.line,
                sentence.words,
                group.longest,
                sentence.beginning()
            ));
        }
    }
    let mut all: Vec<&Sentence> = groups.values().flat_map(|group| &group.sentences).collect();
    all.sort_by_key(|sentence| std::cmp::Reverse(sentence.words));
    lines.push("\nthe longest sentences".to_owned());
    lines.extend(all.iter().take(show).map(|sentence| {
        format!(
            "{:4}  {}:{}  {}",
            sentence.words,
            sentence.file,
            sentence.line,
            sentence.beginning()
        )
    }));
    let code = if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        lines.push("\nabove the limits of xtask/src/prose.rs: shorten these".to_owned());
        ExitCode::FAILURE
    };
    lines.append(&mut failed);
    (lines.join("\n") + "\n", code)
}
