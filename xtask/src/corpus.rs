//! `cargo xtask corpus`: builds the programs, writes their inputs, checks the modules and describes
//! everything in a manifest.

use crate::CorpusArguments;
use crate::build::Optimised;
use crate::inputs::{GUEST_FOLDER, Input};
use crate::manifest::{self, Entry};
use crate::programs::{PROGRAMS, Program, Source};
use crate::{build, copy, inspect, toolchain};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Builds the requested programs. The exit code reports programs that failed or, unless that was
/// allowed, were left out.
///
/// # Errors
/// Returns an error if nothing can be built, for example because of unknown names, a missing Rust
/// target, or an unwritable folder.
pub fn run(arguments: &CorpusArguments) -> Result<ExitCode> {
    let selected = select(&arguments.only)?;
    if arguments.list {
        list(&selected)?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = arguments.out.clone().unwrap_or_else(|| {
        let folder = default_folder();
        if arguments.versions {
            folder.with_file_name("corpus-versions")
        } else {
            folder
        }
    });
    let out =
        std::path::absolute(&out).with_context(|| format!("cannot resolve {}", out.display()))?;
    toolchain::ensure_wasm_target()?;

    for program in &selected {
        if !arguments.only.is_empty() && versions(program, arguments.versions).is_empty() {
            bail!(
                "{} is built {} --versions",
                program.name,
                if arguments.versions {
                    "without"
                } else {
                    "only with"
                }
            );
        }
    }

    // Groups programs by missing tool, so that the same advice is given once.
    let mut left_out = BTreeMap::<String, Vec<&str>>::new();
    let mut failed = Vec::new();
    for program in selected {
        if let Some(lack) = what_lacks(program) {
            left_out.entry(lack).or_default().push(program.name);
            continue;
        }
        for version in versions(program, arguments.versions) {
            match make(program, version, &out) {
                Ok(entry) => eprintln!(
                    "{}: {} functions, {} bytes, {}",
                    entry.name, entry.functions, entry.bytes, entry.version
                ),
                Err(error) => {
                    eprintln!("{}: {error:#}", version.name(program));
                    failed.push(version.name(program));
                }
            }
        }
    }
    for (lack, names) in &left_out {
        eprintln!("left out {}: {lack}", names.join(", "));
    }
    if !failed.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
    }
    let complete = failed.is_empty() && (left_out.is_empty() || arguments.skip_missing);
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The way in which a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// For measurements, with C code at -O2 and the input that takes a third of a second.
    Measured,
    /// As one of several versions, with the small input. The program's own code is compiled at this
    /// level.
    Level(u8),
}

impl Version {
    /// Returns the name of a program built in this way.
    fn name(self, program: &Program) -> String {
        match self {
            Self::Measured => program.name.to_owned(),
            Self::Level(level) => format!("{}-O{level}", program.name),
        }
    }

    /// Returns the optimisation of the program's own code. `c` is true for C.
    fn optimised(self, c: bool) -> Optimised {
        match (self, c) {
            (Self::Measured, false) => Optimised::Release,
            (Self::Measured, true) => Optimised::C(2),
            (Self::Level(level), false) => Optimised::Rust(level),
            (Self::Level(level), true) => Optimised::C(level),
        }
    }
}

/// Returns the versions of a program to build. Without `all`, there is one version to build, or
/// none if the program exists only for its versions.
fn versions(program: &Program, all: bool) -> Vec<Version> {
    match all {
        false => Vec::from_iter(program.input.map(|_| Version::Measured)),
        true if program.small_input.is_some() => (0..=3).map(Version::Level).collect(),
        true => Vec::new(),
    }
}

/// The folder inside the corpus with a manifest of small inputs. With these inputs, everything
/// about a program's run can be checked.
pub const TINY: &str = "tiny";

/// Returns the default folder for the corpus.
pub fn default_folder() -> PathBuf {
    workspace().join("target/corpus")
}

/// Returns the root of the project's workspace.
pub fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Returns the programs with these names, or all.
fn select(names: &[String]) -> Result<Vec<&'static Program>> {
    if names.is_empty() {
        return Ok(PROGRAMS.iter().collect());
    }
    let find = |name: &String| {
        let found = PROGRAMS.iter().find(|program| program.name == name);
        found.with_context(|| {
            format!("there is no program called {name:?}; `cargo xtask corpus --list` shows all")
        })
    };
    names.iter().map(find).collect()
}

fn list(programs: &[&Program]) -> Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    for program in programs {
        writeln!(
            out,
            "{:15} {:5} like {:20} {}",
            program.name, program.language, program.like, program.notes
        )?;
    }
    Ok(())
}

