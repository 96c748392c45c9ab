//! `cargo xtask prose`: how long the sentences of documents and doc comments are.
//!
//! A sentence should have 12 to 18 words on average. A page fails if its mean is above [`MEAN`] or
//! one of its sentences has more than [`LONGEST`] words. The doc comments of a crate have their own
//! limits, [`COMMENTS`]. Code, tables, headings and generated parts are left out; a piece of code
//! within a sentence is one word.

mod sentences;

use crate::architecture::files;
use crate::corpus::workspace;
use anyhow::{Context, Result};
use sentences::{Sentence, of_comments, of_page};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Words of a page's sentences on average, at most.
const MEAN: f64 = 18.0;
/// Words of a page's longest sentence, at most.
const LONGEST: usize = 45;
/// The same of the doc comments of a crate.
const COMMENTS: (f64, usize) = (18.0, 90);

/// Pages that a chore writes, and pages that quote the output of programs.
const GENERATED: &[&str] = &["docs/screens/", "runs/"];
/// Ends the hand-written part of a page.
const GENERATED_FROM_HERE: &str = "<!-- What follows is made by";

/// Prints the mean and the longest sentence of each page and each crate, and the longest `show` of
/// all.
///
/// # Errors
/// If a file cannot be read.
pub fn run(show: usize) -> Result<ExitCode> {
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
    for folder in ["crates", "xtask"] {
        for path in files(&root.join(folder), "rs")? {
            let name = short(&root, &path);
            let group = name.split("/src/").next().unwrap_or(&name).to_owned();
            if name.contains("/tests/") || group == name {
                continue;
            }
            let sentences = of_comments(&name, &read(&path)?);
            let comments = || Group::new(COMMENTS.0, COMMENTS.1, Vec::new());
            groups
                .entry(group)
                .or_insert_with(comments)
                .sentences
                .extend(sentences);
        }
    }
    Ok(report(&groups, show))
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

/// Prints the report. Fails if a limit is passed.
fn report(groups: &BTreeMap<String, Group>, show: usize) -> ExitCode {
    let mut failed = Vec::new();
    println!("sentences    mean  longest  page, or doc comments of a crate");
    for (name, group) in groups {
        let longest = group.sentences.iter().map(|sentence| sentence.words).max();
        let (count, mean) = (group.sentences.len(), group.mean());
        println!("{count:9}  {mean:6.1}  {:7}  {name}", longest.unwrap_or(0));
        if mean > group.mean {
            failed.push(format!(
                "{name}: {mean:.1} words a sentence on average, at most {}",
                group.mean
            ));
        }
        for sentence in group.too_long() {
            failed.push(format!(
                "{}:{}: {} words, at most {}: {}",
                sentence.file, sentence.line, sentence.words, group.longest, sentence.beginning
            ));
        }
    }
    let mut all: Vec<&Sentence> = groups.values().flat_map(|group| &group.sentences).collect();
    all.sort_by_key(|sentence| std::cmp::Reverse(sentence.words));
    println!("\nthe longest sentences");
    for sentence in all.iter().take(show) {
        println!(
            "{:4}  {}:{}  {}",
            sentence.words, sentence.file, sentence.line, sentence.beginning
        );
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nabove the limits of xtask/src/prose.rs: shorten these");
    failed.iter().for_each(|line| println!("{line}"));
    ExitCode::FAILURE
}
