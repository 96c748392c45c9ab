//! `cargo xtask guilty`: plants thirty bugs, and counts how many guilty lines appear in an answer
//! of `afterimage mcp`, under a fixed policy.
//!
//! A seed determines random lines that a program's correct run executes, and mutations that fit
//! these lines. A mutated package is built without optimisation. If the program then prints
//! something else, its run is recorded and examined. The drawn bugs are kept with their recordings,
//! so that another version of the tool can be asked about the same bugs. `docs/AGENTS.md` describes
//! the mutations, the policy, and the counting.

pub mod client;
mod mutate;
mod policy;

use crate::build::{self, Optimised};
use crate::corpus::workspace;
use crate::inputs::{self, GUEST_FOLDER, Input};
use crate::planted::unlocked;
use crate::{GuiltyArguments, copy, tool, toolchain};
use anyhow::{Context, Result, bail};
use client::Client;
use mutate::{KINDS, Kind};
use policy::{About, CALLS, Line, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};

/// A program in which bugs are planted.
struct Subject {
    /// The guest of the corpus.
    guest: &'static str,
    /// The guest's binary that prints the whole result.
    binary: &'static str,
    /// The package with the lines that are mutated.
    package: &'static str,
    /// The folder that contains these lines.
    folder: &'static str,
    /// Whether the program is written in C.
    c: bool,
    /// The file that Cargo must consider changed in order to compile the package's files again.
    touched: &'static str,
    input: fn() -> Input,
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        guest: "bzip2",
        binary: "pack",
        package: "bzip2-sys",
        folder: "bzip2-1.0.8",
        c: true,
        touched: "PACKAGE/build.rs",
        input: inputs::short_c,
    },
    Subject {
        guest: "zlib",
        binary: "deflate",
        package: "libz-sys",
        folder: "src/zlib",
        c: true,
        touched: "PACKAGE/build.rs",
        input: inputs::short_c,
    },
    Subject {
        guest: "lua",
        binary: "guest-lua",
        package: "lua-src",
        folder: "lua-5.4.9",
        c: true,
        touched: "corpus/lua/build.rs",
        input: inputs::tiny_lua,
    },
    Subject {
        guest: "pulldown-cmark",
        binary: "markdown",
        package: "pulldown-cmark",
        folder: "src",
        c: false,
        touched: "PACKAGE/src/lib.rs",
        input: inputs::short_markdown,
    },
    Subject {
        guest: "minijinja",
        binary: "page",
        package: "minijinja",
        folder: "src",
        c: false,
        touched: "PACKAGE/src/lib.rs",
        input: inputs::short_page,
    },
];

/// The number of mutations to try for each wanted bug. A mutation without effect is not a bug.
const TRIED: usize = 60;

/// The number of bytes that a program may print, which is a thousand times its correct output.
const PRINTED: u64 = 64 << 20;

/// The output of a program, and its exit code.
struct Output {
    status: ExitStatus,
    stdout: Vec<u8>,
}

/// A generator of random numbers (Steele, Lea and Flood 2014), so that the same seed draws the same
/// bugs.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// A planted bug that changes the output.
#[derive(Serialize, Deserialize)]
struct Bug {
    program: String,
    /// The file in the package.
    file: String,
    line: usize,
    kind: Kind,
    from: String,
    to: String,
    about: About,
    /// The recording, relative to the folder of all recordings.
    recording: String,
}

/// A bug, with the outcome of asking about it.
struct Asked {
    bug: Bug,
    outcome: Outcome,
}

