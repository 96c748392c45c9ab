//! Finds the cycles of the call graph.

use std::collections::BTreeMap;

use afterimage_ids::FuncId;

use super::Key;

/// Returns the functions on cycles, ascending. These are the functions of components with more than
/// one function (Tarjan 1972, with an explicit stack), and functions that call themselves.
pub(super) fn recursive(calls: impl Iterator<Item = Key>) -> Vec<FuncId> {
    let mut targets = BTreeMap::<FuncId, Vec<FuncId>>::new();
    let mut recursive = Vec::new();
    for (caller, callee) in calls {
        targets.entry(callee).or_default();
        if let Some(caller) = caller {
            targets.entry(caller).or_default().push(callee);
            if caller == callee {
                recursive.push(caller);
            }
        }
    }
    let ids: Vec<FuncId> = targets.keys().copied().collect();
    let number = |function: &FuncId| ids.binary_search(function).unwrap_or_default();
    let targets: Vec<Vec<usize>> = targets
        .values()
        .map(|callees| callees.iter().map(number).collect())
        .collect();
    const NEW: usize = usize::MAX;
    const DONE: usize = usize::MAX - 1;
    let mut low = vec![NEW; ids.len()];
    let (mut stack, mut walk, mut clock) = (Vec::new(), Vec::new(), 0);
    for root in 0..ids.len() {
        if low[root] != NEW {
            continue;
        }
        walk.push((root, 0, clock));
        while let Some(&mut (at, ref mut next, own)) = walk.last_mut() {
            if *next == 0 {
                low[at] = own;
                stack.push(at);
                clock += 1;
            }
            if let Some(&to) = targets[at].get(*next) {
                if low[to] == NEW {
                    *next += 1;
                    walk.push((to, 0, clock));
                } else {
                    *next += 1;
                    if low[to] != DONE {
                        low[at] = low[at].min(low[to]);
                    }
                }
                continue;
            }
            walk.pop();
            let reached = low[at];
            if reached == own {
                let from = stack.iter().rposition(|&v| v == at).unwrap_or_default();
                let component = stack.split_off(from);
                if component.len() > 1 {
                    recursive.extend(component.iter().map(|&v| ids[v]));
                }
                for v in component {
                    low[v] = DONE;
                }
            } else if let Some(&mut (caller, ..)) = walk.last_mut() {
                low[caller] = low[caller].min(reached);
            }
        }
    }
    recursive.sort_unstable();
    recursive.dedup();
    recursive
}
