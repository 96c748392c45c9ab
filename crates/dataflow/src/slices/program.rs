//! Defines the input of slicing, that is, a path and its statements.

use rustc_hash::FxHashMap;

use crate::graph::TimestampedGraph;

/// A variable that statements define and use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(pub u32);

/// A statement, which is a node of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The variables that the statement defines.
    pub defines: Vec<Variable>,
    /// The variables whose values the statement uses.
    pub uses: Vec<Variable>,
    /// The statements on which the statement is directly control dependent.
    pub controlled_by: Vec<usize>,
}

/// The target of a query's search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A definition of this variable.
    Variable(Variable),
    /// An execution of a statement that controls statements of this kind. Statements with equal
    /// control dependences have the same kind.
    Control(u32),
}

/// The reason why a statement is in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Through a data dependence.
    Data,
    /// Through a control dependence.
    Control,
}

/// A path and its statements, ready to be sliced.
pub struct Slicing<'a> {
    pub(super) graph: &'a TimestampedGraph,
    pub(super) statements: &'a [Statement],
    /// For each node, its predecessors in the control-flow graph.
    pub(super) before: &'a [Vec<usize>],
    /// For each node, its kind of control dependences.
    kinds: Vec<Option<u32>>,
    /// For each kind, the statements that control it.
    parents: Vec<&'a [usize]>,
}

impl<'a> Slicing<'a> {
    /// Prepares a path through statements, one per node. `before` lists each statement's
    /// predecessors in the program's control-flow graph. Only
    /// [`Approach::Nodes`](super::Approach::Nodes) uses it.
    ///
    /// # Panics
    /// Panics if there are fewer statements than nodes in the graph, or if the numbers of
    /// statements and predecessor lists differ.
    pub fn new(
        graph: &'a TimestampedGraph,
        statements: &'a [Statement],
        before: &'a [Vec<usize>],
    ) -> Self {
        assert!(statements.len() >= graph.len() && before.len() == statements.len());
        let mut known: FxHashMap<&[usize], u32> = FxHashMap::default();
        let mut parents: Vec<&[usize]> = Vec::new();
        let kinds = statements.iter().map(|statement| {
            let of = &statement.controlled_by[..];
            (!of.is_empty()).then(|| {
                *known.entry(of).or_insert_with(|| {
                    parents.push(of);
                    parents.len() as u32 - 1
                })
            })
        });
        Self {
            graph,
            statements,
            before,
            kinds: kinds.collect(),
            parents,
        }
    }

    /// Returns the kind of dependence through which a node answers a query, or `None` if it does
    /// not.
    pub(super) fn answers(&self, node: usize, subject: Subject) -> Option<Kind> {
        match subject {
            Subject::Variable(variable) => {
                let defines = &self.statements[node].defines;
                defines.contains(&variable).then_some(Kind::Data)
            }
            Subject::Control(kind) => {
                let parents = self.parents[kind as usize];
                parents.contains(&node).then_some(Kind::Control)
            }
        }
    }

    /// Returns the subjects of the queries that a statement in the slice raises.
    pub(super) fn needs(&self, node: usize) -> impl Iterator<Item = Subject> {
        let uses = self.statements[node].uses.iter();
        let uses = uses.map(|&variable| Subject::Variable(variable));
        uses.chain(self.kinds[node].map(Subject::Control))
    }

    /// Whether a node was executed.
    pub(super) fn is_executed(&self, node: usize) -> bool {
        node < self.graph.len() && !self.graph.timestamps(node).entries().is_empty()
    }
}
