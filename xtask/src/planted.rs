//! `cargo xtask planted`: builds programs of the corpus with one bug each, for the sessions of
//! `docs/sessions`.
//!
//! A bug replaces a few characters of a package's source in a copy of the package. A copy of the
//! guests' workspace makes Cargo use that package (`[patch.crates-io]`).

use crate::corpus::{self, workspace};
use crate::programs::{PROGRAMS, Source};
use crate::{build, copy, toolchain};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One bug.
struct Bug {
    /// The program of the corpus that contains the bug.
    program: &'static str,
    /// The binary of the guest to build, which also names the module.
    binary: &'static str,
    /// The package to change.
    package: &'static str,
    /// The file in the package.
    file: &'static str,
    /// The line, from 1.
    line: usize,
    /// The text to replace, which occurs once in the line.
    from: &'static str,
    /// The replacement.
    to: &'static str,
}

const BUGS: &[Bug] = &[
    // A checksum is rotated wrongly. The bug has no effect before the second block, and shows when
    // that block is restored.
    Bug {
        program: "bzip2",
        binary: "guest-bzip2",
        package: "bzip2-sys",
        file: "bzip2-1.0.8/compress.c",
        line: 607,
        from: ">> 31",
        to: ">> 30",
    },
    // The compiler of scripts checks whether a constant fits into an instruction, but then stores
    // the negated constant.
    Bug {
        program: "lua",
        binary: "guest-lua",
        package: "lua-src",
        file: "lua-5.4.9/lcode.c",
        line: 1470,
        from: "fitsC(-i2)",
        to: "fitsC(i2)",
    },
    // The check that a table's header begins with a bar looks at the beginning of the file instead
    // of the header.
    Bug {
        program: "pulldown-cmark",
        binary: "markdown",
        package: "pulldown-cmark",
        file: "src/firstpass.rs",
        line: 2119,
        from: "+=",
        to: "=",
    },
];

/// Builds the programs without the bugs into `target/planted/old`, and with the bugs into
/// `target/planted/new`. Programs whose tools are missing on this machine are left out, with a
/// message.
///
/// Both versions are compiled from folders with paths of equal length, because the modules contain
/// some paths, and constants should keep their places.
///
/// # Errors
/// Returns an error if the text to replace is not in its place, or something cannot be built or
/// written.
pub fn run() -> Result<ExitCode> {
    for (version, broken) in [("old", false), ("new", true)] {
        build_all(version, broken)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds only the programs with the bugs, as [`run`] does.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn with_bugs() -> Result<()> {
    build_all("new", true)
}

fn build_all(version: &str, broken: bool) -> Result<()> {
    toolchain::ensure_wasm_target()?;
    let folder = workspace().join("target/planted").join(version);
    let guests = sources(&folder, broken)?;
    for bug in BUGS {
        build_one(bug, &guests, &folder)?;
    }
    Ok(())
}

/// Copies the guests' workspace and the packages into `folder`, plants the bugs if `broken`, and
/// returns the folder of the guests.
fn sources(folder: &Path, broken: bool) -> Result<PathBuf> {
    let corpus = workspace().join("corpus");
    let mut patches = "\n[patch.crates-io]\n".to_owned();
    for bug in BUGS {
        let from = build::package_folder(&corpus, bug.package)?;
        let name = from.file_name().context("a package has no folder")?;
        let to = folder.join("packages").join(name);
        copy::folder(&from, &to, |path, bytes| {
            if !broken || path != Path::new(bug.file) {
                return Ok(bytes);
            }
            let text = String::from_utf8(bytes)?;
            Ok(planted(bug, &text)?.into_bytes())
        })?;
        writeln!(patches, "{} = {{ path = {to:?} }}", bug.package)?;
    }
    let guests = folder.join("corpus");
    copy::folder(&corpus, &guests, |path, bytes| {
        let text = String::from_utf8(bytes)?;
        let changed = match path.to_str() {
            Some("Cargo.toml") => text + &patches,
            Some("Cargo.lock") => {
                let unlock = |lock: String, bug: &Bug| unlocked(&lock, bug.package);
                BUGS.iter().try_fold(text, unlock)?
            }
            _ => text,
        };
        Ok(changed.into_bytes())
    })?;
    Ok(guests)
}

/// Builds one program and writes its module into `folder`.
fn build_one(bug: &Bug, guests: &Path, folder: &Path) -> Result<()> {
    let program = PROGRAMS.iter().find(|other| other.name == bug.program);
    let program = program.with_context(|| format!("{} is not in the corpus", bug.program))?;
    if let Some(lack) = corpus::what_lacks(program) {
        eprintln!("left out {}: {lack}", bug.program);
        return Ok(());
    }
    let c = matches!(program.source, Source::Guest { c: true, .. });
    let built = build::quietly(guests, &folder.join("build"), bug.program, bug.binary, c)?;
    let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    corpus::check(program, &bytes)?;
    let name = bug.binary.trim_start_matches("guest-");
    let module = folder.join(name).with_extension("wasm");
    copy::file(&module, &bytes)?;
    eprintln!("{}", module.display());
    Ok(())
}

/// Returns the source `text` with the bug planted.
///
/// # Errors
/// Returns an error if the line does not contain the text to replace exactly once.
fn planted(bug: &Bug, text: &str) -> Result<String> {
    let mut lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
    let line = lines.get_mut(bug.line - 1);
    match line {
        Some(line) if line.matches(bug.from).count() == 1 => {
            *line = line.replace(bug.from, bug.to);
        }
        _ => bail!(
            "line {} of {} in {} does not hold {:?} once: the bug planted there belongs to another version",
            bug.line,
            bug.file,
            bug.package,
            bug.from
        ),
    }
    Ok(lines.join("\n"))
}

/// Returns the lock file without the source and checksum of `package`, which comes from a folder.
///
/// # Errors
/// Returns an error if the package is not in the lock file exactly once.
pub fn unlocked(lock: &str, package: &str) -> Result<String> {
    let name = format!("name = \"{package}\"");
    let mut entries: Vec<_> = lock.split("[[package]]").map(str::to_owned).collect();
    let mut own = entries
        .iter_mut()
        .filter(|entry| entry.lines().any(|line| line == name));
    let (Some(entry), None) = (own.next(), own.next()) else {
        bail!("corpus/Cargo.lock does not hold {package} once");
    };
    let kept = entry
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("source = ") && !line.starts_with("checksum = "));
    *entry = kept.collect();
    Ok(entries.join("[[package]]"))
}
