//! Lays out sequences of blocks without a decision.

use afterimage_ids::{BlockId, EntityRef};
use afterimage_program::{BlockKind, Cfg};

use super::{Run, Step, Table};

impl Table {
    /// Lays out the runs in `blocks`. Each vertex comes right before its successor, if that place
    /// is still free.
    pub(super) fn lay_runs(&mut self, cfg: &Cfg) {
        let n = cfg.blocks.len();
        let is_code = |v: BlockId| cfg.blocks[v].kind == BlockKind::Code;
        // The successor of each vertex along a silent edge, if both are code.
        let next: Vec<Option<BlockId>> = cfg
            .blocks
            .keys()
            .map(|v| match self.steps[v.index()] {
                Step::Next(e) if is_code(v) => {
                    let way = self.way(e);
                    (way.token.is_none() && is_code(way.to)).then_some(way.to)
                }
                _ => None,
            })
            .collect();
        let mut previous = vec![None; n];
        for (v, next) in next.iter().enumerate() {
            if let Some(next) = next {
                previous[next.index()] = Some(BlockId::new(v));
            }
        }
        let follows = |v: BlockId| next[v.index()].filter(|w| previous[w.index()] == Some(v));
        self.runs = cfg
            .blocks
            .keys()
            .map(|v| Run {
                start: 0,
                length: 0,
                last: v,
            })
            .collect();
        let mut path = Vec::new();
        for last in cfg
            .blocks
            .keys()
            .filter(|&v| is_code(v) && follows(v).is_none())
        {
            path.clear();
            let mut at = Some(last);
            while let Some(v) = at {
                path.push(v);
                at = previous[v.index()].filter(|&p| follows(p) == Some(v));
            }
            let end = self.blocks.len() + path.len();
            for (i, &v) in path.iter().enumerate() {
                let length = i + 1;
                self.runs[v.index()] = Run {
                    start: (end - length) as u32,
                    length: length as u32,
                    last,
                };
            }
            self.blocks.extend(path.iter().rev());
        }
    }
}
