//! Writes redundancy reports for programs.

use schemars::JsonSchema;
use serde::Serialize;

use super::ways::{Way, ways_of};
use super::{RedundancyOf, RedundancyReport, RedundancyScene};
use crate::PresentError;
use crate::addresses::Shown;
use crate::document::objects::Instruction;
use crate::document::{Document, NoRows};

/// Loads that read a value that was already available. With `--expressions`, operators that
/// recomputed an earlier result.
///
/// A load is redundant if an earlier load or store covered all bytes that it read, and none of
/// these bytes was written in the meantime. An expression is redundant if its operands had the same
/// values when it was last computed in the same call. Its source is the operator that computed it
/// at that time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RedundancyDocument {
    /// The number of distinct loads that were executed. With `--function`, only loads of this
    /// function count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<u64>,
    /// The number of distinct pure operators that were executed. With `--function`, only operators
    /// of this function count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expressions: Option<u64>,
    /// The number of executions.
    pub executions: u64,
    /// The number of redundant executions.
    pub redundant: u64,
    /// The number of executions for which the value became available during the load's own call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_call: Option<u64>,
    /// The number of statements executed in the whole run, without moves and constants.
    pub instructions: u64,
    /// The operators, in descending order of redundant executions.
    pub entries: Vec<RedundantOperator>,
}

impl Document for RedundancyDocument {
    const NAME: &'static str = "redundancy";
    const COMMAND: &'static str = "redundancy";
    type Row = NoRows;
}

/// A load or a pure operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RedundantOperator {
    /// The operator.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The number of executions.
    pub executions: u64,
    /// The number of redundant executions.
    pub redundant: u64,
    /// The number of executions for which the value became available during the load's own call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_call: Option<u64>,
    /// The result computed from the path alone, for the first 20 operators or the number that
    /// `--limit` gives. Absent with `--exact-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_path: Option<RedundancyByPath>,
    /// The latest sources of the value.
    pub sources: Vec<RedundancySource>,
    /// The number of routes, with `--paths`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_ways: Option<usize>,
    /// The N most frequent routes of the value, with `--paths N`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ways: Option<Vec<Way>>,
}

/// The result computed from the path alone, without addresses. It counts only executions that
/// `same_call` also counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RedundancyByPath {
    /// The number of redundant executions.
    pub redundant: u64,
    /// The number of queries that the analysis raised.
    pub queries: u64,
    /// The sources of the value.
    pub sources: Vec<RedundancyPathSource>,
}

/// A source of a value according to the path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RedundancyPathSource {
    /// The source.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The number of times it was the source.
    pub times: u64,
}

/// A source of an available value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RedundancySource {
    /// The source.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// Whether it is a store.
    pub store: bool,
    /// The number of times it was the source.
    pub times: u64,
}

/// Returns the document.
///
/// # Errors
/// Returns an error if the module does not match the program.
pub(crate) fn redundancy_document(
    scene: &RedundancyScene<'_>,
    report: &RedundancyReport,
) -> Result<RedundancyDocument, PresentError> {
    let steps = &scene.steps;
    let of_loads = report.of == RedundancyOf::Loads;
    let mut entries = Vec::new();
    for operator in &report.operators {
        let by_path = report.path(operator).map(|by_path| {
            let sources = by_path.sources.iter().map(|&(site, times)| {
                let instruction = Shown::at(steps, site)?;
                Ok(RedundancyPathSource { instruction, times })
            });
            Ok::<_, PresentError>(RedundancyByPath {
                redundant: by_path.redundant,
                queries: by_path.queries,
                sources: sources.collect::<Result<_, PresentError>>()?,
            })
        });
        let sources = operator.sources.iter().map(|source| {
            Ok(RedundancySource {
                instruction: Shown::at(steps, source.site)?,
                store: source.is_store,
                times: source.times,
            })
        });
        let ways = (report.ways > 0).then(|| ways_of(scene, operator, report.ways));
        entries.push(RedundantOperator {
            instruction: Shown::at(steps, operator.site)?,
            executions: operator.executions,
            redundant: operator.redundant,
            same_call: of_loads.then_some(operator.within),
            by_path: by_path.transpose()?,
            sources: sources.collect::<Result<_, PresentError>>()?,
            all_ways: (report.ways > 0).then_some(operator.ways.len()),
            ways: ways.transpose()?,
        });
    }
    Ok(RedundancyDocument {
        loads: of_loads.then_some(report.all),
        expressions: (!of_loads).then_some(report.all),
        executions: report.executions,
        redundant: report.redundant,
        same_call: of_loads.then_some(report.within),
        instructions: report.instructions,
        entries,
    })
}
