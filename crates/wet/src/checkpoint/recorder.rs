//! Observes the machine and records intervals.

use afterimage_machine::{Machine, NodeCode, Observer, Range};

use afterimage_ids::NodeId;

use super::group::{Recorded, bytes_of};
use super::sites::Writers;
use super::touched::{LineForm, Lines, PAGE, Touched};
use super::{CHILDREN, LINE, place_of};

/// The size in bytes of a group's words and checkpoints at which the group ends.
const LARGEST: usize = 64 << 20;
/// The maximum number of blocks of an interval.
const LONGEST: u64 = 1 << 30;

/// The complete intervals of a group.
pub(crate) struct Intervals {
    pub(super) intervals: Vec<Recorded>,
    /// The table of the intervals' sites and lists.
    pub(super) lists: Vec<u8>,
    /// The concatenated bytes of the words that the intervals wrote, except words that the host
    /// wrote last.
    pub(super) words: Vec<u8>,
}

/// Collects the events of intervals. [`Vertices`](super::Vertices) makes vertices from them,
/// possibly on another thread.
pub(crate) struct Recorder {
    touched: Touched,
    writers: Writers,
    /// The number of instructions per interval.
    interval: u64,
    /// The number of instructions and nodes of the interval so far.
    steps: u64,
    before: u64,
    now: u64,
    group: Vec<Recorded>,
    words: Vec<u8>,
    /// The size of the group's checkpoints in bytes.
    states: usize,
    done: Vec<Intervals>,
}

impl Recorder {
    /// Creates a recorder for the beginning of the run, with about `interval` instructions per
    /// interval.
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
            group: Vec::new(),
            words: Vec::new(),
            states: 0,
            done: Vec::new(),
        }
    }

    /// Records the execution of a node, after the machine has executed it. If this completes
    /// groups, the caller must [take](Self::take) them.
    #[inline]
    pub fn executed(&mut self, machine: &Machine<'_>) {
        self.now = machine.time();
        let blocks = self.now - self.before;
        if self.steps >= self.interval || blocks >= LONGEST || self.touched.is_full() {
            self.cut(machine);
        }
        self.touched.now = (self.now - self.before + 1) as u32;
    }

    /// Ends the last interval at the end of the run.
    pub fn end(&mut self, machine: &Machine<'_>) {
        if self.steps > 0 {
            self.cut(machine);
        }
        self.close_group(machine);
    }

    /// Whether a completed group waits to be taken.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.done.is_empty()
    }

    /// Returns the completed groups.
    pub fn take(&mut self) -> Vec<Intervals> {
        std::mem::take(&mut self.done)
    }

    /// Ends the current interval.
    fn cut(&mut self, machine: &Machine<'_>) {
        let memories = &machine.state.memories;
        let lines = self.touched.lines(|memory, address| {
            let bytes = &memories[memory as usize].bytes[address as usize..];
            the_word(bytes.first_chunk::<PAGE>()?)
        });
        let (mut times, mut lists) = (Vec::new(), Vec::new());
        for lines in lines.iter().filter(|lines| lines.written != 0) {
            self.touched.times(lines, &mut times);
            self.touched.lists(lines, &mut lists);
            self.keep(machine, lines);
        }
        self.touched.clear();
        let state = machine.checkpoint();
        let state = state.map_or(Vec::new(), |state| state.encode());
        self.states += state.len();
        self.group.push(Recorded {
            after: machine.time(),
            state,
            lines,
            times,
            lists,
        });
        self.steps = 0;
        self.before = machine.time();
        if self.group.len() == CHILDREN || self.words.len() + self.states >= LARGEST {
            self.close_group(machine);
        }
    }

    /// Stores the bytes of the written words of some lines, except words that the host wrote last.
    fn keep(&mut self, machine: &Machine<'_>, lines: &Lines) {
        let (memory, address) = place_of(lines.first);
        let memory = &machine.state.memories[memory as usize].bytes[address as usize..];
        let bytes = match lines.told {
            LineForm::Each => lines.kept(),
            LineForm::Once if lines.kept() != 0 => {
                let length = lines.count as usize * LINE as usize;
                return self.words.extend_from_slice(&memory[..length]);
            }
            // All words are equal, so the first word suffices.
            _ => lines.kept() & 1,
        };
        for range in bytes_of(bytes) {
            self.words.extend_from_slice(&memory[range]);
        }
    }

    fn close_group(&mut self, machine: &Machine<'_>) {
        if self.group.is_empty() {
            return;
        }
        self.states = 0;
        let mut intervals = std::mem::take(&mut self.group);
        let mut lists = Vec::new();
        let used = intervals.iter_mut().map(|interval| &mut interval.lists[..]);
        self.writers.close(used, machine.codes(), &mut lists);
        self.done.push(Intervals {
            intervals,
            lists,
            words: std::mem::take(&mut self.words),
        });
    }
}

/// Returns the word that fills a page, if all its words are equal.
fn the_word(page: &[u8; PAGE]) -> Option<[u8; 4]> {
    let word = page.first_chunk::<4>()?;
    // Compare the page with itself, shifted by four bytes.
    (page[..PAGE - 4] == page[4..]).then_some(*word)
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
