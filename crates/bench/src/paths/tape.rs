//! Keeps the beginning of a run's path for repetition.

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};

/// The first events that a sink received, up to a number of executed paths.
#[derive(Default)]
pub(crate) struct Tape {
    paths: Vec<Path>,
    told: Vec<TapeEvent>,
    /// The number of executed paths that may still be added.
    room: usize,
    whole: bool,
}

/// A path, as passed to `define`.
struct Path {
    function: FuncId,
    blocks: Box<[BlockId]>,
    loops: Box<[BlockId]>,
    header: bool,
    next: Option<BlockId>,
    calls: bool,
}

#[derive(Clone, Copy)]
enum TapeEvent {
    Define,
    Path(NodeId),
    Enter(FuncId),
    Leave,
}

impl Tape {
    /// Keeps up to `room` executed paths.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            whole: true,
            ..Self::default()
        }
    }

    /// Whether the tape contains the whole path.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Passes the tape to a sink, up to the path with which at least `blocks` blocks have been
    /// executed. Returns the number of blocks passed.
    pub(crate) fn play(&self, blocks: u64, sink: &mut impl Sink) -> u64 {
        let mut fresh = self.paths.iter();
        let mut names = Vec::new();
        let mut executed = 0;
        for told in &self.told {
            match *told {
                TapeEvent::Define => {
                    names.extend(fresh.next().map(|path| sink.define(path.as_executed())))
                }
                TapeEvent::Path(node) => {
                    sink.path(names[node.as_u32() as usize]);
                    executed += self.blocks(node).len() as u64;
                    if executed >= blocks {
                        break;
                    }
                }
                TapeEvent::Enter(function) => sink.enter(function),
                TapeEvent::Leave => sink.leave(),
            }
        }
        executed
    }

    /// Returns the executed paths, in order.
    pub(crate) fn executed(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.told.iter().filter_map(|told| match told {
            TapeEvent::Path(node) => Some(*node),
            _ => None,
        })
    }

    pub(crate) fn function(&self, node: NodeId) -> FuncId {
        self.paths[node.as_u32() as usize].function
    }

    pub(crate) fn blocks(&self, node: NodeId) -> &[BlockId] {
        &self.paths[node.as_u32() as usize].blocks
    }

    fn keep(&mut self, told: TapeEvent) {
        if self.whole {
            self.told.push(told);
        }
    }
}

impl Path {
    fn as_executed(&self) -> ExecutedPath<'_> {
        ExecutedPath {
            function: self.function,
            blocks: &self.blocks,
            loops: &self.loops,
            header: self.header,
            next: self.next,
            calls: self.calls,
        }
    }
}

impl Sink for Tape {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        self.paths.push(Path {
            function: path.function,
            blocks: path.blocks.into(),
            loops: path.loops.into(),
            header: path.header,
            next: path.next,
            calls: path.calls,
        });
        self.keep(TapeEvent::Define);
        NodeId::from_u32(self.paths.len() as u32 - 1)
    }

    fn path(&mut self, node: NodeId) {
        self.whole &= self.room > 0;
        self.room = self.room.saturating_sub(1);
        self.keep(TapeEvent::Path(node));
    }

    fn enter(&mut self, function: FuncId) {
        self.keep(TapeEvent::Enter(function));
    }

    fn leave(&mut self) {
        self.keep(TapeEvent::Leave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(blocks: &[BlockId]) -> ExecutedPath<'_> {
        ExecutedPath {
            function: FuncId::from_u32(3),
            blocks,
            loops: &[],
            header: false,
            next: None,
            calls: false,
        }
    }

    /// Adds one path of one block and one path of two blocks, executed in turn, five times in
    /// total.
    fn five(tape: &mut Tape) {
        let blocks = [BlockId::from_u32(1), BlockId::from_u32(2)];
        tape.enter(FuncId::from_u32(3));
        let short = tape.define(path(&blocks[..1]));
        tape.path(short);
        let long = tape.define(path(&blocks));
        for node in [long, short, long, short] {
            tape.path(node);
        }
        tape.leave();
    }

    #[test]
    fn what_is_played_is_what_was_told_up_to_the_room_and_the_blocks() {
        let mut whole = Tape::new(5);
        five(&mut whole);
        assert!(whole.is_whole());
        let mut copy = Tape::new(10);
        assert_eq!(whole.play(u64::MAX, &mut copy), 7);
        assert!(whole.executed().eq(copy.executed()));
        let mut start = Tape::new(10);
        assert_eq!(whole.play(4, &mut start), 4);
        assert_eq!(start.executed().count(), 3);

        let mut short = Tape::new(4);
        five(&mut short);
        assert!(!short.is_whole());
        assert!(short.executed().eq(whole.executed().take(4)));
    }
}
