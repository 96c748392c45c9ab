//! Adds path probes and their globals: an accumulator, and the position of the next full word.

use afterimage_ids::{EntityRef, FuncId};
pub(crate) use afterimage_paths::Step as PathStep;
use afterimage_paths::witness::WitnessPlan;
use afterimage_paths::{PathPlan, Spot};
use afterimage_placement::Site;
use afterimage_program::{Function, Program};
use wasm_encoder::{ConstExpr, Encode, GlobalType, ValType};

use crate::RewriteError;
use crate::actions::{Actions, Step};

/// The method by which a path is recorded.
#[derive(Clone, Copy, Debug)]
pub enum TracePlan<'a> {
    /// The path is recorded as path numbers.
    Paths(&'a PathPlan),
    /// The path is recorded as witnesses.
    Witnesses(&'a WitnessPlan),
}

impl<'a> TracePlan<'a> {
    fn steps(self, i: usize) -> &'a [(Spot, PathStep)] {
        match self {
            TracePlan::Paths(plan) => plan.steps(i),
            TracePlan::Witnesses(plan) => plan.steps(i),
        }
    }
}

/// The probes that write a path.
///
/// Full words go into a ring of two halves in the probes' memory. No code tests whether a half is
/// full. Instead, the host protects the beginning of the half that it is reading. The guest's first
/// store there faults, and resumes when the host is done. A call in the code would cost the
/// surrounding loops registers, even if it were never made.
#[derive(Clone, Copy, Debug)]
pub struct PathProbes<'a> {
    /// The words to write, and their places.
    pub plan: TracePlan<'a>,
    /// A function that keeps nothing in a local, because the run ends inside it and the local would
    /// be lost. Functions with hinges are treated in the same way.
    pub in_memory: Option<FuncId>,
    /// The number of words in each half of the ring. It is a power of two, at least
    /// [`SMALLEST_HALF`].
    pub half: u32,
}

/// The minimum number of words in a half of the ring. They fill one page of a memory, which the
/// host can protect on every system.
pub const SMALLEST_HALF: u32 = 8192;
/// The maximum number of words in a half of the ring. The size of the ring in bytes must fit in an
/// `i32`.
pub(crate) const LARGEST_HALF: u32 = 1 << 26;

/// The name of the global that contains the bits not yet in a word of the ring. It is an `i64`, and
/// 1 if there are no such bits.
pub const PENDING_EXPORT: &str = "afterimage.pending";
/// The name of the global that contains the position of the next word. It is an `i32`, in bytes
/// from the beginning of the ring.
pub const CURSOR_EXPORT: &str = "afterimage.cursor";

pub(crate) const EXPORTS: [&str; 2] = [PENDING_EXPORT, CURSOR_EXPORT];

/// The indices of the globals added to the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathPlaces {
    /// The global that contains the bits not yet in a word.
    pub pending: u32,
    /// The global that contains the position of the next word.
    pub cursor: u32,
}

impl PathPlaces {
    pub(crate) fn new(program: &Program) -> Self {
        let pending = program.globals.len() as u32;
        Self {
            pending,
            cursor: pending + 1,
        }
    }

    /// Returns the names and indices of the globals that the host needs.
    pub(crate) fn exports(&self) -> [(&'static str, u32); 2] {
        [(PENDING_EXPORT, self.pending), (CURSOR_EXPORT, self.cursor)]
    }
}

impl PathProbes<'_> {
    pub(crate) fn check(&self) -> Result<(), RewriteError> {
        let sizes = SMALLEST_HALF..=LARGEST_HALF;
        if self.half.is_power_of_two() && sizes.contains(&self.half) {
            Ok(())
        } else {
            Err(RewriteError::HalfSize(self.half))
        }
    }
}

/// Appends the globals, and returns their number.
pub(crate) fn globals(out: &mut Vec<u8>) -> u32 {
    for (val_type, value) in [
        (ValType::I64, ConstExpr::i64_const(1)),
        (ValType::I32, ConstExpr::i32_const(0)),
    ] {
        GlobalType {
            val_type,
            mutable: true,
            shared: false,
        }
        .encode(out);
        value.encode(out);
    }
    2
}

/// Adds the probes of the `i`-th defined function, and returns the number of probes.
pub(crate) fn add(
    plan: TracePlan<'_>,
    i: usize,
    function: &Function,
    actions: &mut Actions,
) -> Result<u64, RewriteError> {
    let cfg = &function.cfg;
    let steps = plan.steps(i);
    for &(spot, step) in steps {
        let step = Step::Path(step);
        let found = match spot {
            Spot::Start(block) => actions.add(cfg, Site::Block(block), step),
            Spot::Edge(edge) => actions.add(cfg, Site::Edge(edge), step),
            Spot::End(block) => actions.add_end(cfg, block, step),
        };
        if !found {
            return Err(RewriteError::NoSuchSite {
                function: function.id.index() as u32,
                site: format!("{spot:?}"),
            });
        }
    }
    Ok(steps.len() as u64)
}
