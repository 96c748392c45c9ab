//! Writes a data set.

use std::ops::Range;
use std::path::Path;

use afterimage::profile::Scope;
use afterimage::{Session, Work};
use afterimage_present::{counted, grouped, size};
use afterimage_profile::Remarks;
use afterimage_replay::steps::Run;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::dynamic::Walk;
use crate::estimate::estimate;
use crate::folder::{Folder, Part};
use crate::ids::Ids;
use crate::report::DatasetReport;
use crate::schema::{self, DYNAMIC, Table};
use crate::whole::Whole;
use crate::windows::{Selected, Windows};

/// The parts of a data set to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetQuery {
    /// The number of blocks in a window.
    pub window_blocks: u64,
    /// The windows to write. `None` means all.
    pub windows: Option<Selected>,
    /// The tables in each window, by name. Empty means all.
    pub tables: Vec<String>,
}

impl Default for DatasetQuery {
    fn default() -> Self {
        Self {
            window_blocks: Self::WINDOW_BLOCKS,
            windows: None,
            tables: Vec::new(),
        }
    }
}

impl DatasetQuery {
    /// The default number of blocks in a window. A window of this size has about ten million rows.
    pub const WINDOW_BLOCKS: u64 = 1 << 20;

    /// Writes the missing parts that no other process is writing. Builds the path if it does not
    /// exist yet, and the values if the table of dependences is wanted.
    ///
    /// # Errors
    /// Returns an error if there is no such window or table, the folder holds other files, the run
    /// cannot be followed, or the disk is full.
    pub fn write(&self, session: &Session, folder: &Path) -> Result<DatasetReport> {
        let tables = self.tables()?;
        session.ensure_whole_path()?;
        let path = session.path()?;
        let windows = Windows::new(self.window_blocks, path.length());
        let selected = match &self.windows {
            None => 0..windows.count(),
            Some(Selected(range)) if range.end <= windows.count() => range.clone(),
            Some(Selected(range)) => bail!(
                "there is no window {}: the run has {}, from 0, of {} blocks each",
                range.end - 1,
                counted(windows.count(), "window"),
                grouped(windows.blocks())
            ),
        };
        let folder = Folder::open(folder, session, windows, &tables)?;
        if self.needs_values()? {
            session.ensure_all_values()?;
        }
        let mut report = DatasetReport {
            all: windows.count(),
            ..DatasetReport::default()
        };
        session.profile(|profile| {
            let lines = profile.line_rows(&Scope::All)?;
            let ids = Ids::new(session.program(), &lines)?;
            let whole = Whole {
                session,
                profile,
                ids: &ids,
                lines: &lines,
                windows,
            };
            part(&folder, Part::Whole, |at| whole.write(at, &mut report))?;
            write_windows(&whole, &folder, (selected, &tables), &mut report)
        })?;
        report.complete = folder.complete(windows)?;
        report.missing = folder.missing(windows);
        Ok(report)
    }

    /// Whether the recording needs stored values, because the table of dependences is wanted.
    ///
    /// # Errors
    /// Returns an error if there is no such table.
    pub fn needs_values(&self) -> Result<bool> {
        let tables = self.tables()?;
        let is_one = |table: &&Table| table.name == schema::DEPENDENCES.name;
        Ok(tables.iter().any(is_one))
    }

    /// Returns the wanted tables of windows.
    fn tables(&self) -> Result<Vec<&'static Table>> {
        if self.tables.is_empty() {
            return Ok(DYNAMIC.to_vec());
        }
        for name in &self.tables {
            if !DYNAMIC.iter().any(|table| table.name == name) {
                let known = Vec::from_iter(DYNAMIC.iter().map(|table| table.name));
                bail!(
                    "windows have no table {name:?}; they have {}",
                    known.join(", ")
                );
            }
        }
        let all = DYNAMIC.iter().copied();
        let wanted = all.filter(|table| self.tables.iter().any(|name| name == table.name));
        Ok(wanted.collect())
    }
}

/// Writes a part, unless it exists or another process is writing it. Returns whether it wrote the
/// part.
fn part(folder: &Folder, part: Part, write: impl FnOnce(&Path) -> Result<()>) -> Result<bool> {
    let Some(claim) = folder.claim(part)? else {
        return Ok(false);
    };
    match write(&claim.at) {
        Ok(()) => claim.keep()?,
        Err(error) => {
            claim.drop_part();
            return Err(folder.failed(&error));
        }
    }
    Ok(true)
}

/// Writes the selected windows.
fn write_windows(
    whole: &Whole<'_>,
    folder: &Folder,
    (selected, tables): (Range<u64>, &[&'static Table]),
    report: &mut DatasetReport,
) -> Result<()> {
    let (session, windows) = (whole.session, whole.windows);
    let about = estimate(session, windows, &selected, tables)?;
    if about.rows > TOLD {
        session.remark(format!(
            "the windows have about {} rows, which take about {}",
            grouped(about.rows),
            size(about.bytes)
        ));
    }
    let work = Work::Question("writing the tables");
    let progress = session
        .monitor()
        .begin(work, Some(session.path()?.length()));
    let run = Run {
        progress: &*progress,
        ..session.run_from_checkpoints()?
    };
    let log = session.file().log()?;
    let mut walk = Walk::new((session, whole.ids), windows, run, log)?;
    for window in selected {
        let write = |at: &Path| walk.write(window, at, tables, report);
        report.windows += u64::from(part(folder, Part::Window(window), write)?);
    }
    Ok(())
}

/// If the selected windows have more rows than this, their size is announced before they are
/// written.
const TOLD: u64 = 10_000_000;
