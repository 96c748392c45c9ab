//! `cargo xtask papers`: repeats the measurements in the papers' tables and figures on the programs
//! of the corpus, next to the papers' figures.
//!
//! The benchmark takes the measurements, and prints the papers' figures next to ours. This command
//! assigns the benchmark's parts to the papers, builds the programs, and runs one part after
//! another. Nothing else should run in the meantime.

use crate::{CorpusArguments, PapersArguments, corpus, manifest, tool};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

/// A part of the benchmark, and the part of a paper that it repeats.
struct Part {
    what: &'static str,
    command: &'static str,
    /// The arguments that shorten the part, for `--quick`.
    quick: &'static [&'static str],
    needs: Needs,
}

enum Needs {
    Corpus,
    /// Recordings of the corpus, with their paths.
    Recordings,
    /// Programs at several levels of optimisation.
    Versions,
}

const PARTS: [Part; 7] = [
    Part {
        what: "Ball and Larus 1992: Tables 1 and 2 (profiles)",
        command: "profile",
        quick: &["--runs", "1"],
        needs: Needs::Corpus,
    },
    Part {
        what: "Ball and Larus 1992: Table 3; Zhang and Gupta 2001: Tables 1 to 6, Figure 8 (paths)",
        command: "paths",
        quick: &["--runs", "1"],
        needs: Needs::Corpus,
    },
    Part {
        what: "Zhang and Gupta 2001: sections 4.2 and 4.3.1 (redundant loads and expressions)",
        command: "redundancy",
        quick: &["--hottest", "5"],
        needs: Needs::Recordings,
    },
    Part {
        what: "Zhang and Gupta 2005: sizes, speed and use of whole execution traces (values)",
        command: "values",
        quick: &["--runs", "1", "--blocks", "20"],
        needs: Needs::Corpus,
    },
    Part {
        what: "Zhang and Gupta 2005: Table VIII (slices)",
        command: "slices",
        quick: &["--runs", "1", "--statements", "20", "--slices", "5"],
        needs: Needs::Corpus,
    },
    Part {
        what: "Zhang and Gupta 2005: Table IX (matching of versions)",
        command: "matching",
        quick: &["--runs", "1"],
        needs: Needs::Versions,
    },
    Part {
        what: "Zhang and Gupta 2005: histories of branches, loads and stores",
        command: "histories",
        quick: &[],
        needs: Needs::Recordings,
    },
];

/// The program for `--quick` unless others are named.
const QUICK: &str = "bzip2";

/// Builds the programs, and measures the parts one after another. Continues if a part fails. The
/// exit code reports whether any part failed.
///
/// # Errors
/// Returns an error if the corpus or the benchmark cannot be built.
pub fn run(arguments: &PapersArguments) -> Result<ExitCode> {
    let only = if arguments.quick && arguments.only.is_empty() {
        vec![QUICK.to_owned()]
    } else {
        arguments.only.clone()
    };
    let folder = built(&only, false)?;
    let measured = if arguments.quick {
        folder.join(corpus::TINY)
    } else {
        folder
    };
    let mut failed = Vec::new();
    for part in &PARTS {
        println!("\n# {}\n", part.what);
        let mut words = vec![part.command.to_owned()];
        if arguments.quick {
            words.extend(part.quick.iter().map(|&word| word.to_owned()));
        }
        match part.needs {
            Needs::Corpus => words.extend(["--corpus".to_owned(), text(&measured)]),
            Needs::Versions => {
                let versions = built(&only, true)?;
                words.extend(["--corpus".to_owned(), text(&versions)]);
            }
            Needs::Recordings => words.extend(recordings(&measured, &only)?),
        }
        let named = match part.needs {
            Needs::Corpus => only.clone(),
            Needs::Versions => only.iter().flat_map(|name| levels(name)).collect(),
            Needs::Recordings => Vec::new(),
        };
        if !named.is_empty() {
            words.extend(["--only".to_owned(), named.join(",")]);
        }
        let status = tool::cargo()
            .args(["run", "--locked", "--quiet", "-p", "bench", "--"])
            .args(&words)
            .stdin(Stdio::null())
            .status()
            .context("cannot run cargo")?;
        if !status.success() {
            failed.push(part.command);
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// Returns the folder with these programs of the corpus, or with their versions. Builds missing
/// programs.
fn built(only: &[String], versions: bool) -> Result<PathBuf> {
    let name = if versions {
        "target/corpus-versions"
    } else {
        "target/corpus"
    };
    let folder = corpus::workspace().join(name);
    let known = manifest::read(&folder)?;
    let is_there = |name: &String| known.iter().any(|entry| entry.name.starts_with(name));
    if known.is_empty() || !only.iter().all(is_there) {
        corpus::run(&CorpusArguments {
            only: only.to_vec(),
            list: false,
            out: Some(folder.clone()),
            versions,
            skip_missing: true,
        })?;
    }
    Ok(folder)
}

/// Returns recordings of the programs in a folder, with their paths.
fn recordings(folder: &Path, only: &[String]) -> Result<Vec<String>> {
    let afterimage = tool::build()?;
    let out = corpus::workspace().join("target/papers");
    fs::create_dir_all(&out).with_context(|| format!("{}: cannot be made", out.display()))?;
    let mut all = Vec::new();
    for entry in manifest::read(folder)? {
        if !only.is_empty() && !only.contains(&entry.name) {
            continue;
        }
        let at = out.join(&entry.name).with_extension("aft");
        let status = tool::start(&afterimage)
            .args(["record", "--force", "--quiet", "--lens", "paths", "-o"])
            .arg(&at)
            .args(tool::command(&entry, folder))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("cannot run afterimage")?;
        if !at.exists() {
            bail!("{}: it was not recorded ({status})", entry.name);
        }
        all.push(text(&at));
    }
    Ok(all)
}

/// Returns the names of a program's versions.
fn levels(name: &str) -> impl Iterator<Item = String> {
    (0..=3).map(move |level| format!("{name}-O{level}"))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