/// Returns advice about the tools that this machine lacks to build `program`.
pub fn what_lacks(program: &Program) -> Option<String> {
    match program.source {
        Source::Guest { c: false, .. } => None,
        Source::Guest { c: true, .. } => {
            let packages = toolchain::missing_c_packages();
            (!packages.is_empty()).then(|| {
                format!(
                    "C code needs a compiler for WASI: apt-get install {}",
                    packages.join(" ")
                )
            })
        }
        Source::Shipped { registry, .. } => registry.lacks_client().map(str::to_owned),
    }
}

/// Builds one program, with its inputs and its entry in the manifest, into the folder `out`.
///
/// # Errors
/// Returns an error if the program cannot be built or written, or if its module does not fit the
/// corpus.
pub fn make(program: &Program, version: Version, out: &Path) -> Result<Entry> {
    let name = version.name(program);
    let corpus = workspace().join("corpus");
    let cache = out.join("build");
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let folder = format!("{}.d", program.name);
    let mut notes = program.notes.to_owned();
    let mut dirs = Vec::new();
    let (module, packages) = match &program.source {
        Source::Guest { packages, c } => {
            let optimised = version.optimised(*c);
            match optimised {
                Optimised::Release => {}
                Optimised::Rust(level) => notes.push_str(&format!("; Rust at level {level}")),
                Optimised::C(level) => notes.push_str(&format!(
                    "; C compiled by {} at -O{level}",
                    toolchain::c_compiler_version()?,
                )),
            }
            (
                build::guest(&corpus, &cache, program.name, optimised)?,
                build::locked_versions(&corpus, program.name, packages)?,
            )
        }
        Source::Shipped {
            registry,
            module,
            share,
            ..
        } => {
            let pins = corpus.join(program.name);
            let contents = registry.unpack(&pins, &cache)?;
            if let Some([from, to]) = share {
                let share = format!("{folder}/share");
                copy::folder(&contents.join(from), &out.join(&share), copy::as_it_is)?;
                dirs.push([share, (*to).to_owned()]);
            }
            (contents.join(module), registry.pinned_version(&pins)?)
        }
    };
    let wasm = format!("{name}.wasm");
    let bytes = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    let facts = check(program, &bytes)?;
    if facts.exceptions > 0 {
        notes.push_str(&format!("; exceptions in {} functions", facts.exceptions));
    }
    fs::write(out.join(&wasm), &bytes).with_context(|| format!("cannot write {wasm}"))?;

    let input = match version {
        Version::Measured => program.input,
        Version::Level(_) => program.small_input,
    };
    let input = input.with_context(|| format!("there is no input for {name}"))?;
    let entry = Entry {
        name,
        wasm,
        args: Vec::new(),
        stdin: None,
        dirs,
        language: program.language.to_owned(),
        like: program.like.to_owned(),
        version: packages,
        notes,
        bytes: bytes.len() as u64,
        functions: facts.functions,
    };
    if let (Version::Measured, Some(tiny_input)) = (version, program.tiny_input) {
        // Converts a path to the path from a subfolder.
        let further = |path: &str| format!("../{path}");
        let dirs = entry.dirs.iter();
        let tiny = Entry {
            wasm: further(&entry.wasm),
            dirs: dirs
                .map(|[host, guest]| [further(host), guest.clone()])
                .collect(),
            ..entry.clone()
        };
        written(&out.join(TINY), &folder, tiny, tiny_input())?;
    }
    written(out, &folder, entry, input())
}

/// Writes an input, and the manifest entry of a program with that input.
fn written(out: &Path, folder: &str, mut entry: Entry, input: Input) -> Result<Entry> {
    let Input { args, files, stdin } = input;
    write_files(&out.join(folder), &files)?;
    if stdin.is_none() {
        let granted = [folder.to_owned(), GUEST_FOLDER.to_owned()];
        entry.dirs.push(granted);
    }
    entry.stdin = stdin.map(|file| format!("{folder}/{file}"));
    entry.args = args;
    // The manifest is updated after every program, so that it describes all finished programs even
    // if the run is interrupted.
    manifest::merge(out, vec![entry.clone()])?;
    Ok(entry)
}

/// Rejects a module that lacks data for the reports, or that the engine would reject.
///
/// # Errors
/// Returns an error if the module is rejected, or cannot be read.
pub fn check(program: &Program, module: &[u8]) -> Result<inspect::Facts> {
    let facts = inspect::inspect(module)?;
    let named = !matches!(program.source, Source::Shipped { named: false, .. });
    if named && !(facts.names && facts.lines) {
        bail!(
            "the module has lost its function names or its line table: something stripped it after the link"
        );
    }
    if facts.legacy_exceptions > 0 {
        bail!(
            "{} functions of the module use the legacy encoding of exceptions, which the engine refuses",
            facts.legacy_exceptions
        );
    }
    Ok(facts)
}

fn write_files(folder: &Path, files: &[(&str, Vec<u8>)]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, contents) in files {
        fs::write(folder.join(name), contents).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}
