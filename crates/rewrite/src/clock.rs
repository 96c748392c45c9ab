//! The stop clock: a count of polls that names a moment of a run.
//!
//! Every loop polls once in so many iterations of an activation, and a function polls at
//! its entry if it loops or can be entered again before it returns. So the work
//! between two polls is bounded, and "the poll number n" is the same
//! moment in every execution of the same recording. A run is stopped from outside by lowering the limit;
//! a re-execution stops at the same poll by setting it beforehand.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef};
use afterimage_program::{BlockEnd, Callee, Function, Program};

use crate::actions::{Actions, Step};

/// For each defined function, whether it polls at its entry: it has a loop, or lies on a cycle
/// of the call graph (indirect calls reach every function of their type that a table may hold).
pub(crate) fn polling_functions(program: &Program) -> Vec<bool> {
    let n = program.functions.len();
    let imports = program.imports.len();
    let canonical = canonical_types(program);
    // Vertices: functions, then one per type for indirect calls.
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); n + program.types.len()];
    for (i, function) in program.functions.iter().enumerate() {
        for block in function.cfg.blocks.values() {
            let (BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = block.end else { continue };
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
    let cyclic = on_cycles(&edges);
    program.functions.iter().enumerate().map(|(i, f)| cyclic[i] || headers(f).next().is_some()).collect()
}

/// For each type the first one equal to it, since indirect calls compare types by structure.
fn canonical_types(program: &Program) -> Vec<usize> {
    let mut first = HashMap::new();
    program.types.iter().map(|(id, ty)| *first.entry(ty).or_insert(id.index())).collect()
}

/// Which vertices lie on a cycle (Tarjan 1972, with an explicit stack). O(V + E).
fn on_cycles(edges: &[Vec<u32>]) -> Vec<bool> {
    const NEW: u32 = u32::MAX;
    let mut index = vec![NEW; edges.len()];
    let mut low = vec![0u32; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let mut cyclic = vec![false; edges.len()];
    let mut stack = Vec::new();
    let mut next = 0;
    for root in 0..edges.len() {
        if index[root] != NEW {
            continue;
        }
        let mut work = vec![(root, 0usize)];
        while let Some((v, i)) = work.pop() {
            if i == 0 {
                index[v] = next;
                low[v] = next;
                next += 1;
                stack.push(v);
                on_stack[v] = true;
            }
            if let Some(&w) = edges[v].get(i) {
                let w = w as usize;
                work.push((v, i + 1));
                if index[w] == NEW {
                    work.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(index[w]);
                    cyclic[v] |= w == v;
                }
                continue;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == index[v] {
                let at = stack.iter().rposition(|&w| w == v).unwrap_or(0);
                let component = stack.split_off(at);
                for &w in &component {
                    on_stack[w] = false;
                    cyclic[w] |= component.len() > 1;
                }
            }
        }
    }
    cyclic
}

/// The loop headers of a function, ascending.
fn headers(function: &Function) -> impl Iterator<Item = BlockId> + '_ {
    let graph = &function.cfg.graph;
    graph.vertices().filter(move |&v| graph.in_edges(v).iter().any(|&e| function.cfg.edges[e].back))
}

/// Adds the polls of a function.
pub(crate) fn add_polls(function: &Function, at_entry: bool, actions: &mut Actions) {
    if at_entry {
        let root = function.cfg.graph.root();
        actions.entry.push(Step::Poll(root));
    }
    for header in headers(function) {
        actions.add_block(&function.cfg, header, Step::LoopPoll(header));
    }
}
