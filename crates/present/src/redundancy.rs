//! Reports redundant loads and expressions.

mod csv;
mod json;
mod text;
mod ways;

use std::cmp::Reverse;

use afterimage_analyses::dataflow::PathRedundancy;
use afterimage_analyses::redundancy::{OperatorRedundancy, Redundancy};
use afterimage_ids::{FuncId, NodeId, PrimaryMap};
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

/// The kind of operators that are checked for redundancy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedundancyOf {
    /// Loads.
    #[default]
    Loads,
    /// Pure operators.
    Expressions,
}

/// The program, and the paths that the run took.
#[derive(Clone, Copy)]
pub struct RedundancyScene<'a> {
    /// The operators.
    pub steps: StepScene<'a>,
    /// The program.
    pub program: &'a Program,
    /// The Ball–Larus paths.
    pub paths: &'a PrimaryMap<NodeId, Node>,
}

/// The operators to show, the most redundant first, and the totals of all checked operators.
#[derive(Clone, Debug, Default)]
pub struct RedundancyReport {
    /// The kind of operators that were checked.
    pub of: RedundancyOf,
    /// The function, if the question was about only one.
    pub function: Option<String>,
    /// The operators.
    pub operators: Vec<OperatorRedundancy>,
    /// The number of operators that were checked.
    pub all: u64,
    /// The number of checked operators that are left out because they belong to other code.
    pub left_out: u64,
    /// For the shown operators in program order, the results computed from the path alone.
    pub by_path: Vec<PathRedundancy>,
    /// The maximum number of routes through paths to list for each operator.
    pub ways: usize,
    /// The total number of executions of the checked operators.
    pub executions: u64,
    /// The number of redundant executions.
    pub redundant: u64,
    /// The number of executions that were redundant within their activations.
    pub within: u64,
    /// The number of instructions that the run executed.
    pub instructions: u64,
}

impl RedundancyReport {
    /// Creates a report with the `top` operators that have the most redundant executions.
    pub fn new(
        of: RedundancyOf,
        redundancy: Redundancy,
        function: Option<String>,
        top: Option<u64>,
        shows: impl Fn(FuncId) -> bool,
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
        operators.retain(|operator| shows(operator.site.function));
        report.left_out = report.all - operators.len() as u64;
        operators.sort_by_key(|operator| Reverse((operator.redundant, operator.within)));
        operators.truncate(top.map_or(usize::MAX, |top| top as usize));
        report.operators = operators;
        report
    }

    /// Returns an operator's result that was computed from the path alone.
    fn path(&self, operator: &OperatorRedundancy) -> Option<&PathRedundancy> {
        let found = self
            .by_path
            .binary_search_by_key(&operator.site, |p| p.site);
        found.ok().map(|found| &self.by_path[found])
    }
}

/// Redundant operators, with their program.
pub struct RedundancyView<'r> {
    /// The program.
    pub scene: RedundancyScene<'r>,
    /// The report.
    pub report: RedundancyReport,
}

impl RedundancyView<'_> {
    /// Returns the document for programs.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn document(&self) -> Result<RedundancyDocument, PresentError> {
        redundancy_document(&self.scene, &self.report)
    }
}

impl Render for RedundancyView<'_> {
    const NAME: &'static str = "a redundancy report";

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
