//! Reports the misses of branch predictors and caches.

mod csv;
mod history;
mod json;
mod text;
mod worst;

use std::io::Write;

use afterimage_analyses::simulate::{MissesBy, MissesRow, Spec, Summary, Tally};

pub use self::csv::misses_csv;
pub use self::history::{
    SimulateHistoryHead, SiteHistory, history_csv, history_json, history_text, outcome_text,
};
pub use self::json::{SimulateHead, misses_rows};
pub use self::text::misses_text;
pub use self::worst::{SimulateWorstHead, WorstSite, worst_json, worst_text};

use crate::document::JsonLines;
use crate::render::Render;
use crate::steps::StepScene;
use crate::{PresentError, Style};

/// A simulation to show.
#[derive(Clone, Copy)]
pub struct SimulationView<'a> {
    /// Its summary.
    pub summary: &'a Summary,
    /// The kind of rows.
    pub by: MissesBy,
    /// The rows, most misses first.
    pub rows: &'a [MissesRow],
    /// The executions and misses of code that has no rows.
    pub left_out: Tally,
    /// The maximum number of rows. `None` means all.
    pub top: Option<u64>,
}

impl<'a> SimulationView<'a> {
    fn is_branches(&self) -> bool {
        matches!(self.summary.spec, Spec::Branches(_))
    }

    /// Returns the rows to show.
    fn shown(&self) -> &'a [MissesRow] {
        let top = self.top.map_or(usize::MAX, |top| top as usize);
        &self.rows[..self.rows.len().min(top)]
    }
}

/// Simulations, and the misses of each simulation.
pub struct MissesView<'r> {
    /// The program.
    pub scene: StepScene<'r>,
    /// The simulations.
    pub reports: Vec<SimulationView<'r>>,
}

/// Writes a blank line before each report except the first.
fn apart(out: &mut dyn Write, index: usize) -> Result<(), PresentError> {
    if index > 0 {
        writeln!(out)?;
    }
    Ok(())
}

fn more(out: &mut dyn Write, is_more: bool) -> Result<(), PresentError> {
    if is_more {
        writeln!(out, "… and more: see them with --limit N")?;
    }
    Ok(())
}

impl Render for MissesView<'_> {
    const NAME: &'static str = "a simulation";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        for (index, report) in self.reports.iter().enumerate() {
            apart(out, index)?;
            let is_more = misses_text(out, &self.scene, report)?;
            more(out, is_more)?;
            text::left_out(out, &self.scene, report)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let mut reports = self.reports.iter();
        reports.try_for_each(|report| misses_rows(&mut JsonLines(out), &self.scene, report))
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        misses_csv(out, &self.scene, &self.reports)
    }
}

/// The histories of the sites at a place.
pub struct HistoriesView<'r> {
    /// The program.
    pub scene: StepScene<'r>,
    /// The histories.
    pub histories: &'r [SiteHistory<'r>],
    /// The maximum number of lines of text for each history.
    pub limit: u64,
}

impl Render for HistoriesView<'_> {
    const NAME: &'static str = "a history";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        for (index, history) in self.histories.iter().enumerate() {
            apart(out, index)?;
            let is_more = history_text(out, &self.scene, history, self.limit)?;
            more(out, is_more)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let mut histories = self.histories.iter();
        histories.try_for_each(|history| history_json(out, &self.scene, history))
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let mut histories = self.histories.iter().enumerate();
        histories.try_for_each(|(index, one)| history_csv(out, &self.scene, one, index == 0))
    }
}

/// The sites with the most misses in each simulation.
pub struct WorstView<'r> {
    /// The program.
    pub scene: StepScene<'r>,
    /// The simulations, with the sites of each.
    pub worst: Vec<(&'r Summary, Vec<WorstSite<'r>>)>,
}

impl WorstView<'_> {
    fn each(
        &self,
        mut show: impl FnMut(usize, &SimulationView<'_>, &[WorstSite<'_>]) -> Result<(), PresentError>,
    ) -> Result<(), PresentError> {
        for (index, (summary, sites)) in self.worst.iter().enumerate() {
            let report = SimulationView {
                summary,
                by: MissesBy::Instruction,
                rows: &[],
                left_out: Tally::default(),
                top: None,
            };
            show(index, &report, sites)?;
        }
        Ok(())
    }
}

impl Render for WorstView<'_> {
    const NAME: &'static str = "a list of the worst misses";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        self.each(|index, report, sites| {
            apart(out, index)?;
            worst_text(out, &self.scene, report, sites)
        })
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        self.each(|_, report, sites| worst_json(out, &self.scene, report, sites))
    }
}