/// Runs the measurement, and prints a page in Markdown.
///
/// # Errors
/// Returns an error if nothing can be built, recorded or asked.
pub fn run(arguments: &GuiltyArguments) -> Result<ExitCode> {
    toolchain::ensure_wasm_target()?;
    let lacks = toolchain::missing_c_packages();
    if !lacks.is_empty() {
        bail!(
            "C code needs a compiler for WASI: apt-get install {}",
            lacks.join(" ")
        );
    }
    let program = match &arguments.tool {
        Some(program) => std::path::absolute(program)?,
        None => tool::build()?,
    };
    let out = workspace().join("target/guilty");
    let kept = format!("seed-{}", arguments.seed);
    fs::create_dir_all(out.join(&kept))?;
    let wanted = |subject: &Subject| {
        let only = &arguments.only;
        only.is_empty() || only.iter().any(|name| name == subject.guest)
    };
    let mut sources = None;
    let mut all = Vec::new();
    for (number, subject) in SUBJECTS.iter().enumerate() {
        if !wanted(subject) {
            continue;
        }
        let list = out.join(&kept).join(format!("{}.json", subject.guest));
        if !arguments.again {
            let sources = match &mut sources {
                Some(sources) => sources,
                none => none.insert(Sources::copied(&out)?),
            };
            let one = sources.program(number, &program, &out)?;
            let seed = arguments.seed.wrapping_mul(1000);
            let mut random = Random(seed.wrapping_add(number as u64));
            let bugs = one.bugs(arguments.count, &kept, &mut random)?;
            fs::write(&list, serde_json::to_vec_pretty(&bugs)?)?;
        }
        let bugs = fs::read(&list)
            .with_context(|| format!("{}: draw the bugs without --again first", list.display()))?;
        for bug in serde_json::from_slice::<Vec<Bug>>(&bugs)? {
            all.push(bug.asked(&program, &out)?);
        }
    }
    print!("{}", page(&all, arguments));
    Ok(ExitCode::SUCCESS)
}

impl Bug {
    /// Follows the policy with a new server.
    fn asked(self, program: &Path, out: &Path) -> Result<Asked> {
        let guilty = Line {
            file: self.file.clone(),
            line: self.line,
        };
        let mut client = Client::start(program, out)?;
        let outcome = policy::follow(&mut client, &self.recording, &self.about, &guilty);
        eprintln!(
            "{} {}:{}, {}: {:?} in {:?}{}",
            self.recording,
            self.file,
            self.line,
            self.kind.name(),
            outcome.found,
            outcome.asked,
            outcome.ended()
        );
        Ok(Asked { bug: self, outcome })
    }
}

/// Copies of the guests' workspace and of the packages.
struct Sources {
    guests: PathBuf,
    /// The packages as they were published.
    packages: Vec<PathBuf>,
}

impl Sources {
    /// Copies the guests' workspace and the packages, and makes Cargo use the copies.
    fn copied(out: &Path) -> Result<Self> {
        let mut packages = Vec::new();
        let mut patches = "\n[patch.crates-io]\n".to_owned();
        for subject in &SUBJECTS {
            let corpus = workspace().join("corpus");
            let from = build::package_folder(&corpus, subject.package)?;
            let name = from.file_name().context("a package has no folder")?;
            let to = out.join("packages").join(name);
            copy::folder(&from, &to, copy::as_it_is)?;
            writeln!(patches, "{} = {{ path = {to:?} }}", subject.package)?;
            packages.push(from);
        }
        let guests = out.join("corpus");
        copy::folder(&workspace().join("corpus"), &guests, |path, bytes| {
            let text = String::from_utf8(bytes)?;
            let changed = match path.to_str() {
                Some("Cargo.toml") => text + &patches,
                Some("Cargo.lock") => {
                    let unlock = |lock: String, subject: &Subject| unlocked(&lock, subject.package);
                    SUBJECTS.iter().try_fold(text, unlock)?
                }
                _ => text,
            };
            Ok(changed.into_bytes())
        })?;
        Ok(Self { guests, packages })
    }

    fn program<'p>(&'p self, number: usize, tool: &'p Path, out: &'p Path) -> Result<Program<'p>> {
        let original = self.packages[number].clone();
        let name = original.file_name().context("a package has no folder")?;
        Ok(Program {
            subject: &SUBJECTS[number],
            tool,
            out,
            guests: &self.guests,
            package: out.join("packages").join(name),
            original,
        })
    }
}

/// A program with its sources.
struct Program<'p> {
    subject: &'p Subject,
    tool: &'p Path,
    out: &'p Path,
    guests: &'p Path,
    /// The package as it was published.
    original: PathBuf,
    /// The copy of the package.
    package: PathBuf,
}

