//! What branch predictors and caches missed.

mod csv;
mod history;
mod json;
mod text;
mod worst;

use afterimage_analyses::simulate::{MissesBy, MissesRow, Spec, Summary};

pub use self::csv::misses_csv;
pub use self::history::{
    SimulateHistoryHead, SiteHistory, history_csv, history_json, history_text, outcome_text,
};
pub use self::json::{SimulateHead, misses_json};
pub use self::text::misses_text;
pub use self::worst::{SimulateWorstHead, WorstSite, worst_json, worst_text};

/// A simulation, to be shown.
#[derive(Clone, Copy)]
pub struct MissReport<'a> {
    /// What is known of it at once.
    pub summary: &'a Summary,
    /// What the rows are about.
    pub by: MissesBy,
    /// The rows, most misses first.
    pub rows: &'a [MissesRow],
    /// At most so many are shown; all if `None`.
    pub top: Option<u64>,
}

impl<'a> MissReport<'a> {
    fn is_branches(&self) -> bool {
        matches!(self.summary.spec, Spec::Branches(_))
    }

    /// The rows that are shown.
    fn shown(&self) -> &'a [MissesRow] {
        let top = self.top.map_or(usize::MAX, |top| top as usize);
        &self.rows[..self.rows.len().min(top)]
    }
}
