//! What speaks for each candidate, for whoever fits weights to it.

use crate::features::Feature;

/// A candidate of a statement.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The statement of the first version.
    pub a: u32,
    /// What speaks for or against it. Each counts as often as it is there, times its weight.
    pub features: Vec<(Feature, f32)>,
}

/// What was known of a statement of the second version at the end of a stage.
#[derive(Clone, Debug)]
pub struct StageRecord {
    /// The statement.
    pub b: u32,
    /// By which column of the weights it is weighed.
    pub column: usize,
    /// Its candidates, at least two.
    pub candidates: Vec<Candidate>,
}