impl Program<'_> {
    /// Draws bugs, and keeps their recordings in a folder.
    fn bugs(&self, count: usize, kept: &str, random: &mut Random) -> Result<Vec<Bug>> {
        let name = self.subject.guest;
        let input = (self.subject.input)();
        let folder = self.out.join(format!("{name}.d"));
        fs::create_dir_all(&folder)?;
        for (name, contents) in &input.files {
            copy::file(&folder.join(name), contents)?;
        }
        if !self.build()? {
            bail!("{name} cannot be built as it was published");
        }
        let right = self.out.join(format!("{name}-right.aft"));
        let expected = self.record(&input, &folder, &right)?;
        let expected = expected.with_context(|| format!("{name} prints without end"))?;
        let lines = self.executed(&right)?;
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        for _ in 0..count * TRIED {
            if all.len() == count {
                break;
            }
            let (file, number) = &lines[random.below(lines.len())];
            let kind = KINDS[random.below(KINDS.len())];
            let from = fs::read_to_string(self.original.join(file))?;
            let mut text = Vec::from_iter(from.split('\n').map(str::to_owned));
            let line = text.get(number - 1).cloned().unwrap_or_default();
            let fields = mutate::fields(&from);
            let Some(changed) = mutate::mutated(&line, kind, &fields, random) else {
                continue;
            };
            if !seen.insert((file.clone(), *number)) {
                continue;
            }
            text[number - 1] = changed.clone();
            let recording = format!("{kept}/{name}-{}.aft", all.len() + 1);
            let wrong = self.out.join(&recording);
            fs::write(self.package.join(file), text.join("\n"))?;
            let built = self.build();
            let ran = match built? {
                true => Some(self.record(&input, &folder, &wrong)?),
                false => None,
            };
            copy::file(&self.package.join(file), from.as_bytes())?;
            let Some(Some(ran)) = ran else { continue };
            // Exit code 124 means that the program may run forever.
            if ran.status.code() == Some(124) || ran.stdout == expected.stdout {
                continue;
            }
            all.push(Bug {
                program: name.to_owned(),
                file: file.clone(),
                line: *number,
                kind,
                from: line.trim().to_owned(),
                to: changed.trim().to_owned(),
                about: about(&expected.stdout, &ran),
                recording,
            });
        }
        // The next run begins with the package as it was published.
        self.touch()?;
        Ok(all)
    }

    /// Builds the program; `false` if it does not compile.
    fn build(&self) -> Result<bool> {
        self.touch()?;
        let Subject {
            guest, binary, c, ..
        } = self.subject;
        let optimised = match c {
            true => Optimised::C(0),
            false => Optimised::Rust(0),
        };
        let cache = self.out.join("build");
        let built = build::quietly_at(self.guests, &cache, guest, binary, optimised);
        let built = match built {
            Ok(built) => built,
            Err(error) => {
                let text = format!("{error:#}");
                let first = text.lines().find(|line| line.contains("error"));
                eprintln!("{guest}: does not compile: {}", first.unwrap_or_default());
                return Ok(false);
            }
        };
        let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
        fs::write(self.module(), bytes)?;
        Ok(true)
    }

    fn module(&self) -> PathBuf {
        self.out.join(format!("{}.wasm", self.subject.guest))
    }

    /// Makes Cargo build the package again.
    fn touch(&self) -> Result<()> {
        let path = match self.subject.touched.strip_prefix("PACKAGE/") {
            Some(inner) => self.package.join(inner),
            None => self.out.join(self.subject.touched),
        };
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, bytes)?;
        Ok(())
    }

    /// Records the program; `None` if it prints without end.
    fn record(&self, input: &Input, folder: &Path, at: &Path) -> Result<Option<Output>> {
        let mut command = tool::start(self.tool);
        command
            .args(["record", "--quiet", "--force", "--timeout", "10", "-o"])
            .arg(at);
        match input.stdin {
            Some(file) => command.arg("--stdin").arg(folder.join(file)),
            None => {
                let granted = format!("{}::{GUEST_FOLDER}", folder.display());
                command.args(["--dir", &granted])
            }
        };
        command.arg(self.module()).arg("--").args(&input.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let started = command.stderr(Stdio::null()).spawn();
        let mut run = started.with_context(|| format!("cannot run {}", self.tool.display()))?;
        let mut stdout = Vec::new();
        let out = run.stdout.take().context("no way from the program")?;
        out.take(PRINTED + 1).read_to_end(&mut stdout)?;
        if stdout.len() as u64 > PRINTED {
            run.kill()?;
            run.wait()?;
            return Ok(None);
        }
        let status = run.wait()?;
        Ok(Some(Output { status, stdout }))
    }

    /// Returns the lines of the package that the correct run executed, each with its file in the
    /// package.
    fn executed(&self, right: &Path) -> Result<Vec<(String, usize)>> {
        let mut command = tool::start(self.tool);
        command.args([
            "profile", "--by", "line", "--code", "all", "--sort", "program", "--format", "json",
        ]);
        let ran = command.arg(right).stdin(Stdio::null()).output()?;
        let profile: Value = serde_json::from_slice(&ran.stdout)
            .with_context(|| String::from_utf8_lossy(&ran.stderr).into_owned())?;
        let folder = self.package.join(self.subject.folder);
        let rows = profile["rows"]
            .as_array()
            .context("a profile has no rows")?;
        let lines = rows.iter().filter_map(|row| {
            let file = Path::new(row["source"]["file"].as_str()?);
            let inner = file.strip_prefix(&folder).ok()?;
            let inner = Path::new(self.subject.folder).join(inner);
            let executed = row["count"].as_u64()? > 0;
            let line = row["source"]["line"].as_u64()? as usize;
            (executed && line > 0).then(|| (inner.display().to_string(), line))
        });
        let lines = Vec::from_iter(lines);
        if lines.is_empty() {
            bail!(
                "the run of {} executed no line of {}",
                self.subject.guest,
                folder.display()
            );
        }
        Ok(lines)
    }
}

