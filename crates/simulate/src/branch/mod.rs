//! Branch predictors: of the direction of conditional branches, and of the target of indirect ones.
//!
//! All keep a global history of the last branches' outcomes, newest first. A conditional branch puts in whether it was taken, an indirect one
//! the parity of its target's number. Returns are taken to be predicted (a return stack), and unconditional jumps and direct calls to be known.

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

/// A branch predictor. `place` is the number of a branch, as its address would be.
#[derive(Clone, Debug)]
pub struct Predictor {
    directions: Directions,
    targets: Targets,
    /// The last 64 outcomes, the newest lowest.
    history: u64,
}

#[derive(Clone, Debug)]
enum Directions {
    Bimodal(Bimodal),
    Gshare(Gshare),
    Tage(Box<Tage>),
}

impl Predictor {
    /// Before the first branch: counters are 1 (weakly not taken), tagged tables, targets and the history empty. O(its size).
    pub fn new(spec: &PredictorSpec) -> Self {
        // A bimodal predictor has no history: of an indirect branch it knows the last target.
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

    /// A conditional branch is executed. Whether its direction was predicted.
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

    /// A branch is executed that goes to one of several targets, by a number that tells them apart. Whether its target was predicted.
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
