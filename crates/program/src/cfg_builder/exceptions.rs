//! Builds the routes of exceptions, which are dispatch vertices and the edges out of them.

use std::collections::HashSet;

use wasmparser::Catch;

use super::{CfgBuilder, FrameKind, Pending, Vertex};
use crate::EdgeKind;
use crate::calls::catches_all;

impl CfgBuilder<'_> {
    /// Directs an exceptional edge to the dispatch vertex of the innermost open `try_table`.
    /// Dispatch vertices reached for the first time get their own edges.
    pub(super) fn raise(&mut self, mut origin: Pending) {
        for position in (0..self.tries.len()).rev() {
            let at = self.tries[position];
            let FrameKind::Try {
                op,
                offset,
                catches,
                dispatch,
            } = &mut self.frames[at].kind
            else {
                unreachable!("`tries` holds positions of try_tables");
            };
            if let Some(dispatch) = *dispatch {
                return self.edge(origin, Vertex::Dispatch(dispatch), false);
            }
            let vertex = self.dispatches.len() as u32;
            *dispatch = Some(vertex);
            self.dispatches.push((*op, *offset));
            let (op, catches) = (*op, std::mem::take(catches));
            let vertex = Vertex::Dispatch(vertex);
            self.edge(origin, vertex, false);

            let from = |kind, slot| Pending {
                from: vertex,
                kind,
                op: Some(op),
                slot,
            };
            let mut caught = HashSet::new();
            for (i, catch) in catches.iter().enumerate() {
                let (tag, label) = match *catch {
                    Catch::One { tag, label } | Catch::OneRef { tag, label } => (Some(tag), label),
                    Catch::All { label } | Catch::AllRef { label } => (None, label),
                };
                // A clause for a tag that an earlier clause catches is never chosen.
                if tag.is_none_or(|tag| caught.insert(tag)) {
                    let i = i as u32;
                    // Labels of clauses are counted from outside the `try_table`.
                    self.branch(from(EdgeKind::Catch(i), i), at - 1 - label as usize);
                }
                if catches_all(catch) {
                    return;
                }
            }
            origin = from(EdgeKind::Unwind, catches.len() as u32);
        }
        self.edge(origin, Vertex::OwnDispatch, false);
        if !std::mem::replace(&mut self.own_dispatch, true) {
            let from = Vertex::OwnDispatch;
            let unwind = Pending {
                from,
                kind: EdgeKind::Unwind,
                op: None,
                slot: 0,
            };
            self.edge(unwind, Vertex::Exit, false);
        }
    }
}