/// Returns the first question about a wrong output.
fn about(expected: &[u8], ran: &Output) -> About {
    let same = expected.iter().zip(&ran.stdout).take_while(|(a, b)| a == b);
    let same = same.count() as u64;
    match (same < ran.stdout.len() as u64, ran.status.success()) {
        (true, _) => About::Byte(same),
        (false, false) => About::Trap,
        // The program ended too early. If it printed nothing, there is no byte, and the answer is a
        // refusal.
        (false, true) => About::Byte(same.saturating_sub(1)),
    }
}

fn median(mut numbers: Vec<usize>) -> usize {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

/// Returns the results as a page in Markdown.
fn page(all: &[Asked], arguments: &GuiltyArguments) -> String {
    let mut text = format!(
        "# Guilty lines in the answers of a fixed policy, seed {}\n\n`cargo xtask guilty --seed {} --count {}`. At most {CALLS} calls; `docs/AGENTS.md` describes the policy and the mutations.\n\n| program | line | mutation | was | is | asked about | in call | lines of text | lines of source in it |\n|---|---|---|---|---|---|---|--:|--:|\n",
        arguments.seed, arguments.seed, arguments.count
    );
    let cell = |text: &str| text.replace('|', "\\|");
    for Asked { bug, outcome } in all {
        let found = match outcome.found {
            Some(call) => call.to_string(),
            None => format!("none of {}{}", outcome.calls, outcome.ended()),
        };
        let about = match bug.about {
            About::Byte(byte) => format!("byte {byte}"),
            About::Trap => "trap".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {}:{} | {} | `{}` | `{}` | {about} | {found} | {} | {} |",
            bug.program,
            bug.file,
            bug.line,
            bug.kind.name(),
            cell(&bug.from),
            cell(&bug.to),
            outcome.lines,
            outcome.shown
        );
    }
    let found = Vec::from_iter(all.iter().filter(|one| one.outcome.found.is_some()));
    let share = |found: usize, all: usize| 100.0 * found as f64 / all.max(1) as f64;
    let _ = writeln!(
        text,
        "\nThe guilty line is in an answer for **{} of {} bugs, {:.0} %**: after a median of {} calls and {} lines of text, and at most {} and {}. Up to then, the answers show a median of {} different source lines.\n",
        found.len(),
        all.len(),
        share(found.len(), all.len()),
        median(found.iter().filter_map(|one| one.outcome.found).collect()),
        median(found.iter().map(|one| one.outcome.lines).collect()),
        found
            .iter()
            .filter_map(|one| one.outcome.found)
            .max()
            .unwrap_or(0),
        found.iter().map(|one| one.outcome.lines).max().unwrap_or(0),
        median(found.iter().map(|one| one.outcome.shown).collect()),
    );
    let _ = writeln!(text, "| | bugs | found |\n|---|--:|--:|");
    let mut row = |name: &str, is_in: &dyn Fn(&Asked) -> bool| {
        let of = all.iter().filter(|one| is_in(one)).count();
        let found = found.iter().filter(|one| is_in(one)).count();
        let _ = writeln!(text, "| {name} | {of} | {found} |");
    };
    for kind in KINDS {
        row(kind.name(), &|one| one.bug.kind == kind);
    }
    for subject in &SUBJECTS {
        row(subject.guest, &|one| one.bug.program == subject.guest);
    }
    text
}
