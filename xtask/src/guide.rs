//! `cargo xtask guide`: runs the commands of README.md and docs/guide, and writes their output into
//! these pages.
//!
//! The blocks of a page that are marked `console` run in order, in a separate folder with the
//! programs of `examples/mugs`, in a terminal of [`WIDTH`] columns. On a page, `…` in a line
//! matches any text, and `…` alone on a line matches any lines. An answer that agrees with its page
//! stays unchanged. `afterimage` commands elsewhere on a page are not run, but their options must
//! exist.
//!
//! The last line of a page contains digests of its programs and of the compiled modules. If a
//! compiler makes a different module, `--check` reports SKIPPED. If a program changed, `--check`
//! fails.

mod options;
#[path = "../../crates/cli/tests/it/sessions/page.rs"]
mod page;

use crate::screens::terminal;
use crate::{GuideArguments, corpus, tool, toolchain};
use anyhow::{Context, Result, bail};
use page::{Page, Places, matches, translated};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wasmparser::Parser;

/// The width of the terminal. Code blocks of this width fit a page of the book and a README on the
/// web.
const WIDTH: u16 = 100;

/// The beginning of the last line of each page.
const FOOTER: &str = "<!-- programs and modules: ";

/// Writes the output of the commands into the pages, or compares it with them.
///
/// # Errors
/// Returns an error if a page or a program cannot be read, a command cannot be run, or a page
/// cannot be written.
pub fn run(arguments: &GuideArguments) -> Result<ExitCode> {
    let tool = match &arguments.tool {
        Some(tool) => fs::canonicalize(tool)
            .with_context(|| format!("{}: no such program", tool.display()))?,
        None => tool::build()?,
    };
    toolchain::ensure_wasm_target()?;
    let folder = corpus::workspace().join("target/guide");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("{}: cannot be emptied", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let path = tool::on_path(&tool, &folder)?;
    let mut wrong = options::unknown(&tool, &corpus::workspace())?;
    for page in pages()? {
        wrong.extend(Visit::new(&page, &folder, &path)?.read(arguments.check)?);
    }
    for line in &wrong {
        println!("{line}");
    }
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the pages whose commands are run.
fn pages() -> Result<Vec<PathBuf>> {
    let root = corpus::workspace();
    let mut pages = vec![root.join("README.md")];
    pages.extend(sorted(&root.join("docs/guide"), "md")?);
    Ok(pages)
}

/// Returns the files of a folder with this extension.
fn sorted(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{}: cannot be read", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_file()
            && (extension.is_empty() || path.extension().is_some_and(|e| e == extension))
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// One page and the folder in which its commands run, which the manual calls `mugs`.
struct Visit<'a> {
    file: &'a Path,
    /// The page's path from the root of the project.
    name: String,
    folder: PathBuf,
    cache: PathBuf,
    path: &'a OsString,
}

impl<'a> Visit<'a> {
    fn new(file: &'a Path, folder: &Path, path: &'a OsString) -> Result<Self> {
        let name = file.strip_prefix(corpus::workspace()).unwrap_or(file);
        let stem = file.file_stem().unwrap_or_default();
        let visit = Self {
            file,
            name: name.display().to_string(),
            folder: folder.join(stem).join("mugs"),
            cache: folder.join("cache"),
            path,
        };
        let folder = &visit.folder;
        fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot be made", folder.display()))?;
        Ok(visit)
    }

    /// Runs the page's commands and returns the faults of the page. Writes the current output
    /// unless `check` is true.
    fn read(&self, check: bool) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.file)
            .with_context(|| format!("{}: cannot be read", self.name))?;
        let (text, kept) = match text.split_once(FOOTER) {
            Some((text, footer)) => (text, footer.trim_end().trim_end_matches(" -->")),
            None => (&*text, ""),
        };
        let mut page = Page::parse(text);
        let Some(programs) = self.programs(&page)? else {
            return Ok(Vec::new());
        };
        let mut wrong = Vec::new();
        let mut places = Places::new();
        for exchange in page.exchanges_mut() {
            let command = translated(&exchange.command, &places);
            let printed = self.printed(&command)?;
            if matches(&exchange.answer, &printed, &mut places) {
                continue;
            }
            wrong.push(format!(
                "{}: $ {command}\n-- the page:\n{}\n-- now:\n{}\n",
                self.name,
                exchange.answer.join("\n"),
                printed.join("\n")
            ));
            exchange.answer = printed;
        }
        let modules = self.modules()?;
        let footer = format!("{programs}; {modules}");
        if !check {
            let mut text = page.to_string();
            if page.exchanges().next().is_some() {
                writeln!(text, "{FOOTER}{footer} -->")?;
            }
            fs::write(self.file, text)
                .with_context(|| format!("{}: cannot be written", self.name))?;
            return Ok(Vec::new());
        }
        if footer == kept || page.exchanges().next().is_none() {
            if !wrong.is_empty() {
                wrong.push(format!(
                    "{}: `cargo xtask guide` writes what is printed now",
                    self.name
                ));
            }
            return Ok(wrong);
        }
        let (kept_programs, kept_modules) = kept.split_once("; ").unwrap_or_default();
        if !names(kept_modules).eq(names(&modules)) {
            return Ok(vec![format!(
                "{}: its commands make the modules {modules:?} instead of {kept_modules:?}:\n{}",
                self.name,
                wrong.join("\n")
            )]);
        }
        if kept_programs != programs {
            return Ok(vec![format!(
                "{}: its programs changed; run `cargo xtask guide` and read the difference",
                self.name
            )]);
        }
        println!(
            "SKIPPED {}: this machine's compilers make modules that differ from those of the page",
            self.name
        );
        Ok(Vec::new())
    }

    /// Copies the programs into the folder, and returns the programs that the page uses, with
    /// digests. Returns `None` if a compiler is missing.
    fn programs(&self, page: &Page) -> Result<Option<String>> {
        let commands = Vec::from_iter(page.exchanges().map(|exchange| &*exchange.command));
        let lacking = toolchain::missing_c_packages();
        if commands.iter().any(|command| command.starts_with("clang")) && !lacking.is_empty() {
            println!(
                "SKIPPED {}: not installed: {}",
                self.name,
                lacking.join(" ")
            );
            return Ok(None);
        }
        let commands = commands.join("\n");
        let mut used = Vec::new();
        for file in sorted(&corpus::workspace().join("examples/mugs"), "")? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let bytes =
                fs::read(&file).with_context(|| format!("{}: cannot be read", file.display()))?;
            if commands.contains(&*name) {
                used.push(format!("{name} {}", short(&bytes)));
            }
            let copy = self.folder.join(&*name);
            fs::write(&copy, bytes)
                .with_context(|| format!("{}: cannot be written", copy.display()))?;
        }
        Ok(Some(used.join(", ")))
    }

    /// Runs a command and returns the terminal's contents.
    fn printed(&self, command: &str) -> Result<Vec<String>> {
        let mut shell = tool::start("sh");
        shell
            .args(["-c", command])
            .env("PATH", self.path)
            .env("AFTERIMAGE_CACHE", &self.cache)
            .current_dir(&self.folder);
        let shown = terminal::run(&mut shell, WIDTH, str::to_owned)?;
        // Guests end with their own codes. afterimage and the shell use these codes when something
        // is wrong.
        if matches!(shown.status.code(), Some(125..=127) | None) {
            bail!(
                "{}: `{command}` failed: {}",
                self.name,
                shown.lines.join("\n")
            );
        }
        Ok(shown.lines)
    }

    /// Returns the modules that the commands made, with digests of everything except their names
    /// and debug information, which contain paths.
    fn modules(&self) -> Result<String> {
        let mut modules = Vec::new();
        for file in sorted(&self.folder, "wasm")? {
            let bytes =
                fs::read(&file).with_context(|| format!("{}: cannot be read", file.display()))?;
            let mut code = Vec::new();
            for payload in Parser::new(0).parse_all(&bytes) {
                match payload
                    .with_context(|| format!("{}: is no module", file.display()))?
                    .as_section()
                {
                    Some((id, range)) if id != 0 => code.extend_from_slice(&bytes[range]),
                    _ => {}
                }
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            modules.push(format!("{name} {}", short(&code)));
        }
        Ok(modules.join(", "))
    }
}

/// Returns the names in a list of files with digests.
fn names(files: &str) -> impl Iterator<Item = &str> {
    files
        .split(", ")
        .map(|file| file.split(' ').next().unwrap_or(file))
}

/// Returns the first digits of a digest.
fn short(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
