//! Feeds the machine's actions to models.

use std::rc::Rc;

use afterimage_ids::FuncId;
use afterimage_machine::{GlobalBits, NodeCode, Observer, Range};
use afterimage_simulate::{Caches, Missed, Predictor, Recorder, Spec, Traffic};

use super::plan::{NodePlan, Way};

pub(super) struct Model {
    pub spec: Spec,
    engine: Engine,
    pub recorder: Recorder,
}

enum Engine {
    Branches(Box<Predictor>),
    Caches(Box<Caches>),
}

/// The number of bits reserved for an address. Higher bits distinguish the memories.
const MEMORY: u32 = 48;

impl Model {
    pub fn new(spec: Spec) -> Self {
        Self {
            engine: match &spec {
                Spec::Branches(predictor) => Engine::Branches(Box::new(Predictor::new(predictor))),
                Spec::Caches(caches) => Engine::Caches(Box::new(Caches::new(caches))),
            },
            recorder: Recorder::new(spec.is_two()),
            spec,
        }
    }

    pub fn traffic(&self) -> Traffic {
        match &self.engine {
            Engine::Branches(_) => Traffic::default(),
            Engine::Caches(caches) => caches.traffic(),
        }
    }
}

/// Watches the machine and feeds the models.
pub(super) struct Watch {
    pub models: Vec<Model>,
    pub plan: Rc<NodePlan>,
    /// Whether the node was executed to its end, so that its call through a table was made.
    calls: bool,
}

impl Watch {
    pub fn new(models: Vec<Model>) -> Self {
        Self {
            models,
            plan: Rc::default(),
            calls: false,
        }
    }

    /// Makes room for these numbers of sites.
    pub fn expect(&mut self, branches: usize, accesses: usize) {
        for model in &mut self.models {
            model.recorder.expect(match model.engine {
                Engine::Branches(_) => branches,
                Engine::Caches(_) => accesses,
            });
        }
    }

    /// Simulates an access that reads or writes these ranges, in this order.
    #[inline]
    fn access(&mut self, inst: usize, ranges: &[(Range, bool)]) {
        let Some(site) = self
            .plan
            .accesses
            .get(inst)
            .copied()
            .unwrap_or(0)
            .checked_sub(1)
        else {
            return;
        };
        for model in &mut self.models {
            let Engine::Caches(caches) = &mut model.engine else {
                continue;
            };
            let mut missed = Missed::default();
            for &(range, write) in ranges {
                let address = u64::from(range.memory) << MEMORY | range.address;
                let found = caches.access(address, range.length, write);
                missed.first += found.first;
                missed.last += found.last;
            }
            let recorder = &mut model.recorder;
            recorder.record(site as usize, missed.first > 0, missed.last > 0);
        }
    }

    fn predict(&mut self, site: u32, next: impl Fn(&mut Predictor) -> bool) {
        for model in &mut self.models {
            if let Engine::Branches(predictor) = &mut model.engine {
                let right = next(predictor);
                model.recorder.record(site as usize, !right, false);
            }
        }
    }

    /// Simulates the branches among the node's first `executed` instructions.
    #[inline]
    fn branches(&mut self, executed: usize) {
        let plan = Rc::clone(&self.plan);
        let reached = plan
            .branches
            .iter()
            .take_while(|branch| branch.inst < executed);
        for branch in reached {
            let place = branch.place;
            match branch.way {
                Way::Taken(taken) => {
                    self.predict(branch.site, |predictor| predictor.conditional(place, taken));
                }
                Way::Target(target) => {
                    self.predict(branch.site, |predictor| predictor.indirect(place, target));
                }
            }
        }
    }
}

impl Observer for Watch {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        self.access(inst, &[(range, false)]);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        self.access(inst, &[(range, true)]);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.access(inst, &[(from, false), (to, true)]);
    }

    #[inline]
    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        self.branches(usize::MAX);
        self.calls = self.plan.call.is_some();
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        self.branches(executed);
    }

    #[inline]
    fn called(&mut self, function: FuncId, _: &[GlobalBits]) {
        if std::mem::take(&mut self.calls)
            && let Some((site, place)) = self.plan.call
        {
            let target = u64::from(function.as_u32());
            self.predict(site, |predictor| predictor.indirect(place, target));
        }
    }
}
