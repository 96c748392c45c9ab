//! Finds where the paths of two runs diverge.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_wpp::{Cursor, Segments, Visit, WholePath};

use super::DiffError;

/// The place where the paths of two runs diverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The time of the first block that differs. All blocks before it are the same.
    pub time: u64,
    /// The last block before the difference; `None` if the first block differs.
    pub before: Option<(FuncId, BlockId)>,
    /// The block that the first run enters next. `None` if that run has ended.
    pub a: Option<(FuncId, BlockId)>,
    /// The block that the second run enters next. `None` if that run has ended.
    pub b: Option<(FuncId, BlockId)>,
}

/// Finds the first block in which two paths of the same program differ. Returns `None` if the paths
/// are the same. Time is linear in the paths up to that block.
///
/// # Errors
/// Returns an error if a path cannot be read or is incomplete.
pub fn parting<S: Segments>(
    a: &WholePath<S>,
    b: &WholePath<S>,
) -> Result<Option<Parting>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let whole = |path: &WholePath<S>| path.nodes().values().all(|node| node.left_out == 0);
    if !whole(a) || !whole(b) {
        return Err(DiffError::Partial);
    }
    let same = same_nodes(a, b);
    let (mut a, mut b) = (Blocks::new(a)?, Blocks::new(b)?);
    let mut time = 1;
    let mut before = None;
    loop {
        if let (Some(x), Some(y)) = (a.whole(), b.whole())
            && same[x.node.index()] == Some(y.node)
        {
            time += x.length;
            before = a.last();
            a.pass()?;
            b.pass()?;
            continue;
        }
        match (a.block(), b.block()) {
            (None, None) => return Ok(None),
            (x, y) if x == y => {
                time += 1;
                before = x;
                a.step()?;
                b.step()?;
            }
            (a, b) => return Ok(Some(Parting { time, before, a, b })),
        }
    }
}

/// Finds, for each node of the first path, the node of the second path that has the same blocks.
fn same_nodes<S: Segments>(a: &WholePath<S>, b: &WholePath<S>) -> Vec<Option<NodeId>> {
    let of_b: HashMap<_, _> = b.nodes().iter().map(|(id, node)| (node, id)).collect();
    let nodes = a.nodes().values();
    nodes.map(|node| of_b.get(node).copied()).collect()
}

/// Iterates over the blocks of a path.
struct Blocks<'a, S: Segments> {
    path: &'a WholePath<S>,
    cursor: Cursor<'a, S>,
    visit: Option<Visit>,
    position: usize,
}

/// An execution of a node. Its blocks have not been processed yet.
struct Fresh {
    node: NodeId,
    length: u64,
}

impl<'a, S: Segments> Blocks<'a, S> {
    fn new(path: &'a WholePath<S>) -> Result<Self, DiffError<S::Error>>
    where
        S::Error: std::error::Error + 'static,
    {
        let mut cursor = path.cursor();
        Ok(Self {
            path,
            visit: cursor.next()?,
            cursor,
            position: 0,
        })
    }

    fn whole(&self) -> Option<Fresh> {
        let visit = self.visit.filter(|_| self.position == 0)?;
        let length = self.path.nodes()[visit.node].blocks.len() as u64;
        Some(Fresh {
            node: visit.node,
            length,
        })
    }

    fn block(&self) -> Option<(FuncId, BlockId)> {
        let node = &self.path.nodes()[self.visit?.node];
        Some((node.function, *node.blocks.get(self.position)?))
    }

    /// Returns the last block of the node.
    fn last(&self) -> Option<(FuncId, BlockId)> {
        let node = &self.path.nodes()[self.visit?.node];
        Some((node.function, *node.blocks.last()?))
    }

    /// Goes to the next node.
    fn pass(&mut self) -> Result<(), DiffError<S::Error>>
    where
        S::Error: std::error::Error + 'static,
    {
        self.position = 0;
        self.visit = self.cursor.next()?;
        Ok(())
    }

    /// Goes to the next block.
    fn step(&mut self) -> Result<(), DiffError<S::Error>>
    where
        S::Error: std::error::Error + 'static,
    {
        self.position += 1;
        match self.block() {
            Some(_) => Ok(()),
            None => self.pass(),
        }
    }
}
