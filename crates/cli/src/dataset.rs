//! Implements `afterimage export --format parquet`.

use std::path::Path;

use afterimage_dataset::{DatasetQuery, Selected};
use anyhow::{Context, Result, bail};

use crate::arguments::first_given;
use crate::exit::Exit;
use crate::lens::{traced_whole, values};
use crate::output::tell;
use crate::signals::leave_last_words;

/// Options that apply only to tables.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// With parquet, write only these windows, by number from 0, such as 0..8; several processes
    /// may write one folder
    #[arg(long, value_name = "A..B")]
    window: Option<Selected>,
    /// With parquet, give each window N blocks [default: 1048576]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    window_blocks: Option<u64>,
    /// With parquet, write only these tables of windows: calls, steps, values, memory, dependences
    /// [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tables: Vec<String>,
}

impl Arguments {
    /// Refuses these options for other formats.
    pub(crate) fn refuse(&self) -> Result<()> {
        let given = [
            ("--window", self.window.is_some()),
            ("--window-blocks", self.window_blocks.is_some()),
            ("--tables", !self.tables.is_empty()),
        ];
        match first_given(&given) {
            Some(option) => bail!("{option} works only with --format parquet"),
            None => Ok(()),
        }
    }

    /// Writes the tables of a recording.
    pub(crate) fn write(&self, recording: &Path, folder: &Path) -> Result<Exit> {
        let query = DatasetQuery {
            window_blocks: self.window_blocks.unwrap_or(DatasetQuery::WINDOW_BLOCKS),
            windows: self.window.clone(),
            tables: self.tables.clone(),
        };
        let session = traced_whole(recording)?;
        if query.needs_values()? {
            // Ctrl-C keeps the values that have been built so far.
            values(&session)?;
        }
        let shown = folder.display();
        leave_last_words(format!(
            "{shown}: incomplete; the same command writes the rest"
        ));
        let report = query.write(&session, folder);
        let report = report.with_context(|| recording.display().to_string())?;
        tell(format!("{shown}: {report}"));
        Ok(Exit::Success)
    }
}
