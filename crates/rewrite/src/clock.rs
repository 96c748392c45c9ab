//! Adds the stop clock, a count of polls that names each moment of a run.
//!
//! In each activation, each loop polls once in a fixed number of iterations. In every cycle of
//! calls, one function polls at its entry. So no run continues forever without a poll, and "poll
//! number n" is the same moment in every execution of a recording. A run is stopped from outside by
//! lowering the limit. A re-execution stops at the same poll, because the limit is set beforehand.
//!
//! Two alternatives were rejected. A poll at the entry of every function that loops or recurses
//! cost twice as much on interpreters. The engine's epochs do not name a moment.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef};
use afterimage_program::{BlockEnd, Callee, Function, Program};

use crate::actions::{Actions, Step};

/// Finds, for each defined function, whether it polls at its entry. The functions that poll break
/// every cycle of the call graph. In this graph, indirect calls reach every function of their type
/// that a table may contain. The functions that poll are the targets of retreating edges in a
/// depth-first search. Without these edges, no cycle is left. Time: O(V + E), no recursion.
pub(crate) fn polling_functions(program: &Program) -> Vec<bool> {
    let n = program.functions.len();
    let edges = call_graph(program);
    let mut state = vec![State::New; edges.len()];
    let mut chosen = vec![false; edges.len()];
    for root in 0..edges.len() {
        if state[root] != State::New {
            continue;
        }
        state[root] = State::Open;
        let mut path = vec![(root, 0usize)];
        while let Some((v, i)) = path.pop() {
            let Some(&w) = edges[v].get(i) else {
                state[v] = State::Done;
                continue;
            };
            path.push((v, i + 1));
            let w = w as usize;
            match state[w] {
                State::New => {
                    state[w] = State::Open;
                    path.push((w, 0));
                }
                State::Open => chosen[w] = true,
                State::Done => {}
            }
        }
    }
    // The vertex of a type leads to all functions that an indirect call of this type may reach.
    for ty in n..edges.len() {
        if chosen[ty] {
            for &function in &edges[ty] {
                chosen[function as usize] = true;
            }
        }
    }
    chosen.truncate(n);
    chosen
}

/// The functions that may poll, directly or in a callee.
pub(crate) struct MayPoll {
    /// Whether each vertex may poll. The defined functions come first, then the types for indirect
    /// calls.
    vertices: Vec<bool>,
    canonical: Vec<usize>,
    imports: usize,
    functions: usize,
}

impl MayPoll {
    /// Finds the functions that may poll. `at_entry` selects the functions that poll at their
    /// entry. Time: O(V + E).
    pub(crate) fn new(program: &Program, at_entry: &[bool]) -> Self {
        let edges = call_graph(program);
        let mut callers = vec![Vec::new(); edges.len()];
        for (caller, callees) in edges.iter().enumerate() {
            for &callee in callees {
                callers[callee as usize].push(caller);
            }
        }
        let polls = program.functions.iter().zip(at_entry);
        let polls = polls.map(|(function, entry)| *entry || headers(function).next().is_some());
        let mut vertices = Vec::from_iter(polls);
        let functions = vertices.len();
        vertices.resize(edges.len(), false);
        let found = vertices.iter().enumerate().filter(|(_, polls)| **polls);
        let mut open = Vec::from_iter(found.map(|(vertex, _)| vertex));
        while let Some(vertex) = open.pop() {
            for &caller in &callers[vertex] {
                if !std::mem::replace(&mut vertices[caller], true) {
                    open.push(caller);
                }
            }
        }
        Self {
            vertices,
            canonical: canonical_types(program),
            imports: program.imports.len(),
            functions,
        }
    }

    /// Whether a function may poll. Host functions never do.
    pub(crate) fn function(&self, function: u32) -> bool {
        let defined = (function as usize).checked_sub(self.imports);
        defined.is_some_and(|defined| self.vertices[defined])
    }

    /// Whether an indirect call of this type may reach a function that may poll.
    pub(crate) fn indirect(&self, ty: u32) -> bool {
        self.vertices[self.functions + self.canonical[ty as usize]]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// Returns the call graph. Its vertices are the defined functions, followed by one vertex for each
/// type of indirect calls.
fn call_graph(program: &Program) -> Vec<Vec<u32>> {
    let n = program.functions.len();
    let imports = program.imports.len();
    let canonical = canonical_types(program);
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); n + program.types.len()];
    for (i, function) in program.functions.iter().enumerate() {
        for block in function.cfg.blocks.values() {
            let (BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = block.end else {
                continue;
            };
            match callee {
                Callee::Direct(id) => {
                    if let Some(callee) = (id.as_u32() as usize).checked_sub(imports) {
                        edges[i].push(callee as u32);
                    }
                }
                Callee::Indirect { ty, .. } => edges[i].push((n + canonical[ty.index()]) as u32),
            }
        }
        if program.address_taken.contains(function.id) {
            edges[n + canonical[function.ty.index()]].push(i as u32);
        }
    }
    for list in &mut edges {
        list.sort_unstable();
        list.dedup();
    }
    edges
}

/// Returns, for each type, the first type equal to it. Indirect calls compare types by structure.
fn canonical_types(program: &Program) -> Vec<usize> {
    let mut first = HashMap::new();
    program
        .types
        .iter()
        .map(|(id, ty)| *first.entry(ty).or_insert(id.index()))
        .collect()
}

/// Returns the loop headers of a function, ascending.
fn headers(function: &Function) -> impl Iterator<Item = BlockId> + '_ {
    let graph = &function.cfg.graph;
    graph.vertices().filter(move |&v| {
        graph
            .in_edges(v)
            .iter()
            .any(|&e| function.cfg.edges[e].back)
    })
}

/// Adds the polls of a function.
pub(crate) fn add_polls(function: &Function, at_entry: bool, actions: &mut Actions) {
    if at_entry {
        let root = function.cfg.graph.root();
        actions.entry.push(Step::Poll(root));
    }
    for header in headers(function) {
        actions.add_poll(&function.cfg, header, Step::LoopPoll(header));
    }
}

/// Adds a step at each place of a function where a snapshot may be taken. These are the places
/// where the function polls.
pub(crate) fn add_snapshots(function: &Function, at_entry: bool, actions: &mut Actions) {
    let cfg = &function.cfg;
    if at_entry {
        let root = cfg.graph.root();
        actions.add_snapshot(cfg, root, Step::Snapshot(root));
    }
    for header in headers(function) {
        actions.add_snapshot(cfg, header, Step::LoopSnapshot(header));
    }
}
