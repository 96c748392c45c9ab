//! Tracks the last writer of each byte and variable while a window is followed. Earlier writers are
//! looked up on demand.

use afterimage_ids::{BlockId, EdgeId};
use afterimage_machine::Range;
use rustc_hash::FxHashMap;

/// The producer of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Maker {
    /// A producer before the window that has not been looked up yet.
    #[default]
    Unknown,
    /// A constant of the code.
    Constant,
    /// The execution of a statement at this time.
    Statement { time: u64, statement: i32 },
    /// The host returned the value from the call at the end of the block at this time.
    Returned {
        time: u64,
        statement: Option<i32>,
        call: Option<u64>,
    },
    /// The host wrote the value in this call.
    Host { call: Option<u64> },
    /// The host passed the value as an argument.
    Argument,
    /// The module defines the value.
    Initial,
    /// A local that had not been written yet.
    Zero,
}

/// The number of bytes of memory whose writers are stored together.
const PAGE: u64 = 1 << 12;

/// The last writer of each byte.
#[derive(Default)]
pub(crate) struct Bytes {
    pages: FxHashMap<(u32, u64), Box<[u32; PAGE as usize]>>,
    /// The producers by number. The first one represents an unknown producer.
    writers: Vec<Maker>,
}

/// Adjacent bytes with the same writer: their number, and the writer.
pub(crate) type Part = (u64, Maker);

impl Bytes {
    /// Creates a map in which no writer is known.
    pub fn new() -> Self {
        Self {
            pages: FxHashMap::default(),
            writers: vec![Maker::Unknown],
        }
    }

    /// Records the writer of a range of bytes.
    pub fn write(&mut self, range: Range, maker: Maker) {
        if self.writers.last() != Some(&maker) {
            self.writers.push(maker);
        }
        // A window has fewer writes than a `u32` has values.
        let number = self.writers.len() as u32 - 1;
        self.each_page(range, |page| page.fill(number));
    }

    /// Calls `visit` for the part of a range in each page.
    fn each_page(&mut self, range: Range, mut visit: impl FnMut(&mut [u32])) {
        let mut address = range.address;
        let mut left = range.length;
        while left > 0 {
            let (page, within) = (address / PAGE, address % PAGE);
            let here = left.min(PAGE - within);
            let page = self.pages.entry((range.memory, page));
            let page = page.or_insert_with(|| Box::new([0; PAGE as usize]));
            visit(&mut page[within as usize..(within + here) as usize]);
            address = address.wrapping_add(here);
            left -= here;
        }
    }

    /// Returns the writers of a range of bytes, part by part.
    pub fn read(&mut self, range: Range) -> Vec<Part> {
        let mut numbers: Vec<(u64, u32)> = Vec::new();
        self.each_page(range, |page| {
            for &number in page.iter() {
                match numbers.last_mut() {
                    Some((length, last)) if *last == number => *length += 1,
                    _ => numbers.push((1, number)),
                }
            }
        });
        let mut parts: Vec<Part> = Vec::with_capacity(numbers.len());
        for (more, number) in numbers {
            let maker = self.writers.get(number as usize).copied();
            let maker = maker.unwrap_or_default();
            match parts.last_mut() {
                Some((length, last)) if *last == maker => *length += more,
                _ => parts.push((more, maker)),
            }
        }
        parts
    }
}

/// An open activation.
#[derive(Default)]
pub(crate) struct Frame {
    /// The producers of the activation's variables.
    variables: Vec<Maker>,
    /// The beginning of the activation, if it is in the window.
    pub began: Option<Began>,
    /// The last block that the activation executed, and the time of that block.
    pub last: Option<(BlockId, u64)>,
    /// The time at which the activation last took each edge that decides whether blocks run.
    pub taken: FxHashMap<EdgeId, u64>,
    /// For each block, the decisions before the window that led to it.
    pub before: FxHashMap<BlockId, Vec<Decided>>,
}

/// The decision or call that led to a block: its kind, and the time of the block that decided or
/// called.
pub(crate) type Decided = (&'static str, Option<u64>);

/// The beginning of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    /// The host called the function.
    Host,
    /// The block at this time called the function.
    Call(u64),
}

impl Frame {
    /// Creates an activation that begins with these parameters.
    pub fn new(began: Began, parameters: Vec<Maker>) -> Self {
        Self {
            variables: parameters,
            began: Some(began),
            ..Self::default()
        }
    }

    /// Returns the producer of a variable's value.
    pub fn get(&self, variable: u32) -> Maker {
        let found = self.variables.get(variable as usize).copied();
        found.unwrap_or(match self.began {
            // Nothing reads a variable of the operand stack before it is written.
            Some(_) => Maker::Zero,
            None => Maker::Unknown,
        })
    }

    /// Records the producer of a variable's value.
    pub fn set(&mut self, variable: u32, maker: Maker) {
        let variable = variable as usize;
        if self.variables.len() <= variable {
            let rest = self.get(variable as u32);
            self.variables.resize(variable + 1, rest);
        }
        self.variables[variable] = maker;
    }
}
