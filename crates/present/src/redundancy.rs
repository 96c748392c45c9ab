//! Redundant loads and expressions.

mod csv;
mod json;
mod text;
mod ways;

use std::cmp::Reverse;

use afterimage_analyses::dataflow::PathRedundancy;
use afterimage_analyses::redundancy::{OperatorRedundancy, Redundancy};
use afterimage_ids::{NodeId, PrimaryMap};
use afterimage_program::Program;
use afterimage_wpp::Node;

pub use self::csv::redundancy_csv;
pub use self::json::RedundancyDocument;
use self::json::redundancy_document;
pub use self::text::redundancy_text;
use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::document::begin;
use crate::render::Render;
use crate::steps::StepScene;
use crate::{PresentError, Style};

/// What was asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedundancyOf {
    /// Loads.
    #[default]
    Loads,
    /// Operators that only compute.
    Expressions,
}

/// The program that operators are of, and the paths that it took.
#[derive(Clone, Copy)]
pub struct RedundancyScene<'a> {
    /// The operators.
    pub steps: StepScene<'a>,
    /// The program.
    pub program: &'a Program,
    /// The Ball–Larus paths.
    pub paths: &'a PrimaryMap<NodeId, Node>,
}

/// The operators that are shown, hottest first, and sums over those of all that were asked about.
#[derive(Clone, Debug, Default)]
pub struct RedundancyReport {
    /// Which were asked about.
    pub of: RedundancyOf,
    /// Of which function, if only of one.
    pub function: Option<String>,
    /// The operators.
    pub operators: Vec<OperatorRedundancy>,
    /// How many there are.
    pub all: u64,
    /// What the path alone tells of the operators that are shown, in the order of the program.
    pub by_path: Vec<PathRedundancy>,
    /// Of how many ways through paths of each operator is told.
    pub ways: usize,
    /// How often all of them were executed.
    pub executions: u64,
    /// How often they were redundant.
    pub redundant: u64,
    /// How often within their activations.
    pub within: u64,
    /// How many instructions the run executed.
    pub instructions: u64,
}

impl RedundancyReport {
    /// The operators with the most redundant executions first, so many of them.
    pub fn new(
        of: RedundancyOf,
        redundancy: Redundancy,
        function: Option<String>,
        top: Option<u64>,
    ) -> Self {
        let mut operators = redundancy.operators;
        let sum = |of: fn(&OperatorRedundancy) -> u64| operators.iter().map(of).sum();
        let mut report = Self {
            of,
            function,
            all: operators.len() as u64,
            executions: sum(|operator| operator.executions),
            redundant: sum(|operator| operator.redundant),
            within: sum(|operator| operator.within),
            instructions: redundancy.instructions,
            ..Self::default()
        };
        operators.sort_by_key(|operator| Reverse((operator.redundant, operator.within)));
        operators.truncate(top.map_or(usize::MAX, |top| top as usize));
        report.operators = operators;
        report
    }

    /// What the path alone tells of an operator.
    fn path(&self, operator: &OperatorRedundancy) -> Option<&PathRedundancy> {
        let found = self
            .by_path
            .binary_search_by_key(&operator.site, |p| p.site);
        found.ok().map(|found| &self.by_path[found])
    }
}

/// Redundant operators, and the program.
pub struct RedundancyView<'r> {
    /// The program.
    pub scene: RedundancyScene<'r>,
    /// What was found.
    pub report: RedundancyReport,
}

impl RedundancyView<'_> {
    /// It, for programs.
    ///
    /// # Errors
    /// If a module cannot be read.
    pub fn document(&self) -> Result<RedundancyDocument, PresentError> {
        redundancy_document(&self.scene, &self.report)
    }
}

impl Render for RedundancyView<'_> {
    const NAME: &'static str = "a report of what is redundant";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        redundancy_text(out, &self.scene, &self.report)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document()?)
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        redundancy_csv(out, &self.scene, &self.report)
    }
}
