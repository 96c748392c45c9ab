//! Lists all values that loads read, grouped by load.

use std::collections::VecDeque;
use std::rc::Rc;

use afterimage_machine::{Code, GlobalBits, Observer};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::ValType;

use super::accesses::{NodeSites, SiteTable};
use super::follow::{Follower, Run};
use super::stream::Plans;
use super::{AccessSite, StepsError, Value};

/// The number of values of one load that are returned together.
const STRETCH: usize = 256;

/// Consecutive values that one load read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedValues {
    /// The load that read the values.
    pub site: AccessSite,
    /// The number of the first execution, from 1.
    pub first: u64,
    /// The values, which all have the load's type. There are 256, or fewer at the end of the run.
    pub values: Vec<Value>,
}

/// Iterates over all values that the loads of a run read, in stretches of one load each.
///
/// The stretches of each load are in order. Full stretches are returned at once. The remaining
/// stretches come at the end, in program order. At most one stretch is in memory for each load.
pub struct LoadedStretches<'a, S: Segments> {
    follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    table: SiteTable,
    collected: Collected,
    ended: bool,
}

#[derive(Default)]
struct Collected {
    sites: Rc<NodeSites>,
    loads: Vec<Load>,
    /// The full stretches.
    full: VecDeque<(usize, u64, Vec<Value>)>,
}

struct Load {
    ty: ValType,
    /// The number of values already returned.
    before: u64,
    values: Vec<Value>,
}

impl Load {
    fn take(&mut self) -> (u64, Vec<Value>) {
        let values = std::mem::take(&mut self.values);
        let first = self.before + 1;
        self.before += values.len() as u64;
        (first, values)
    }
}

impl Observer for Collected {
    const REGISTERS: bool = false;

    #[inline]
    fn loaded(&mut self, inst: usize, bits: GlobalBits) {
        let Some((site, _)) = self.sites.get(inst) else {
            return;
        };
        let load = &mut self.loads[site];
        load.values.push(Value::new(load.ty, bits));
        if load.values.len() == STRETCH {
            let (first, values) = load.take();
            self.full.push_back((site, first, values));
        }
    }
}

impl<'a, S: Segments> LoadedStretches<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates an iterator over the stretches of a run with this log.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn new(run: Run<'a, S>, log: LogReader) -> Result<Self, StepsError<S::Error>> {
        let is_load = |code| matches!(code, Code::Load(_) | Code::LoadVector(_));
        Ok(Self {
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            table: SiteTable::of_all(is_load, run.path.nodes().len()),
            collected: Collected::default(),
            ended: false,
        })
    }

    /// Returns the next stretch, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed further.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and ends when it does"
    )]
    pub fn next(&mut self) -> Result<Option<LoadedValues>, StepsError<S::Error>> {
        loop {
            if let Some((site, first, values)) = self.collected.full.pop_front() {
                return Ok(Some(LoadedValues {
                    site: self.table.sites[site],
                    first,
                    values,
                }));
            }
            if self.ended {
                return Ok(None);
            }
            self.go_on()?;
        }
    }

    /// Executes the next node. At the end of the run, collects the remaining stretches.
    fn go_on(&mut self) -> Result<(), StepsError<S::Error>> {
        let Some(visit) = self.follower.advance()? else {
            self.ended = true;
            let mut left = Vec::new();
            for (site, load) in self.collected.loads.iter_mut().enumerate() {
                let (first, values) = load.take();
                if !values.is_empty() {
                    left.push((site, first, values));
                }
            }
            left.sort_by_key(|&(site, ..)| self.table.sites[site]);
            self.collected.full.extend(left);
            return Ok(());
        };
        let sites = match self.table.known(visit.node) {
            Some(known) => known,
            None => {
                let plan = self.plans.of(visit.node, &self.follower)?;
                let code = &self.follower.machine.codes()[visit.node];
                let sites = self.table.add(visit.node, code, &plan);
                let new = &self.table.types[self.collected.loads.len()..];
                let new = new.iter().map(|ty| Load {
                    ty: ty.unwrap_or(ValType::I32),
                    before: 0,
                    values: Vec::new(),
                });
                self.collected.loads.extend(new);
                sites
            }
        };
        if !sites.any {
            return self.follower.execute(visit, &mut ());
        }
        self.collected.sites = sites;
        self.follower.execute(visit, &mut self.collected)
    }
}
