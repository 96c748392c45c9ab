//! `cargo xtask screens`: shows a terminal's contents for twelve user tasks, for programs in C, C++
//! and Rust.
//!
//! The programs and their inputs are in `xtask/screens`, and the pages are in `docs/screens`. A
//! page names its module. If this machine's compiler makes a different module from the program, a
//! message says that the page is not compared.

mod tasks;
pub mod terminal;

use crate::{ScreensArguments, copy, corpus, tool, toolchain};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use tasks::{PROGRAMS, Program, Task};

/// The number of rows on a screen.
const ROWS: usize = 24;
/// The width of most people's terminals, and the width of a wide terminal.
const NARROW: u16 = 80;
const WIDE: u16 = 140;

/// Makes the pages, or compares them with the kept pages.
///
/// # Errors
/// Returns an error if a program cannot be built or recorded, a command that should succeed fails,
/// or a page cannot be read or written.
pub fn run(arguments: &ScreensArguments) -> Result<ExitCode> {
    let tool = match &arguments.tool {
        Some(tool) => fs::canonicalize(tool)
            .with_context(|| format!("{}: no such program", tool.display()))?,
        None => tool::build()?,
    };
    let folder = corpus::workspace().join("target/screens");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("{}: cannot be emptied", folder.display()))?;
    }
    let mut failed = false;
    for program in PROGRAMS {
        if let Some(lacking) = lacking(program)? {
            println!("SKIPPED {}: not installed: {lacking}", program.name);
            continue;
        }
        let studio = Studio::new(&tool, &folder, program)?;
        let page = studio.page(program)?;
        let kept = corpus::workspace()
            .join("docs/screens")
            .join(program.name)
            .with_extension("md");
        if arguments.check {
            failed |= !agrees(program, &kept, &page)?;
        } else {
            fs::write(&kept, &page)
                .with_context(|| format!("{}: cannot be written", kept.display()))?;
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the tools missing on this machine to compile a program.
fn lacking(program: &Program) -> Result<Option<String>> {
    if program.source.ends_with(".rs") {
        toolchain::ensure_wasm_target()?;
        return Ok(None);
    }
    let lacking = toolchain::missing_c_packages();
    Ok((!lacking.is_empty()).then(|| lacking.join(" ")))
}

/// Whether a page agrees with the kept page, section by section. Sections that were skipped here
/// are not compared.
fn agrees(program: &Program, kept: &Path, page: &str) -> Result<bool> {
    let text =
        fs::read_to_string(kept).with_context(|| format!("{}: cannot be read", kept.display()))?;
    let (then, now): (Vec<_>, Vec<_>) = (sections(&text).collect(), sections(page).collect());
    if text.lines().next_back() != page.lines().next_back() {
        println!(
            "SKIPPED {}: this machine's compiler makes a different module from the module of the stored page",
            program.name
        );
        return Ok(true);
    }
    let mut agrees = then.len() == now.len();
    if !agrees {
        println!("{}: other sections: run cargo xtask screens", program.name);
    }
    for (then, now) in then.iter().zip(&now) {
        if then == now || now.contains(SKIPPED) {
            continue;
        }
        agrees = false;
        let differs = then.lines().zip(now.lines()).find(|(a, b)| a != b);
        let (before, after) = differs.unwrap_or(("(no more lines)", "(no more lines)"));
        let title = now.lines().next().unwrap_or_default();
        println!("{}: {title}\n  - {before}\n  + {after}", program.name);
    }
    Ok(agrees)
}

fn sections(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n## ")
}

/// The beginning of the text that replaces a section if its tool is not installed.
const SKIPPED: &str = "SKIPPED: ";

/// A program, built and recorded in a separate folder for each width.
struct Studio {
    /// The path with the folder of `afterimage` in front.
    path: OsString,
    narrow: PathBuf,
    wide: PathBuf,
    cache: PathBuf,
    digest: String,
    preparation: String,
}

impl Studio {
    fn new(tool: &Path, folder: &Path, program: &Program) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot be made", folder.display()))?;
        let mut studio = Self {
            path: tool::on_path(tool, folder)?,
            narrow: folder.join("80").join(program.name),
            wide: folder.join("140").join(program.name),
            cache: folder.join("cache"),
            digest: String::new(),
            preparation: String::new(),
        };
        studio.prepare(program)?;
        Ok(studio)
    }

    /// Compiles and records, and writes the commands to the page.
    fn prepare(&mut self, program: &Program) -> Result<()> {
        fs::create_dir_all(&self.narrow)
            .with_context(|| format!("{}: cannot be made", self.narrow.display()))?;
        let sources = corpus::workspace().join("xtask/screens");
        let entries = fs::read_dir(&sources)
            .with_context(|| format!("{}: cannot be read", sources.display()))?;
        for entry in entries {
            let name = entry?.file_name();
            if name.to_string_lossy().starts_with(program.stem()) {
                fs::copy(sources.join(&name), self.narrow.join(&name))
                    .with_context(|| format!("{}: cannot be copied", sources.display()))?;
            }
        }
        let mut preparation = String::new();
        for command in program.compile {
            let output = self
                .shell(command, &self.narrow)
                .stdin(Stdio::null())
                .output()?;
            if !output.status.success() {
                bail!(
                    "`{command}` failed: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
            writeln!(preparation, "$ {command}")?;
        }
        for command in program.record {
            self.show(command, NARROW, &mut preparation)?;
        }
        self.preparation = preparation;
        self.digest = self.digest(program)?;
        copy::folder(&self.narrow, &self.wide, |_, bytes| Ok(bytes))?;
        // The module must be newer than its source, as in the other folder. Otherwise `record
        // --sources` warns.
        let module = format!("{}.wasm", program.stem());
        fs::copy(self.narrow.join(&module), self.wide.join(&module))
            .with_context(|| format!("{module}: cannot be copied"))?;
        Ok(())
    }

    /// Returns the page about a program.
    fn page(&self, program: &Program) -> Result<String> {
        let mut page = format!(
            "# {}\n\n{}\nThe screens show a terminal of {NARROW} columns, with up to {ROWS} rows of each answer. If a terminal of {WIDE} columns shows much more, its screen follows. `cargo xtask screens` makes this page.\n\n```console\n{}```\n",
            program.title, program.about, self.preparation
        );
        for task in program.tasks {
            write!(page, "\n## {}\n\n", task.title)?;
            if let Some(lacking) = task.tools.iter().find(|tool| !is_there(tool)) {
                println!(
                    "SKIPPED {}: {}: {lacking} is not installed",
                    program.name, task.title
                );
                writeln!(page, "{SKIPPED}{lacking} is not installed.")?;
                continue;
            }
            self.section(program, task, &mut page)?;
        }
        write!(page, "\n<!-- sha256 of the module: {} -->\n", self.digest)?;
        Ok(page)
    }

    fn section(&self, program: &Program, task: &Task, page: &mut String) -> Result<()> {
        let mut narrow = String::new();
        let mut wide = String::new();
        let mut wrapped = 0;
        for command in task.commands {
            wrapped += self.show(command, NARROW, &mut narrow)?;
            self.show(command, WIDE, &mut wide)?;
        }
        if wrapped > 0 {
            println!(
                "{}: {}: lines longer than {NARROW} columns: {wrapped}",
                program.name, task.title
            );
        }
        if !narrow
            .lines()
            .any(|line| !line.starts_with("$ ") && line.contains(program.source))
        {
            println!(
                "{}: {}: no line of {} is named",
                program.name, task.title, program.source
            );
        }
        writeln!(page, "```console\n{narrow}```")?;
        let differ = narrow.lines().zip(wide.lines()).filter(|(a, b)| a != b);
        if differ.count() * 3 > narrow.lines().count() {
            writeln!(page, "\n{WIDE} columns:\n\n```console\n{wide}```")?;
        }
        Ok(())
    }

    /// Runs a command in a terminal and writes its output to the page. Returns the number of lines
    /// that are wider than the terminal.
    fn show(&self, command: &str, width: u16, page: &mut String) -> Result<usize> {
        let folder = if width == NARROW {
            &self.narrow
        } else {
            &self.wide
        };
        let shown = terminal::run(&mut self.shell(command, folder), width, normalised)?;
        // Guests end with their own codes, even if they trap. The codes of afterimage itself are
        // 125 to 127.
        if matches!(shown.status.code(), Some(125..=127) | None) {
            bail!("`{command}` failed: {}", shown.lines.join("\n"));
        }
        writeln!(page, "$ {command}")?;
        let (rows, wrapped) = shown.rows(width);
        for row in rows.iter().take(ROWS) {
            writeln!(page, "{row}")?;
        }
        if rows.len() > ROWS {
            writeln!(page, "…")?;
        }
        Ok(wrapped)
    }

    fn shell(&self, command: &str, folder: &Path) -> Command {
        let mut shell = tool::start("sh");
        if command.starts_with("cargo ") {
            // The environment must be the same as when the workspace was built. Otherwise the
            // engine would be built again.
            shell.envs(env::vars_os());
        }
        shell
            .args(["-c", command])
            .env("PATH", &self.path)
            .env("AFTERIMAGE_CACHE", &self.cache)
            .current_dir(folder);
        shell
    }

    fn digest(&self, program: &Program) -> Result<String> {
        let command = format!("afterimage info --format json {}-good.aft", program.stem());
        let output = self.shell(&command, &self.narrow).output()?;
        let info: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{command}: prints no JSON"))?;
        let digest = info["module_sha256"].as_str();
        Ok(digest.context("no digest of the module")?.to_owned())
    }
}

/// Whether a tool is on the path.
fn is_there(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// Removes the parts of a line that differ from day to day: dates, sizes of recordings and their
/// parts, versions, and digests.
fn normalised(line: &str) -> String {
    for (start, instead) in [
        ("recorded  ", "recorded  …"),
        ("engine    ", "engine    …"),
        ("sha256    ", "sha256    …"),
        ("size      ", "size      …"),
    ] {
        if line.starts_with(start) {
            return instead.to_owned();
        }
    }
    let mut words: Vec<&str> = line.split(' ').collect();
    for i in 1..words.len() {
        let unit = words[i].trim_end_matches([')', ',', ':']);
        let (open, number) = match words[i - 1].strip_prefix('(') {
            Some(number) => (true, number),
            None => (false, words[i - 1]),
        };
        let built = line.starts_with("afterimage: ") && unit == "bytes";
        if (built || matches!(unit, "kB" | "MB")) && number.replace(',', "").parse::<f64>().is_ok()
        {
            words[i - 1] = if open { "(…" } else { "…" };
        }
    }
    let mut line = words.join(" ");
    if line.starts_with("afterimage: values of ") {
        line.truncate(line.find(" (").unwrap_or(line.len()));
    } else if line.starts_with("  (") && line.ends_with(" a statement)") {
        "  (…)".clone_into(&mut line);
    }
    line
}
