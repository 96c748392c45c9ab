//! Computes slices over the dependences that the code allows.

mod flow;
mod index;

use std::collections::BTreeSet;

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};
use afterimage_machine::NodeCode;
use afterimage_program::Program;
use afterimage_wpp::Node;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::criterion::Follows;
use crate::domain::Why;
use crate::exercised::Operator;
use crate::reach::Reach;
use index::Executed;

/// A vertex of the graph of potential dependences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Vertex {
    Operator(Operator),
    /// The value of a function's variable when control reaches a block.
    Variable(FuncId, BlockId, u32),
    /// The execution of a block.
    Control(FuncId, BlockId),
    /// The call to a function.
    Entry(FuncId),
    /// An argument that the function's callers pass.
    Parameter(FuncId, u32),
    /// The results of a function.
    Returned(FuncId),
    Memory(u32),
    Global(u32),
    Table(u32),
    /// The size of a memory.
    Size(u32),
    /// The fact that an exception was thrown.
    Threw,
    /// The thrown values.
    Thrown,
}

/// Slices over the dependences that the code allows between executed statements. Such a slice is
/// the executed part of the static slice (Agrawal and Horgan 1990, section 3.1, the first
/// approach).
///
/// Variables are treated flow-sensitively. A value may come only from a write that can reach the
/// read, along a route that control may take between the executed paths. Memory is treated
/// flow-insensitively. A loaded value may come from every store to the same memory, and from every
/// call to the host. Every dependence in the run is also a potential dependence, so these slices
/// contain the slices over [exercised](crate::Exercised) dependences.
pub struct Potential<'a> {
    executed: Executed<'a>,
}

impl<'a> Potential<'a> {
    /// Indexes a run that executed these nodes. O(n log n) in the nodes' instructions.
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        codes: impl IntoIterator<Item = (NodeId, NodeCode)>,
    ) -> Self {
        Self {
            executed: Executed::new(program, nodes, codes),
        }
    }

    /// Returns the operators on which the given operators may depend, over at most as many
    /// dependences between operators as `reach` allows. Time is linear in the dependences that are
    /// followed.
    pub fn backward(
        &mut self,
        from: &[Operator],
        follows: Follows,
        reach: Reach,
    ) -> BTreeSet<Operator> {
        let from = self.known(from);
        let mut all = Vec::new();
        levels(from, reach, |vertex, next| {
            all.clear();
            self.executed.dependences(vertex, &mut all);
            let followed = all.iter().filter(|(why, _)| is_followed(*why, follows));
            next.extend(followed.map(|(_, on)| *on));
        })
    }

    fn known(&self, operators: &[Operator]) -> Vec<Vertex> {
        let known = operators.iter().filter(|one| self.executed.has(**one));
        known.map(|&operator| Vertex::Operator(operator)).collect()
    }

    /// Returns the operators that may depend on the given operators, over at most as many
    /// dependences as `reach` allows. The backward slice of each result contains one of the given
    /// operators. Time is linear in all dependences.
    pub fn forward(
        &mut self,
        from: &[Operator],
        follows: Follows,
        reach: Reach,
    ) -> BTreeSet<Operator> {
        let mut users: FxHashMap<Vertex, Vec<Vertex>> = FxHashMap::default();
        let mut seen = FxHashSet::default();
        let mut work = Vec::from_iter(self.executed.operators().map(Vertex::Operator));
        seen.extend(work.iter().copied());
        let mut next = Vec::new();
        while let Some(user) = work.pop() {
            next.clear();
            self.executed.dependences(user, &mut next);
            for &(why, on) in &next {
                if is_followed(why, follows) {
                    users.entry(on).or_default().push(user);
                    if seen.insert(on) {
                        work.push(on);
                    }
                }
            }
        }
        levels(self.known(from), reach, |vertex, next| {
            next.extend(users.get(&vertex).into_iter().flatten());
        })
    }
}

/// Returns the operators that are reachable over at most this many dependences between operators.
/// Other vertices on the way do not count.
fn levels(
    from: Vec<Vertex>,
    mut reach: Reach,
    mut next_of: impl FnMut(Vertex, &mut Vec<Vertex>),
) -> BTreeSet<Operator> {
    let mut seen = FxHashSet::from_iter(from.iter().copied());
    let (mut level, mut work, mut next) = (from, Vec::new(), Vec::new());
    while reach.is_some() && !level.is_empty() {
        reach = reach.next();
        work.append(&mut level);
        while let Some(vertex) = work.pop() {
            next.clear();
            next_of(vertex, &mut next);
            for &vertex in &next {
                let to = match vertex {
                    Vertex::Operator(_) if reach.is_none() => continue,
                    Vertex::Operator(_) => &mut level,
                    _ => &mut work,
                };
                if seen.insert(vertex) {
                    to.push(vertex);
                }
            }
        }
    }
    seen.into_iter().filter_map(operator).collect()
}

fn operator(vertex: Vertex) -> Option<Operator> {
    match vertex {
        Vertex::Operator(operator) => Some(operator),
        _ => None,
    }
}

fn is_followed(why: Why, follows: Follows) -> bool {
    match why {
        Why::Data => follows.data,
        Why::Address => follows.data && follows.addresses,
        Why::Control => follows.control,
        Why::Moved => follows.data && follows.control,
    }
}
