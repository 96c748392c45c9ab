//! Finds strongly connected components.

use crate::Adjacency;

/// The strongly connected components of a digraph (Tarjan 1972).
#[derive(Clone, Debug)]
pub struct Components {
    component: Vec<u32>,
    start: Vec<u32>,
    members: Vec<u32>,
}

impl Components {
    /// Finds the components. Time: O(V + E), no recursion.
    ///
    /// Components are numbered in reverse topological order, so an edge never leads to a component
    /// with a higher number.
    pub fn compute(graph: &Adjacency) -> Self {
        const UNSEEN: u32 = u32::MAX;
        let n = graph.len();
        let mut number = vec![UNSEEN; n];
        let mut low = vec![0u32; n];
        let mut component = vec![UNSEEN; n];
        let mut start = vec![0u32];
        let mut members: Vec<u32> = Vec::with_capacity(n);
        let mut open: Vec<u32> = Vec::new();
        let mut stack: Vec<(u32, u32)> = Vec::new();
        let mut next_number = 0;
        for first in 0..n {
            if number[first] != UNSEEN {
                continue;
            }
            stack.push((first as u32, 0));
            while let Some((v, next)) = stack.last_mut() {
                let v = *v as usize;
                if *next == 0 && number[v] == UNSEEN {
                    number[v] = next_number;
                    low[v] = next_number;
                    next_number += 1;
                    open.push(v as u32);
                }
                if let Some(&w) = graph.of(v).get(*next as usize) {
                    *next += 1;
                    if number[w as usize] == UNSEEN {
                        stack.push((w, 0));
                    } else if component[w as usize] == UNSEEN {
                        low[v] = low[v].min(number[w as usize]);
                    }
                    continue;
                }
                stack.pop();
                if let Some(&(parent, _)) = stack.last() {
                    low[parent as usize] = low[parent as usize].min(low[v]);
                }
                if low[v] == number[v] {
                    let id = start.len() as u32 - 1;
                    while let Some(w) = open.pop() {
                        component[w as usize] = id;
                        members.push(w);
                        if w as usize == v {
                            break;
                        }
                    }
                    start.push(members.len() as u32);
                }
            }
        }
        Self {
            component,
            start,
            members,
        }
    }

    /// Returns the number of components.
    pub fn count(&self) -> usize {
        self.start.len() - 1
    }

    /// Returns the component of a vertex.
    pub fn of(&self, vertex: usize) -> usize {
        self.component[vertex] as usize
    }

    /// Returns the vertices of a component, in no particular order.
    pub fn members(&self, component: usize) -> &[u32] {
        &self.members[self.start[component] as usize..self.start[component + 1] as usize]
    }
}
