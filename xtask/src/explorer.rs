//! `cargo xtask explorer`: clicks through each view of the explorer's page in a browser, repeats
//! the sessions of docs/sessions, and checks the types of its scripts. With `--measure`, measures
//! how long clicks take.
//!
//! npm supplies the browser driver, the accessibility checker (axe-core) and the type checker. The
//! browser is the machine's Chromium. The command names missing tools, and skips the checks that
//! need them.

pub mod browser;
mod page;
mod recordings;

use crate::{corpus, tool};
use anyhow::{Context, Result};
use browser::Browser;
use page::Page;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The options for checking or measuring the page.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run this program instead of the one that the checkout builds
    #[arg(long, value_name = "PROGRAM")]
    tool: Option<PathBuf>,
    /// Instead measure the time from click to paint, view by view, and the server's memory
    #[arg(long)]
    measure: bool,
    /// Measure with these recordings [default: the recordings of a small program and of
    /// docs/sessions/bzip2.md]
    #[arg(long, value_name = "FILE.aft", requires = "measure")]
    recording: Vec<PathBuf>,
    /// The number of measurements of each kind of click
    #[arg(
        long,
        value_name = "N",
        default_value_t = 12,
        requires = "measure",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    rounds: u32,
    /// Measure with a run of a billion statements
    #[arg(long, requires = "measure", conflicts_with = "recording")]
    long: bool,
    /// Instead measure the first answers about recordings that contain only their log
    #[arg(long, requires = "measure")]
    bare: bool,
    /// Write the pictures of docs/sessions/explorer.md
    #[arg(long, conflicts_with = "measure")]
    pictures: bool,
}

/// Checks or measures the page.
///
/// # Errors
/// Returns an error if a program cannot be built, recorded or served.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let folder = corpus::workspace().join("target/explorer");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let Some(browser) = Browser::new(&folder)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let tool = match &arguments.tool {
        Some(program) => {
            fs::canonicalize(program).with_context(|| program.display().to_string())?
        }
        None => tool::build()?,
    };
    let is_well = match arguments.measure {
        true => measure(&browser, &tool, arguments)?,
        false => check(&browser, &tool, &folder, arguments.pictures)?,
    };
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The number of random clicks in the page of each of three recordings.
const CLICKS: &str = "170";

/// Clicks through the page, and repeats the sessions in it.
fn check(browser: &Browser, tool: &Path, folder: &Path, kept: bool) -> Result<bool> {
    let mut is_well = browser.types()?;
    if !browser.is_there() {
        println!(
            "SKIPPED the page in a browser: Chromium is not installed (apt-get install chromium)"
        );
        return Ok(is_well);
    }
    let pictures = folder.join("pictures");
    let shown = pictures.display().to_string();
    let page = Page::of(tool, &recordings::bank(tool, folder)?)?;
    let hostile = Page::of(tool, &recordings::hostile(tool, folder)?)?;
    is_well &= browser.run("check.mjs", &[&page.url, &hostile.url], &[&shown])?;
    println!("pictures of all views: {shown}");
    let scopes = Page::of(tool, &recordings::scopes(tool, folder)?)?;
    let fib = Page::of(tool, &recordings::fib(tool, folder)?)?;
    is_well &= browser.run("moments.mjs", &[&scopes.url, &fib.url], &[&shown])?;
    let program = tool.display().to_string();
    let inside = folder.display().to_string();
    for recording in recordings::several(tool, folder)? {
        println!("\n{}", recording.display());
        let page = Page::of(tool, &recording)?;
        let rest = [CLICKS, program.as_str(), inside.as_str()];
        is_well &= browser.run("oracle.mjs", &[&page.url], &rest)?;
    }
    let sessions = recordings::sessions(tool)?;
    if sessions.is_empty() {
        return Ok(is_well);
    }
    let pages = sessions.iter().map(|(name, recording)| {
        // The output of a long run is shown only after its values have been built.
        recordings::build(tool, recording)?;
        let page = Page::of(tool, recording)?;
        Ok((format!("{name}={}", page.url), page))
    });
    let pages = pages.collect::<Result<Vec<_>>>()?;
    let into = match kept {
        true => corpus::workspace().join("docs/sessions/pictures"),
        false => pictures.join("sessions"),
    };
    let into = into.display().to_string();
    let mut arguments = vec![into.as_str()];
    arguments.extend(pages.iter().map(|(named, _)| named.as_str()));
    is_well &= browser.run("sessions.mjs", &[], &arguments)?;
    Ok(is_well)
}

/// Measures the time from click to paint.
fn measure(browser: &Browser, tool: &Path, arguments: &Arguments) -> Result<bool> {
    if !browser.is_there() {
        println!("SKIPPED: Chromium is not installed (apt-get install chromium)");
        return Ok(true);
    }
    let folder = corpus::workspace().join("target/explorer");
    let mut chosen = arguments.recording.clone();
    if arguments.long {
        chosen.extend(recordings::long(tool, &folder)?);
    } else if chosen.is_empty() {
        chosen.push(recordings::bank(tool, &folder)?);
        let sessions = recordings::sessions(tool)?.into_iter();
        chosen.extend(
            sessions
                .filter(|(name, _)| *name == "bzip2")
                .map(|(_, at)| at),
        );
    }
    let mut is_well = true;
    for recording in &chosen {
        println!("\n{}\n", recording.display());
        let page = if arguments.bare {
            let bare = recordings::bare(tool, recording, &folder)?;
            let begun = Instant::now();
            let page = Page::of(tool, &bare)?;
            let started = begun.elapsed().as_millis().to_string();
            is_well &= browser.run("bare.mjs", &[&page.url], &[&started])?;
            page
        } else {
            recordings::build(tool, recording)?;
            let page = Page::with_sources(tool, recording)?;
            let rounds = arguments.rounds.to_string();
            is_well &= browser.run("measure.mjs", &[&page.url], &[&rounds])?;
            page
        };
        match page.memory() {
            Some(most) => println!(
                "\nmemory of the server beyond mapped files: at most {} MiB",
                most.div_ceil(1 << 20)
            ),
            None => println!("\nmemory of the server: not known on this system"),
        }
    }
    Ok(is_well)
}
