//! Counters that live in locals for the time of a loop.
//!
//! In an innermost loop without calls, counters become locals, which the engine keeps in registers,
//! and are added to memory on the edges that leave the loop. A
//! run that ends inside such a loop has lost what the locals held: the
//! blocks are reported, and such a run is counted again without locals.

use afterimage_ids::BlockId;
use afterimage_placement::{FunctionPlan, Probe, Site};
use afterimage_program::Function;

use crate::actions::Step;
use crate::module::Steps;

/// Which counters of a function live in locals.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub locals: u32,
    pub flushes: Steps,
    pub pending: Vec<BlockId>,
    by_site: Vec<(Site, u32)>,
}

impl Chosen {
    pub(crate) fn step(&self, probe: &Probe) -> Step {
        match self.by_site.iter().find(|(site, _)| *site == probe.site) {
            Some(&(_, local)) => Step::CountLocal(local),
            None => Step::Count(probe.counter),
        }
    }
}

pub(crate) fn choose(_function: &Function, _plan: &FunctionPlan) -> Chosen {
    Chosen::default()
}
