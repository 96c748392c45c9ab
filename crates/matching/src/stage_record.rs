//! Reports the evidence for each candidate, for fitting weights.

use crate::features::Feature;

/// A candidate of a statement.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The statement of the first version.
    pub a: u32,
    /// The evidence for or against the candidate. Each occurrence of a feature counts, multiplied
    /// by the feature's weight.
    pub features: Vec<(Feature, f32)>,
}

/// The evidence about a statement of the second version at the end of a stage.
#[derive(Clone, Debug)]
pub struct StageRecord {
    /// The statement.
    pub b: u32,
    /// The column of the weights that applies.
    pub column: usize,
    /// The statement's candidates, at least two.
    pub candidates: Vec<Candidate>,
}
