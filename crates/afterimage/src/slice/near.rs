//! The lines nearest to an execution, among those of the user's own code that it depends on.

use std::collections::HashMap;

use afterimage_analyses::slices::{self, Place, SliceAbout, SliceAlong};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::objects::Position;
use afterimage_profile::Source;
use afterimage_program::Location;
use afterimage_replay::steps::{OperatorPlace, Operators};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::start::SliceStart;
use crate::explain::Scene;

/// Which lines of the user's own code are nearest to an execution, among those that it depends on?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearQuery {
    /// The execution: `parser.c:42#7`, `@0x1f3#last`.
    pub at: String,
    /// The number of lines that suffices.
    pub enough: usize,
}

/// A line that something depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearLine {
    /// Which.
    pub source: Position,
    /// Its distance: the sum over the dependences on the way, where data dependences are the
    /// shortest.
    pub distance: u32,
}

/// The number of executions to examine.
const EXECUTIONS: usize = 20_000;

impl NearQuery {
    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<Vec<NearLine>> {
        let session = scene.traced;
        let about = SliceAbout::Statement {
            at: self.at.clone(),
        };
        let start = SliceStart::find(scene, &about, SliceAlong::All)?;
        let operators = Operators::new(session.program(), session.bytes(), scene.source());
        let mut origins = HashMap::new();
        let mut failed = None;
        let mut place = |function: FuncId, op: OpId| {
            let name = scene.names.function(function);
            let all = match operators.of(function) {
                Ok(all) => all,
                Err(error) => {
                    failed = Some(error);
                    return Place::Elsewhere;
                }
            };
            let Some(operator) = all.get(op.as_u32() as usize) else {
                return Place::Elsewhere;
            };
            let is_frame = |_: &FuncId| lowers_stack(&all);
            let is_frame = *origins.entry(function).or_insert_with_key(is_frame) == Some(op);
            if is_frame || allocates(name) && !operator.name.starts_with("memory.") {
                return Place::Origin;
            }
            let own = |at: &Location| scene.folded().shows(at.file);
            let around = || scene.folded().around(operator.offset).into_iter().next();
            match operator.position.filter(own).or_else(around) {
                Some(Location { file, line, .. }) => Place::Line((file, line)),
                None => Place::Elsewhere,
            }
        };
        let found = slices::nearest(
            &scene.host,
            session.bytes(),
            &start.criteria,
            &mut place,
            (self.enough, EXECUTIONS),
        )?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let lines = found.into_iter().map(|((file, line), distance)| NearLine {
            source: Position::line(&scene.source().files()[file.0 as usize], line),
            distance,
        });
        Ok(lines.collect())
    }
}

/// The operator that makes room for a function's frame: it takes it from the stack pointer, which
/// compilers keep in a global and lower first.
fn lowers_stack(operators: &[OperatorPlace]) -> Option<OpId> {
    const BEGINNING: usize = 12;
    let begin = &operators[..operators.len().min(BEGINNING)];
    let reads = begin
        .iter()
        .position(|one| one.name.starts_with("global.get"))?;
    let lowers = begin
        .iter()
        .skip(reads)
        .position(|one| one.name.starts_with("i32.sub"))?;
    Some(OpId::from_u32((reads + lowers) as u32))
}

/// Whether a function of C's, C++'s or Rust's library gives room in memory. Its address says
/// nothing about the data in it.
fn allocates(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "dlmalloc",
        "dlcalloc",
        "dlrealloc",
        "dlfree",
        "aligned_alloc",
        "posix_memalign",
        "internal_memalign",
        "dispose_chunk",
        "sbrk",
        "try_realloc_chunk",
        "memalign",
        "dlmemalign",
    ];
    NAMES.contains(&name)
        || name.starts_with("operator new")
        || name.starts_with("__rustc::__r")
        || name.starts_with("__rust_")
}
