//! What branch predictors and caches missed.

mod csv;
mod json;
mod text;

use afterimage_query::simulate::{MissesBy, MissesRow, Summary};

pub use self::csv::misses_csv;
pub use self::json::misses_json;
pub use self::text::misses_text;

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
    /// The rows that are shown.
    fn shown(&self) -> &'a [MissesRow] {
        let top = self.top.map_or(usize::MAX, |top| top as usize);
        &self.rows[..self.rows.len().min(top)]
    }
}
