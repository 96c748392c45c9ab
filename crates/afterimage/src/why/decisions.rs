//! Finds the branches that caused an execution.

use std::collections::HashMap;

use afterimage_ids::{FuncId, OpId};
use afterimage_present::WhyBranch;
use afterimage_replay::values::{Controller, Execution};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::led::{is_outside, last_of, led_by};
use crate::explain::Scene;

/// Asks for the branches of the user's own code that caused blocks to be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionsQuery {
    /// The times of the blocks.
    pub times: Vec<u64>,
    /// The maximum number of branches.
    pub most: usize,
}

/// The maximum number of control dependences to follow from a block. A loop that ran often depends
/// on as many executions of its own branch.
const FOLLOWED: usize = 500;

/// The branches found so far.
struct Found<'s, 'v, 'a> {
    scene: &'s Scene<'v, 'a>,
    most: usize,
    /// For each branch that was reached, whether it is in the user's own code.
    known: HashMap<(FuncId, OpId), bool>,
    branches: Vec<WhyBranch>,
}

impl DecisionsQuery {
    /// Returns the nearest branch of each block, and then the further branches of the first block,
    /// the latest first. Follows control dependences back through the activation and its callers.
    /// Each branch is listed once, with the first execution that was reached.
    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<Vec<WhyBranch>> {
        let mut found = Found {
            scene,
            most: self.most,
            known: HashMap::new(),
            branches: Vec::new(),
        };
        let nearest = self.times.iter().map(|&time| (time, 1));
        let further = self.times.first().map(|&first| (first, usize::MAX));
        for (time, left) in nearest.chain(further) {
            match found.follow(time, left) {
                // The branches before the stored values are unknown.
                Err(error) if is_outside(&error) => {}
                done => done?,
            }
        }
        Ok(found.branches)
    }
}

impl Found<'_, '_, '_> {
    /// Adds the branches that decided a block, up to a number of them.
    fn follow(&mut self, mut time: u64, mut left: usize) -> Result<()> {
        let (scene, values) = (self.scene, self.scene.values);
        for _ in 0..FOLLOWED {
            if left == 0 || self.branches.len() >= self.most {
                break;
            }
            let Some(instance) = values.at(time)? else {
                break;
            };
            let execution = Execution {
                number: 0,
                time,
                instance,
                statement: None,
            };
            let deciders = scene.controllers.of_execution(values, &execution)?;
            let decided = match deciders.first() {
                Some(&Controller::Branch { time, .. }) => time,
                Some(&Controller::Call { time: called }) => {
                    time = called;
                    continue;
                }
                Some(Controller::Host | Controller::Throw { .. }) | None => break,
            };
            if let Some(of) = values.at(decided)?
                && let Some(op) = last_of(scene, of, decided)
            {
                let branch = (values.path().nodes()[of.node].function, op);
                let own = match self.known.get(&branch) {
                    Some(&own) => own,
                    None => {
                        let own = !scene.operator(branch.0, op)?.library;
                        self.known.insert(branch, own);
                        if own && let Some((place, value)) = led_by(scene, instance, time)? {
                            let value = value.map_or(String::new(), |value| value.text);
                            self.branches.push(WhyBranch { place, value });
                        }
                        own
                    }
                };
                left -= usize::from(own);
            }
            time = decided;
        }
        Ok(())
    }
}
