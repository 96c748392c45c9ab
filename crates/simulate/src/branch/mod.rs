//! Branch predictors for the direction of conditional branches and the target of indirect branches.
//!
//! Each predictor keeps a global history of recent outcomes, newest first. A conditional branch
//! adds its direction, taken or not taken. An indirect branch adds the parity of its target's
//! number. Returns count as predicted, as if there were a return stack. Unconditional jumps and
//! direct calls count as known.

mod bimodal;
mod counter;
mod gshare;
mod spec;
mod tage;
mod targets;

pub use spec::{PredictorKind, PredictorSpec};
pub use tage::TageSpec;

use self::bimodal::Bimodal;
use self::gshare::Gshare;
use self::tage::Tage;
use self::targets::Targets;

/// A branch predictor. `place` identifies a branch, as its address would in hardware.
#[derive(Clone, Debug)]
pub struct Predictor {
    directions: Directions,
    targets: Targets,
    /// The last 64 outcomes, the newest in the lowest bit.
    history: u64,
}

#[derive(Clone, Debug)]
enum Directions {
    Bimodal(Bimodal),
    Gshare(Gshare),
    Tage(Box<Tage>),
}

impl Predictor {
    /// Creates a predictor that has seen no branch. Counters are 1 (weakly not taken). The tagged
    /// tables, the targets and the history are empty. Time: O(size).
    pub fn new(spec: &PredictorSpec) -> Self {
        // A bimodal predictor has no history, and predicts the last target of an indirect branch.
        let (directions, length) = match spec.kind {
            PredictorKind::Bimodal { bits } => (Directions::Bimodal(Bimodal::new(bits)), 0),
            PredictorKind::Gshare { bits, history } => {
                (Directions::Gshare(Gshare::new(bits, history)), history)
            }
            PredictorKind::Tage(tage) => (Directions::Tage(Box::new(Tage::new(&tage))), 64),
        };
        Self {
            directions,
            targets: Targets::new(spec.targets, length),
            history: 0,
        }
    }

    /// Records a conditional branch and returns whether its direction was predicted correctly.
    #[inline]
    pub fn conditional(&mut self, place: u64, taken: bool) -> bool {
        let history = self.history;
        let predicted = match &mut self.directions {
            Directions::Bimodal(bimodal) => bimodal.next(place, taken),
            Directions::Gshare(gshare) => gshare.next(place, history, taken),
            Directions::Tage(tage) => tage.next(place, taken),
        };
        self.history = history << 1 | u64::from(taken);
        predicted == taken
    }

    /// Records a branch with several targets and returns whether its target was predicted
    /// correctly. `target` is a number that identifies the target.
    #[inline]
    pub fn indirect(&mut self, place: u64, target: u64) -> bool {
        let predicted = self.targets.next(place, self.history, target);
        let parity = target.count_ones() & 1 == 1;
        self.history = self.history << 1 | u64::from(parity);
        if let Directions::Tage(tage) = &mut self.directions {
            tage.remember(parity);
        }
        predicted
    }
}
