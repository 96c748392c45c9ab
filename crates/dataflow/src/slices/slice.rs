//! Computes slices with one of the three approaches.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_wpp::twpp::Series;

use super::program::{Kind, Slicing, Subject, Variable};
use super::{nodes, path};
use crate::times::Times;

/// Agrawal and Horgan's approaches, in the order of the paper. Each approach's slice contains the
/// slice of the next approach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Approach {
    /// Approach 1, with nodes that were executed.
    Nodes,
    /// Approach 2, with dependences that were exercised.
    Edges,
    /// Approach 3, with dependences between executions.
    Instances,
}

/// The starting point of a slice.
#[derive(Clone, Debug)]
pub struct Criterion {
    /// The node with which the slice starts.
    pub node: usize,
    /// The time at which the node executes. [`Approach::Nodes`] ignores it.
    pub time: u64,
    /// The variables from which to slice, at the moment right before this execution.
    pub variables: Vec<Variable>,
}

/// The statements on which a criterion depends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The nodes in the slice, including the criterion's node.
    pub nodes: BTreeSet<usize>,
    /// With [`Approach::Instances`], the executions in the slice by node; empty with the other
    /// approaches.
    pub instances: BTreeMap<usize, Series>,
    /// The number of queries raised.
    pub queries: u64,
}

/// The queries of one step, which form a row of the paper's Figure 11.
#[derive(Debug, Default)]
pub struct Row {
    /// The new queries, each with its timestamps, or with `None` for the paper's `*`.
    pub queries: Vec<(Option<Times>, usize, Subject)>,
    /// Queries that were raised before. They are not followed again.
    pub solved: Vec<(Option<Times>, usize, Subject)>,
    /// The statements added to the slice, each with the reason.
    pub added: Vec<(usize, Kind)>,
}

/// Computes the slice of a criterion.
///
/// [`Approach::Nodes`] takes O(edges × variables and control dependences). In the worst case, the
/// other approaches take O(steps × subjects × log series). They take less time if series stay
/// whole.
///
/// # Panics
/// Panics if the criterion's node does not execute at its time, unless the approach is
/// [`Approach::Nodes`].
pub fn slice(slicing: &Slicing<'_>, criterion: &Criterion, approach: Approach) -> Slice {
    slice_observed(slicing, criterion, approach, None)
}

/// Like [`slice()`], but reports the queries row by row.
///
/// # Panics
/// Panics if the criterion's node does not execute at its time, unless the approach is
/// [`Approach::Nodes`].
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
