//! Slices.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_wpp::twpp::Series;

use super::program::{Kind, Slicing, Subject, Variable};
use super::{nodes, path};
use crate::times::Times;

/// Agrawal and Horgan's approaches, in the order of the paper: each slice has what the next one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Approach {
    /// 1: nodes that were executed.
    Nodes,
    /// 2: dependences that were exercised.
    Edges,
    /// 3: dependences between executions.
    Instances,
}

/// What a slice is of.
#[derive(Clone, Debug)]
pub struct Criterion {
    /// The node.
    pub node: usize,
    /// Its execution: when. [`Approach::Nodes`] does not look at it.
    pub time: u64,
    /// The variables whose values are asked about, as they are right before it.
    pub variables: Vec<Variable>,
}

/// A slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The nodes in it, that of the criterion included.
    pub nodes: BTreeSet<usize>,
    /// Of [`Approach::Instances`], the executions in it.
    pub instances: BTreeMap<usize, Series>,
    /// How many queries were raised.
    pub queries: u64,
}

/// The queries that are looked at at the same time: a row of the paper's Figure 11.
#[derive(Debug, Default)]
pub struct Row {
    /// Each with its timestamps; `None` stands for the paper's `*`.
    pub queries: Vec<(Option<Times>, usize, Subject)>,
    /// Queries that were raised before: they are not followed again.
    pub solved: Vec<(Option<Times>, usize, Subject)>,
    /// What was added to the slice, and how.
    pub added: Vec<(usize, Kind)>,
}

/// The slice of a criterion.
///
/// [`Approach::Nodes`] takes O(edges × variables and control dependences); the others O(steps × those that are looked for, log series) in the worst
/// case, and less where series stay whole.
///
/// # Panics
/// If the criterion's node does not execute then.
pub fn slice(slicing: &Slicing<'_>, criterion: &Criterion, approach: Approach) -> Slice {
    slice_observed(slicing, criterion, approach, None)
}

/// As [`slice()`], telling of the queries row by row.
///
/// # Panics
/// If the criterion's node does not execute then.
pub fn slice_observed(
    slicing: &Slicing<'_>,
    criterion: &Criterion,
    approach: Approach,
    observe: Option<&mut dyn FnMut(Row)>,
) -> Slice {
    match approach {
        Approach::Nodes => nodes::slice(slicing, criterion, observe),
        Approach::Edges => path::slice(slicing, criterion, false, observe),
        Approach::Instances => path::slice(slicing, criterion, true, observe),
    }
}
