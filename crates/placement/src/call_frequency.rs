//! Estimates how often functions are entered.

use std::collections::HashMap;

use afterimage_graph::{Adjacency, Components};
use afterimage_ids::{EntityRef, FuncId};
use afterimage_program::{Callee, FunctionType, Program};

use crate::Weights;
use crate::calls::call_blocks;

/// The largest share of the calls into a group of mutually recursive functions that may come from
/// the group itself. Recursion is expected to be about ten deep, as loops are.
const LARGEST_RECURSION: f64 = 10.0 / 11.0;

/// The number of rounds for which the flow around a recursion is followed.
const ROUNDS: usize = 40;

/// Estimates the number of activations of every defined function in one run, from each function's
/// weights for one activation.
///
/// Exported functions and the start function are entered once. Other functions are entered as often
/// as the blocks that call them are executed. The executions of an indirect call are divided evenly
/// among the functions of its type whose addresses are taken. Every function has at least a small
/// frequency, so that weights in dead code remain comparable. Time: O(call sites), times a constant
/// for call sites in recursions.
pub(crate) fn call_frequencies(program: &Program, weights: &[Weights]) -> Vec<f64> {
    let graph = CallGraph::new(program, weights);
    let mut frequency = vec![1e-9; graph.nodes];
    let imports = program.imports.len();
    let entered = program.exports.iter().map(|(_, f)| *f).chain(program.start);
    let mut has_entry = false;
    for f in entered.filter(|f| f.index() >= imports) {
        frequency[f.index() - imports] = 1.0;
        has_entry = true;
    }
    if !has_entry {
        frequency[..program.functions.len()].fill(1.0);
    }
    graph.propagate(&mut frequency);
    frequency.truncate(program.functions.len());
    frequency
}

/// The call graph. Its nodes are the functions, followed by one node for each function type that is
/// called indirectly.
struct CallGraph {
    nodes: usize,
    /// For each call, the caller, the callee, and the executions of the call per activation of the
    /// caller.
    calls: Vec<(u32, u32, f64)>,
}

impl CallGraph {
    fn new(program: &Program, weights: &[Weights]) -> Self {
        let imports = program.imports.len();
        let functions = program.functions.len();
        let mut types: HashMap<&FunctionType, usize> = HashMap::new();
        let mut calls = Vec::new();
        for (f, function) in program.functions.iter().enumerate() {
            for (v, callee) in call_blocks(&function.cfg) {
                let target = match callee {
                    Callee::Direct(callee) if callee.index() < imports => continue,
                    Callee::Direct(callee) => callee.index() - imports,
                    Callee::Indirect { ty, .. } => {
                        let next = functions + types.len();
                        *types.entry(&program.types[ty]).or_insert(next)
                    }
                };
                let times = weights[f].vertex(&function.cfg.graph, v);
                calls.push((f as u32, target as u32, times));
            }
        }
        let mut members: HashMap<usize, Vec<FuncId>> = HashMap::new();
        for f in program
            .functions
            .iter()
            .filter(|f| program.address_taken.contains(f.id))
        {
            if let Some(&node) = types.get(&program.types[f.ty]) {
                members.entry(node).or_default().push(f.id);
            }
        }
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_unstable();
        for (node, members) in members {
            let share = 1.0 / members.len() as f64;
            for f in members {
                calls.push((node as u32, (f.index() - imports) as u32, share));
            }
        }
        Self {
            nodes: functions + types.len(),
            calls,
        }
    }

    /// Adds to the frequency of every node the calls from its callers.
    fn propagate(mut self, frequency: &mut [f64]) {
        let pairs = self.calls.iter().map(|c| (c.0 as usize, c.1 as usize));
        let components = Components::compute(&Adjacency::new(self.nodes, pairs));
        // Callers come first. Components are numbered with callees first.
        self.calls
            .sort_by_key(|c| std::cmp::Reverse(components.of(c.0 as usize)));
        let mut rest = &self.calls[..];
        for component in (0..components.count()).rev() {
            let here = rest.partition_point(|c| components.of(c.0 as usize) >= component);
            let (calls, others) = rest.split_at(here);
            rest = others;
            let inside: Vec<(u32, u32, f64)> = calls
                .iter()
                .copied()
                .filter(|c| components.of(c.1 as usize) == component)
                .collect();
            if !inside.is_empty() {
                recur(components.members(component), &inside, frequency);
            }
            for &(from, to, times) in calls {
                if components.of(to as usize) != component {
                    frequency[to as usize] += frequency[from as usize] * times;
                }
            }
        }
    }
}

/// Follows calls within one strongly connected component. The calls are damped so that the sum
/// stays bounded.
fn recur(members: &[u32], calls: &[(u32, u32, f64)], frequency: &mut [f64]) {
    let mut sent: HashMap<u32, f64> = HashMap::new();
    for &(from, _, times) in calls {
        *sent.entry(from).or_default() += times;
    }
    let mut wave: HashMap<u32, f64> = members
        .iter()
        .map(|&m| (m, frequency[m as usize]))
        .collect();
    for _ in 0..ROUNDS {
        let mut next: HashMap<u32, f64> = HashMap::new();
        for &(from, to, times) in calls {
            let damping = (LARGEST_RECURSION / sent[&from]).min(1.0);
            let amount = wave.get(&from).copied().unwrap_or(0.0) * times * damping;
            if amount > 0.0 {
                *next.entry(to).or_default() += amount;
            }
        }
        for (&node, amount) in &next {
            frequency[node as usize] += amount;
        }
        wave = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Likelihood;
    use afterimage_testkit::graphs::programs::{Ending, regular};

    /// Makes functions that each have a loop around a call. Function 1 is exported.
    fn frequencies(functions: usize, callee: impl Fn(usize) -> usize) -> Vec<f64> {
        let edges = [(0, 1), (1, 1), (1, 2)];
        let ending = |f, v| {
            if v == 1 {
                Ending::Call(callee(f))
            } else {
                Ending::Plain
            }
        };
        let mut program = regular(functions, |_| (3, edges.to_vec()), ending);
        program.exports.push(("run".into(), FuncId::new(1)));
        let weigh = |f: &afterimage_program::Function| {
            Weights::heuristic(&f.cfg.graph, |_| Likelihood::Normal)
        };
        let weights: Vec<Weights> = program.functions.iter().map(weigh).collect();
        call_frequencies(&program, &weights)
    }

    #[test]
    fn calls_in_loops_multiply() {
        let found = frequencies(3, |f| if f == 3 { 0 } else { f + 1 });
        let expected = [1.0, 11.0, 121.0];
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(f, e)| (f / e - 1.0).abs() < 1e-6),
            "{found:?}"
        );
    }

    #[test]
    fn recursion_is_about_ten_deep() {
        let found = frequencies(2, |f| 3 - f);
        let total: f64 = found.iter().sum();
        assert!((8.0..=11.0).contains(&total), "{found:?}");
    }
}
