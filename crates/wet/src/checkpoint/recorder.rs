//! Watching the machine: intervals and the tree above them.

use afterimage_machine::{Machine, NodeCode, Observer, Range};

use afterimage_ids::NodeId;

use super::group::{self, Recorded, Sets, bytes_of};
use super::sites::Writers;
use super::touched::{Line, Touched};
use super::{CHILDREN, place_of};

/// A group ends when it has so many bytes of words.
const LARGEST: usize = 64 << 20;
/// An interval ends when it has so many blocks.
const LONGEST: u64 = 1 << 30;

/// A vertex of the tree, to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// How far it is above the intervals, at least 1.
    pub(super) level: u32,
    /// Which one of its level.
    pub(super) number: u64,
    /// Its first child.
    pub(super) first: u64,
    /// How many it has.
    pub(super) children: u32,
    /// Blocks executed before.
    pub(super) before: u64,
    /// Blocks executed at its end.
    pub(super) after: u64,
    /// What is known of its children at once.
    pub(super) bytes: Vec<u8>,
    /// What is known of each, for those of a group.
    pub(super) units: Vec<Vec<u8>>,
    /// The bytes of the words that intervals wrote, one after the other.
    pub(super) words: Vec<u8>,
}

impl Vertex {
    /// How many blocks are executed at its end.
    pub fn end(&self) -> u64 {
        self.after
    }
}

/// The vertex of a level that is being made.
#[derive(Default)]
struct Open {
    /// Which one of its level.
    number: u64,
    first: u64,
    before: u64,
    children: Vec<Sets>,
}

/// Collects what happens in intervals, and makes vertices of them.
pub(crate) struct Recorder {
    touched: Touched,
    writers: Writers,
    /// How many instructions an interval has.
    interval: u64,
    /// Instructions, and nodes, of the interval so far.
    steps: u64,
    before: u64,
    now: u64,
    /// The vertices that are being made, from the level above the intervals on.
    open: Vec<Open>,
    group: Vec<Recorded>,
    words: Vec<u8>,
    done: Vec<Vertex>,
    /// How many bytes these have.
    waiting: usize,
}

impl Recorder {
    /// Before the run; an interval has about so many instructions.
    pub fn new(interval: u64) -> Self {
        let mut touched = Touched::default();
        touched.now = 1;
        Self {
            touched,
            writers: Writers::new(),
            interval,
            steps: 0,
            before: 0,
            now: 0,
            open: Vec::new(),
            group: Vec::new(),
            words: Vec::new(),
            done: Vec::new(),
            waiting: 0,
        }
    }

    /// The machine has executed a node. The vertices that this completes are to be [taken](Self::take).
    #[inline]
    pub fn executed(&mut self, machine: &Machine<'_>) {
        self.now = machine.time();
        let blocks = self.now - self.before;
        if self.steps >= self.interval || blocks >= LONGEST {
            self.cut(machine);
        }
        self.touched.now = (self.now - self.before + 1) as u32;
    }

    /// The run has ended.
    pub fn end(&mut self, machine: &Machine<'_>) {
        if self.steps > 0 {
            self.cut(machine);
        }
        self.close_group(machine);
        let mut level = 0;
        while level < self.open.len() {
            self.close(level);
            level += 1;
        }
    }

    /// How many bytes the vertices have that were completed.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The vertices that were completed.
    pub fn take(&mut self) -> Vec<Vertex> {
        self.waiting = 0;
        std::mem::take(&mut self.done)
    }

    fn complete(&mut self, vertex: Vertex) {
        let units: usize = vertex.units.iter().map(Vec::len).sum();
        self.waiting += vertex.bytes.len() + units + vertex.words.len();
        self.done.push(vertex);
    }

