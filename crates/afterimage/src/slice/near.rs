//! Finds the lines of the user's own code on which an execution depends, nearest first.

use std::collections::HashMap;

use afterimage_analyses::slices::{self, Nearby, SliceAbout, SliceAlong, Through, Visibility};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::objects::Position;
use afterimage_profile::Source;
use afterimage_program::{FileId, Location};
use afterimage_replay::steps::OperatorPlace;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::start::SliceStart;
use crate::explain::Scene;

/// Asks for the nearest lines of the user's own code on which some executions depend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearQuery {
    /// The executions: `parser.c:42#7`, `@0x1f3#last`. Executions without a slice are skipped,
    /// unless none has a slice.
    pub at: Vec<String>,
    /// The number of lines after which the search ends.
    pub enough: usize,
    /// The number of lines whose nearest executions are named. Naming an execution requires
    /// counting, which takes time.
    pub named: usize,
}

/// A line on which an execution depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearLine {
    /// The position of the line.
    pub source: Position,
    /// The nearest execution of the line, as `@0x1f3#7`. Only for the first
    /// [`named`](NearQuery::named) lines.
    pub at: Option<String>,
    /// The distance of the line: the total length of the dependences in between. Data dependences
    /// are the shortest.
    pub distance: u32,
    /// The kind of the shortest chain of dependences: `values`, `addresses` if the chain contains
    /// an address of a read or write, or `control` if it contains a branch or call.
    pub through: &'static str,
}

/// The lines nearest to some executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearLines {
    /// The lines, the nearest first.
    pub lines: Vec<NearLine>,
    /// Whether there may be further lines, because enough were found or 30,000 executions were
    /// examined.
    pub cut: bool,
}

/// The maximum number of executions to examine.
const EXECUTIONS: usize = 30_000;

impl NearQuery {
    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<NearLines> {
        let session = scene.traced;
        let (mut criteria, mut refused) = (Vec::new(), None);
        for at in &self.at {
            let about = SliceAbout::Statement { at: at.clone() };
            match SliceStart::find(scene, &about, SliceAlong::All) {
                Ok(start) => criteria.extend(start.criteria),
                Err(error) => refused = Some(error),
            }
        }
        if let Some(refused) = refused.filter(|_| criteria.is_empty()) {
            return Err(refused);
        }
        let operators = session.operators();
        let mut origins = HashMap::new();
        let mut failed = None;
        let mut place = |function: FuncId, op: OpId| {
            let name = scene.names.function(function);
            let all = match operators.of(function) {
                Ok(all) => all,
                Err(error) => {
                    failed = Some(error);
                    return Visibility::Elsewhere;
                }
            };
            let Some(operator) = all.get(op.as_u32() as usize) else {
                return Visibility::Elsewhere;
            };
            let is_frame = |_: &FuncId| lowers_stack(&all);
            let is_frame = *origins.entry(function).or_insert_with_key(is_frame) == Some(op);
            if is_frame || allocates(name) && !operator.name.starts_with("memory.") {
                return Visibility::Origin;
            }
            let own = |at: &Location| scene.folded().shows(at.file);
            let around = || scene.folded().around(operator.offset).into_iter().next();
            match operator.position.filter(own).or_else(around) {
                Some(Location { file, line, .. }) => Visibility::Line((file, line)),
                None => Visibility::Elsewhere,
            }
        };
        let found = slices::nearest(
            &scene.host,
            session.bytes(),
            &criteria,
            &mut place,
            (self.enough, EXECUTIONS),
        )?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let described = |(index, one): (usize, Nearby<(FileId, u32)>)| {
            let (file, line) = one.line;
            let at = match index < self.named {
                true => Some(scene.named(one.spot)?),
                false => None,
            };
            Ok(NearLine {
                at,
                source: Position::line(&scene.source().files()[file.0 as usize], line),
                distance: one.distance,
                through: match one.through {
                    Through::Values => "values",
                    Through::Addresses => "addresses",
                    Through::Control => "control",
                },
            })
        };
        let lines = found.lines.into_iter().enumerate().map(described);
        Ok(NearLines {
            lines: lines.collect::<Result<_>>()?,
            cut: found.cut,
        })
    }
}

/// Finds the operator that makes room for a function's frame by lowering the stack pointer, which
/// compilers keep in a global.
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

/// Whether a function of the C, C++ or Rust library allocates or frees memory. The data at an
/// allocated address do not depend on the address.
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
