//! Options that leave out parts of a path.

use afterimage::files::Loaded;
use afterimage::{Filters, Session};
use afterimage_record::PathFilter;
use anyhow::Result;

use crate::arguments::first_given;
use crate::progress::Terminal;

/// Selects the part of a path, or of the values, to keep.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(
    next_help_heading = "Filters, which leave out parts of the path or the values (times do not change)"
)]
pub(crate) struct FilterArguments {
    /// Keep only this function; may be repeated
    #[arg(long, value_name = "FUNCTION")]
    include: Vec<String>,
    /// Leave out this function; may be repeated
    #[arg(long, value_name = "FUNCTION")]
    exclude: Vec<String>,
    /// Keep only the part between two moments, both included
    #[arg(long, value_name = "FIRST..LAST", allow_hyphen_values = true)]
    window: Option<String>,
    /// Keep nothing before the K-th call to a function, arrival at a line, or execution of an
    /// instruction
    #[arg(long, value_name = "PLACE#K")]
    start: Option<String>,
    /// Keep nothing after the K-th call to a function, arrival at a line, or execution of an
    /// instruction
    #[arg(long, value_name = "PLACE#K")]
    stop: Option<String>,
}

impl FilterArguments {
    /// Returns the first option that was given, or `None`.
    pub(crate) fn given(&self) -> Option<&'static str> {
        first_given(&[
            ("--include", !self.include.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--window", self.window.is_some()),
            ("--start", self.start.is_some()),
            ("--stop", self.stop.is_some()),
        ])
    }

    /// Returns the filters.
    pub(crate) fn filters(&self) -> Filters {
        Filters {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            window: self.window.clone(),
            start: self.start.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Checks the filter of a path before the program runs.
    pub(crate) fn check(&self, loaded: &Loaded) -> Result<()> {
        self.of(loaded, || Ok(None)).map(drop)
    }

    /// Returns the filter of a path.
    pub(crate) fn path(&self, session: &Session) -> Result<PathFilter> {
        let length = || session.length().map(Some);
        self.of(&Loaded::of(session), length)
    }

    fn of(&self, loaded: &Loaded, length: impl Fn() -> Result<Option<u64>>) -> Result<PathFilter> {
        if self.given().is_none() {
            return Ok(PathFilter::default());
        }
        let source = loaded.source_map(&Terminal);
        let names = loaded.names(&source);
        self.filters().path(&names, &source, loaded, length)
    }
}