    /// The interval ends here.
    fn cut(&mut self, machine: &Machine<'_>) {
        let lines = self.touched.lines();
        let (mut times, mut lists) = (Vec::new(), Vec::new());
        for line in lines.iter().filter(|line| line.written != 0) {
            self.touched.times(line, &mut times);
            self.touched.lists(line, &mut lists);
            self.keep(machine, line);
        }
        self.touched.clear();
        let state = machine.checkpoint();
        self.group.push(Recorded {
            after: machine.time(),
            state: state.map_or(Vec::new(), |state| state.encode()),
            lines,
            times,
            lists,
        });
        self.steps = 0;
        self.before = machine.time();
        if self.group.len() == CHILDREN || self.words.len() >= LARGEST {
            self.close_group(machine);
        }
    }

    /// Keeps the bytes of a line's words, unless the host wrote them.
    fn keep(&mut self, machine: &Machine<'_>, line: &Line) {
        let (memory, address) = place_of(line.key);
        let memory = &machine.state.memories[memory as usize].bytes;
        for range in bytes_of(line.kept()) {
            let word = address as usize + range.start..address as usize + range.end;
            self.words.extend_from_slice(&memory[word]);
        }
    }

    fn close_group(&mut self, machine: &Machine<'_>) {
        if self.group.is_empty() {
            return;
        }
        let mut intervals = std::mem::take(&mut self.group);
        let mut lists = Vec::new();
        let used = intervals.iter_mut().map(|interval| &mut interval.lists[..]);
        self.writers.close(used, machine.codes(), &mut lists);
        if self.open.is_empty() {
            self.open.push(Open::default());
        }
        let mut all = Sets::default();
        for interval in &intervals {
            all.add(&interval.sets());
        }
        let open = &mut self.open[0];
        let (before, after) = (open.before, intervals[intervals.len() - 1].after);
        let children = intervals.len() as u32;
        let (bytes, units) = group::encode(before, &intervals, &lists);
        let vertex = Vertex {
            level: 1,
            number: open.number,
            first: open.first,
            children,
            before,
            after,
            bytes,
            units,
            words: std::mem::take(&mut self.words),
        };
        open.number += 1;
        open.first += u64::from(children);
        open.before = after;
        self.complete(vertex);
        self.child(1, before, all);
    }

    /// A vertex of the level below was completed.
    fn child(&mut self, level: usize, before: u64, sets: Sets) {
        if self.open.len() <= level {
            self.open.push(Open::default());
        }
        let open = &mut self.open[level];
        if open.children.is_empty() {
            open.before = before;
        }
        open.children.push(sets);
        if open.children.len() == CHILDREN {
            self.close(level);
        }
    }

    /// Completes the vertex of a level, if it has more than one child, or is not the first one.
    fn close(&mut self, level: usize) {
        let open = &mut self.open[level];
        if level == 0 || open.children.is_empty() || open.number == 0 && open.children.len() == 1 {
            return;
        }
        let children = std::mem::take(&mut open.children);
        let mut bytes = Vec::new();
        let mut all = Sets::default();
        for sets in &children {
            sets.encode(&mut bytes);
            all.add(sets);
        }
        let (before, after) = (open.before, self.now);
        let vertex = Vertex {
            level: level as u32 + 1,
            number: open.number,
            first: open.first,
            children: children.len() as u32,
            before,
            after,
            bytes,
            units: Vec::new(),
            words: Vec::new(),
        };
        open.number += 1;
        open.first += children.len() as u64;
        self.complete(vertex);
        self.child(level + 1, before, all);
    }
}

impl Observer for Recorder {
    const REGISTERS: bool = false;

    #[inline]
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.writers.node(node, code);
        self.steps += code.insts.len() as u64 + 1;
    }

    #[inline]
    fn read(&mut self, _: usize, range: Range) {
        self.touched.read(range);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        let site = self.writers.write(Some(inst), range);
        self.touched.write(range, (site, false), &mut self.writers);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.touched.read(from);
        self.write(inst, to);
    }

    fn host_read(&mut self, range: Range) {
        self.touched.read(range);
    }

    fn host_write(&mut self, range: Range) {
        let site = self.writers.write(None, range);
        self.touched.write(range, (site, true), &mut self.writers);
    }
}
