//! Serves a page, and measures the memory of its server.

use crate::{corpus, tool};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The interval at which the memory is measured.
const OFTEN: Duration = Duration::from_millis(50);

/// A page that is served until this value is dropped.
pub struct Page {
    child: Child,
    /// The page's address.
    pub url: String,
    /// The peak memory up to now, in bytes.
    most: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Page {
    /// Serves a recording. The server runs in the recording's folder, so that commands on the page
    /// name only the file.
    ///
    /// # Errors
    /// Returns an error if the recording does not exist or cannot be served.
    pub fn of(tool: &Path, recording: &Path) -> Result<Self> {
        let folder = recording.parent().context("a recording is in a folder")?;
        let name = recording.file_name().context("a recording has a name")?;
        Self::started(tool, folder, name.as_ref())
    }

    /// Serves a recording of a program whose sources are below the workspace.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be served.
    pub fn with_sources(tool: &Path, recording: &Path) -> Result<Self> {
        let recording = fs::canonicalize(recording)?;
        Self::started(tool, &corpus::workspace(), &recording)
    }

    fn started(tool: &Path, folder: &Path, recording: &Path) -> Result<Self> {
        let mut explore = tool::start(tool);
        explore.args(["explore", "--no-open"]).arg(recording);
        if !folder.as_os_str().is_empty() {
            explore.current_dir(folder);
        }
        let mut child = explore
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run afterimage")?;
        let mut url = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut url)?;
        }
        let (most, ended) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let page = Self {
            url: url.trim().to_owned(),
            most: Arc::clone(&most),
            ended: Arc::clone(&ended),
            child,
        };
        if page.url.is_empty() {
            bail!("afterimage explore printed no address");
        }
        let id = page.child.id();
        thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                most.fetch_max(anonymous(id).unwrap_or(0), Ordering::SeqCst);
                thread::sleep(OFTEN);
            }
        });
        Ok(page)
    }

    /// Returns the peak memory of the server without mapped files, if the system reports it.
    pub fn memory(&self) -> Option<u64> {
        let most = self.most.load(Ordering::SeqCst);
        (most > 0).then_some(most)
    }
}

/// Returns the size of the part of a process's memory that no file backs.
fn anonymous(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

impl Drop for Page {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
