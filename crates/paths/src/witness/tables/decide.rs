//! Finds the edge that a token selects.

use std::collections::HashSet;

use afterimage_ids::{BlockId, EdgeId, EntityRef};
use afterimage_program::Cfg;

use super::{Coded, DENSE, Step, Table, UNKNOWN};

impl Table {
    /// Returns the edge to take from a branch when this token comes next, or `None` if the token is
    /// impossible there.
    #[inline]
    pub(in super::super) fn decide(
        &mut self,
        cfg: &Cfg,
        v: BlockId,
        coded: Coded,
    ) -> Option<EdgeId> {
        match self.dense[v.index()].get(coded.1 as usize) {
            Some(&edge) if edge != UNKNOWN => Some(EdgeId::from_u32(edge)),
            _ => self.look_up(cfg, v, coded),
        }
    }

    /// Walks back from the edges that write the token to the branches that reach them silently,
    /// until it finds branch `v`.
    ///
    /// If several edges write the same token, the walks are short in total (see
    /// [`colours`](super::colours)), and each walk is done once in full. If only one edge writes
    /// the token, the walk goes twice as far as necessary, so that all walks for a token together
    /// take linear time.
    #[cold]
    fn look_up(&mut self, cfg: &Cfg, v: BlockId, coded: Coded) -> Option<EdgeId> {
        let rank = coded.1;
        loop {
            match self.dense[v.index()].get(rank as usize) {
                Some(&edge) if edge != UNKNOWN => return Some(EdgeId::from_u32(edge)),
                _ => {}
            }
            if let Some(&edge) = self.sparse.get(&(v, rank)) {
                return Some(edge);
            }
            let writers = self.writers.get_mut(&coded)?;
            match writers[..] {
                [only] => {
                    if !self.walk_back(cfg, only, rank, Some(v)) {
                        return None;
                    }
                }
                _ => {
                    let writer = writers.pop()?;
                    self.walk_back(cfg, writer, rank, None);
                }
            }
        }
    }

    /// Records, for branches that reach this edge on a silent path, the edge on which that path
    /// leaves them. Covers all these branches, or up to twice the number needed to find `wanted`.
    /// Returns `false` if no silent path leads from `wanted` to the edge. No silent path leads from
    /// a branch to a call that writes, so a walk back past that call meets no branch.
    fn walk_back(&mut self, cfg: &Cfg, writer: EdgeId, rank: u32, wanted: Option<BlockId>) -> bool {
        self.walks += 1;
        let mut queue = vec![writer];
        let mut next = 0;
        let mut limit = usize::MAX;
        while next < queue.len().min(limit) {
            let e = queue[next];
            next += 1;
            let v = cfg.graph.from(e);
            if std::mem::replace(&mut self.walked[v.index()], self.walks) == self.walks {
                continue;
            }
            if let Step::Branch(_) = self.step(v) {
                self.note(v, rank, e);
            }
            if wanted == Some(v) {
                limit = 2 * next;
            }
            let before = cfg.graph.in_edges(v).iter().copied();
            let silent = before.filter(|&e| self.way(e).token.is_none());
            queue.extend(silent.take(limit - queue.len().min(limit)));
        }
        limit < usize::MAX
    }

    fn note(&mut self, v: BlockId, rank: u32, edge: EdgeId) {
        if rank >= DENSE {
            self.sparse.insert((v, rank), edge);
            return;
        }
        let row = &mut self.dense[v.index()];
        if row.len() <= rank as usize {
            row.resize(rank as usize + 1, UNKNOWN);
        }
        row[rank as usize] = edge.as_u32();
    }

    /// Returns the edge to take from a branch, if the run then ends in `end` without writing
    /// anything more. Time: O(visited vertices).
    pub(in super::super) fn lead_to(&self, cfg: &Cfg, v: BlockId, end: BlockId) -> Option<EdgeId> {
        let mut stack = Vec::new();
        let mut seen = HashSet::new();
        cfg.graph.out_edges(v).iter().copied().find(|&first| {
            stack.push(first);
            while let Some(e) = stack.pop() {
                let way = self.way(e);
                if way.token.is_none() && seen.insert(way.to) {
                    if way.to == end {
                        return true;
                    }
                    stack.extend(cfg.graph.out_edges(way.to));
                }
            }
            false
        })
    }
}
