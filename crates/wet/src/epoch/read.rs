//! Reads epochs, with a directory that finds the data of one input.

mod search;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use afterimage_ids::NodeId;
use afterimage_streams::{BLOCK, StreamError};

use super::blocks::{Blocks, Coded};
use super::wire::{take, take_bytes, take_u32};
use super::{AGES, BEFORE, CUTS, FAR, LABELS, VECTORS, slot_of_copy, slot_of_input};
use crate::def::{Origin, Piece};

pub(crate) use search::{Candidate, Sought};

/// The reason why an epoch cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochError {
    /// The bytes are not an epoch.
    #[error("an epoch is damaged: {0}")]
    Damaged(&'static str),
    /// A stream is damaged.
    #[error("a stream of an epoch is damaged: {0}")]
    Stream(#[from] StreamError),
}

pub(super) fn damaged(what: &'static str) -> EpochError {
    EpochError::Damaged(what)
}

/// The coded form of a stretch of the run, with its directory.
#[derive(Debug)]
pub struct Epoch {
    pub(super) bytes: Vec<u8>,
    /// The positions of the data, by node and slot, ascending.
    pub(super) entries: Vec<((u32, u32), (u32, u32))>,
    /// A number that is unique among the epochs of this process.
    pub(super) number: u64,
}

/// The number of opened epochs.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// An execution of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// The execution that comes this many executions before the node's latest execution at the time
    /// of the label.
    Ago(u64),
    /// The execution with this number.
    Number(u64),
}

impl Epoch {
    /// Reads the directory. Time: O(entries).
    ///
    /// # Errors
    /// Returns an error if the directory is damaged.
    pub fn open(bytes: Vec<u8>) -> Result<Self, EpochError> {
        let bad = || damaged("its directory");
        let mut input = &bytes[..];
        let count = take(&mut input).ok_or_else(bad)?;
        // An entry takes at least three bytes.
        if count > input.len() as u64 / 3 {
            return Err(bad());
        }
        let mut entries: Vec<((u32, u32), (u32, u32))> = Vec::with_capacity(count as usize);
        let (mut node, mut start) = (0u32, 0u32);
        for _ in 0..count {
            let step = take_u32(&mut input).ok_or_else(bad)?;
            node = node.checked_add(step).ok_or_else(bad)?;
            let key = (node, take_u32(&mut input).ok_or_else(bad)?);
            if entries.last().is_some_and(|(last, _)| *last >= key) {
                return Err(bad());
            }
            let length = take_u32(&mut input).ok_or_else(bad)?;
            let end = start.checked_add(length).ok_or_else(bad)?;
            entries.push((key, (start, end)));
            start = end;
        }
        if start as usize != input.len() {
            return Err(bad());
        }
        let body = (bytes.len() - input.len()) as u32;
        for (_, (start, end)) in &mut entries {
            *start += body;
            *end = end.checked_add(body).ok_or_else(bad)?;
        }
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            bytes,
            entries,
            number,
        })
    }

    /// Returns the memory use in bytes.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<((u32, u32), (u32, u32))>()
    }

    fn entry(&self, node: NodeId, slot: u32) -> Option<(usize, usize)> {
        let key = (node.as_u32(), slot);
        let found = self.entries.binary_search_by_key(&key, |(key, _)| *key);
        let (start, end) = self.entries[found.ok()?].1;
        Some((start as usize, end as usize))
    }

    /// Returns the data about an input of a node, or `None` if none is stored.
    ///
    /// # Errors
    /// Returns an error if the data is damaged.
    pub(crate) fn input(
        &self,
        node: NodeId,
        input: usize,
    ) -> Result<Option<ColumnView<'_>>, EpochError> {
        let Some((start, end)) = self.entry(node, slot_of_input(input)) else {
            return Ok(None);
        };
        let mut reader = Reader {
            all: &self.bytes[..end],
            at: start,
            epoch: self.number,
        };
        let flags = reader.byte()?;
        let labels = match flags & LABELS {
            0 => None,
            _ => Some(Labels::read(&mut reader)?),
        };
        let far = match flags & FAR {
            0 => None,
            _ => Some(Far::read(&mut reader)?),
        };
        let cuts = match flags & CUTS {
            0 => None,
            _ => Some(Cuts::read(&mut reader, flags & VECTORS != 0)?),
        };
        if reader.at != end {
            return Err(damaged("more than one input"));
        }
        Ok(Some(ColumnView { labels, far, cuts }))
    }

    /// Returns the data about a node's copying write, or `None` if none is stored.
    ///
    /// # Errors
    /// Returns an error if the data is damaged.
    pub(crate) fn copies(
        &self,
        node: NodeId,
        write: usize,
    ) -> Result<Option<CopyView<'_>>, EpochError> {
        let Some((start, end)) = self.entry(node, slot_of_copy(write)) else {
            return Ok(None);
        };
        let mut reader = Reader {
            all: &self.bytes[..end],
            at: start,
            epoch: self.number,
        };
        CopyView::read(&mut reader).map(Some)
    }
}

/// The data about an input.
#[derive(Debug)]
pub(crate) struct ColumnView<'a> {
    /// The origins of a read.
    pub labels: Option<Labels<'a>>,
    /// The distant origin of a variable.
    pub far: Option<Far<'a>>,
    /// The stored values.
    pub cuts: Option<Cuts<'a>>,
}

pub(super) struct Reader<'a> {
    pub(super) all: &'a [u8],
    pub(super) at: usize,
    /// The number of the epoch.
    pub(super) epoch: u64,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        self.all.get(self.at..).unwrap_or(&[])
    }

    pub(super) fn number(&mut self) -> Result<u64, EpochError> {
        let mut rest = self.rest();
        let before = rest.len();
        let value = take(&mut rest).ok_or(damaged("a number"))?;
        self.at += before - rest.len();
        Ok(value)
    }

    fn small(&mut self) -> Result<u32, EpochError> {
        u32::try_from(self.number()?).map_err(|_| damaged("a number that is too large"))
    }

    pub(super) fn byte(&mut self) -> Result<u8, EpochError> {
        let byte = *self.rest().first().ok_or(damaged("its end"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads the count of items that each take at least one byte.
    pub(super) fn count(&mut self) -> Result<usize, EpochError> {
        let count = self.number()?;
        if count > self.rest().len() as u64 {
            return Err(damaged("a list that is too long"));
        }
        Ok(count as usize)
    }

    fn stream(&mut self, length: u64) -> Result<Coded<'a>, EpochError> {
        let (bytes, _) = self.coded()?;
        Ok(Coded::open(self.epoch, bytes, length)?)
    }

    /// Reads the bytes of a stream, and whether another stream of the node shares them.
    pub(super) fn coded(&mut self) -> Result<(&'a [u8], bool), EpochError> {
        let here = self.at;
        Ok(match self.number()? {
            0 => {
                let back = self.number()?;
                let length = self.number()?;
                let start = (here as u64).checked_sub(back);
                let range = start.and_then(|start| {
                    let end = start.checked_add(length)?;
                    self.all
                        .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
                });
                (range.ok_or(damaged("a reference to a stream"))?, true)
            }
            length => {
                let length = usize::try_from(length - 1).map_err(|_| damaged("a stream"))?;
                let mut rest = self.rest();
                let bytes = take_bytes(&mut rest, length).ok_or(damaged("a stream"))?;
                self.at += length;
                (bytes, false)
            }
        })
    }

    pub(super) fn origin(&mut self) -> Result<Origin, EpochError> {
        Ok(match self.number()? {
            0 => Origin::Initial,
            1 => Origin::Host,
            BEFORE => Origin::Before,
            node => {
                let node = u32::try_from(node - 2).map_err(|_| damaged("a node"))?;
                let write = self.number()?;
                Origin::Write {
                    node: NodeId::from_u32(node),
                    write: u32::try_from(write >> 4).map_err(|_| damaged("a write"))?,
                    offset: write as u8 & 15,
                }
            }
        })
    }

    /// Reads all patterns that occur in a load.
    pub(super) fn patterns(&mut self) -> Result<Vec<Pattern>, EpochError> {
        let mut patterns: Vec<Pattern> = Vec::new();
        for _ in 0..self.count()? {
            let parts = self.count()?;
            let mut pattern = Vec::with_capacity(parts);
            for _ in 0..parts {
                let length = match parts {
                    1 => 0,
                    _ => u8::try_from(self.number()?).map_err(|_| damaged("a piece"))?,
                };
                let origin = self.origin()?;
                pattern.push(Piece { length, origin });
            }
            patterns.push(pattern.into());
        }
        Ok(patterns)
    }

    fn executions(&mut self, length: u64) -> Result<Executions<'a>, EpochError> {
        let ages = self.byte()? == AGES;
        let stream = self.stream(length)?;
        Ok(Executions { ages, stream })
    }
}

/// The executions that wrote one piece.
#[derive(Debug)]
struct Executions<'a> {
    ages: bool,
    stream: Coded<'a>,
}

impl Executions<'_> {
    fn get(&self, index: u64, blocks: &Blocks) -> Result<Execution, EpochError> {
        let value = self.stream.get(index, blocks)?;
        let value = value.ok_or(damaged("an execution that does not exist"))?;
        Ok(if self.ages {
            Execution::Ago(value)
        } else {
            Execution::Number(value)
        })
    }
}

/// The pieces of a load's bytes.
pub(super) type Pattern = Box<[Piece]>;

/// The origins of a read, execution by execution.
#[derive(Debug)]
pub(crate) struct Labels<'a> {
    /// The execution of the node to which the first label belongs.
    first: u64,
    count: u64,
    patterns: Vec<Pattern>,
    /// The index of each label's pattern, or `None` if there is only one pattern.
    chosen: Option<Coded<'a>>,
    pieces: Vec<OfPiece<'a>>,
}

/// The executions that wrote the pieces at one position.
#[derive(Debug)]
struct OfPiece<'a> {
    /// The number of labels that have a piece at this position.
    count: u64,
    executions: Executions<'a>,
    /// The number of these labels before each block of the stream `chosen`.
    before: Before,
}

impl<'a> Labels<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, EpochError> {
        let count = reader.number()?;
        let first = reader.number()?;
        let patterns = reader.patterns()?;
        let most = patterns.iter().map(|pattern| pattern.len()).max();
        let most = most.unwrap_or(0);
        let chosen = match patterns.len() {
            0 => return Err(damaged("labels without a pattern")),
            1 => None,
            _ => Some(reader.stream(count)?),
        };
        let mut pieces = Vec::new();
        for piece in 0..most {
            let count = if piece == 0 { count } else { reader.number()? };
            pieces.push(OfPiece {
                count,
                executions: reader.executions(count)?,
                before: Before::default(),
            });
        }
        Ok(Self {
            first,
            count,
            patterns,
            chosen,
            pieces,
        })
    }

    /// Returns the origins of an execution's read, piece by piece, each with the execution of the
    /// origin's node. Returns `None` if the execution has no label here. A piece of length 0 is the
    /// whole read.
    ///
    /// Decodes one block of each stream. If the numbers of pieces differ, the first call takes
    /// O(executions).
    ///
    /// # Errors
    /// Returns an error if the labels are damaged.
    pub(crate) fn at(
        &self,
        execution: u64,
        blocks: &Blocks,
    ) -> Result<Option<Vec<(Piece, Execution)>>, EpochError> {
        let Some(index) = execution.checked_sub(self.first) else {
            return Ok(None);
        };
        if index >= self.count {
            return Ok(None);
        }
        let pattern = match &self.chosen {
            None => Some(0),
            Some(chosen) => chosen.get(index, blocks)?,
        };
        let pattern = self.pattern(pattern)?;
        let mut label = Vec::with_capacity(pattern.len());
        for (i, &piece) in pattern.iter().enumerate() {
            let of_piece = &self.pieces[i];
            let position = match &self.chosen {
                Some(chosen) if of_piece.count != self.count => {
                    self.position(chosen, i, index, blocks)?
                }
                _ => index,
            };
            label.push((piece, of_piece.executions.get(position, blocks)?));
        }
        Ok(Some(label))
    }

    fn pattern(&self, number: Option<u64>) -> Result<&Pattern, EpochError> {
        let number = number.and_then(|number| usize::try_from(number).ok());
        let pattern = number.and_then(|number| self.patterns.get(number));
        pattern.ok_or(damaged("a pattern that does not exist"))
    }

    /// Returns the number of labels before the label at `index` that have more than `piece` pieces.
    fn position(
        &self,
        chosen: &Coded<'_>,
        piece: usize,
        index: u64,
        blocks: &Blocks,
    ) -> Result<u64, EpochError> {
        let before = &self.pieces[piece].before;
        before.up_to(index, chosen, blocks, |values| self.longer(values, piece))
    }

    /// Returns the number of these patterns that have more than `piece` pieces.
    fn longer(&self, patterns: &[u64], piece: usize) -> Result<u64, EpochError> {
        let mut count = 0;
        for &pattern in patterns {
            count += u64::from(self.pattern(Some(pattern))?.len() > piece);
        }
        Ok(count)
    }
}

/// The distant origin of a variable.
#[derive(Debug)]
pub(crate) struct Far<'a> {
    at: Coded<'a>,
    nodes: Vec<NodeId>,
    chosen: Option<Coded<'a>>,
    executions: Executions<'a>,
}

impl<'a> Far<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, EpochError> {
        let count = reader.number()?;
        let at = reader.stream(count)?;
        let mut nodes = Vec::new();
        let mut last = 0u32;
        for _ in 0..reader.count()? {
            let step = reader.small()?;
            last = last.checked_add(step).ok_or(damaged("a node"))?;
            nodes.push(NodeId::from_u32(last));
        }
        let chosen = match nodes.len() {
            0 => return Err(damaged("a definition without a node")),
            1 => None,
            _ => Some(reader.stream(count)?),
        };
        let executions = reader.executions(count)?;
        Ok(Self {
            at,
            nodes,
            chosen,
            executions,
        })
    }

    /// Returns the definition that applies to an execution. The result is the defining node, its
    /// execution, and the first execution of the reading node to which the definition applies.
    /// Returns `None` if no stored definition applies. Decodes O(log definitions) blocks.
    ///
    /// # Errors
    /// Returns an error if the stored data is damaged.
    pub(crate) fn at(
        &self,
        execution: u64,
        blocks: &Blocks,
    ) -> Result<Option<(NodeId, Execution, u64)>, EpochError> {
        let Some(index) = self.at.after(execution, blocks)?.checked_sub(1) else {
            return Ok(None);
        };
        let unknown = damaged("a node that does not exist");
        let from = self.at.get(index, blocks)?.ok_or(unknown)?;
        let node = match &self.chosen {
            None => Some(0),
            Some(chosen) => chosen.get(index, blocks)?,
        };
        let node = node.and_then(|node| usize::try_from(node).ok());
        let node = *node.and_then(|node| self.nodes.get(node)).ok_or(unknown)?;
        Ok(Some((node, self.executions.get(index, blocks)?, from)))
    }
}

/// The stored values of an input.
#[derive(Debug)]
pub(crate) struct Cuts<'a> {
    at: Coded<'a>,
    low: Coded<'a>,
    high: Option<Coded<'a>>,
}

impl<'a> Cuts<'a> {
    fn read(reader: &mut Reader<'a>, vectors: bool) -> Result<Self, EpochError> {
        let count = reader.number()?;
        let at = reader.stream(count)?;
        let low = reader.stream(count)?;
        let high = if vectors {
            Some(reader.stream(count)?)
        } else {
            None
        };
        Ok(Self { at, low, high })
    }

    /// Returns the value at an execution of the node, with the upper half of a vector, or `None` if
    /// the value is not stored. Decodes O(log values) blocks.
    ///
    /// # Errors
    /// Returns an error if the stored values are damaged.
    pub(crate) fn at(
        &self,
        execution: u64,
        blocks: &Blocks,
    ) -> Result<Option<(u64, u64)>, EpochError> {
        self.before_last(execution, 0, blocks)
    }

    /// Returns the value `back` positions before the last value of an execution for which several
    /// values are stored.
    ///
    /// # Errors
    /// Returns an error if the stored values are damaged.
    pub(crate) fn before_last(
        &self,
        execution: u64,
        back: u64,
        blocks: &Blocks,
    ) -> Result<Option<(u64, u64)>, EpochError> {
        let after = self.at.after(execution, blocks)?;
        let Some(index) = after.checked_sub(1).and_then(|i| i.checked_sub(back)) else {
            return Ok(None);
        };
        if self.at.get(index, blocks)? != Some(execution) {
            return Ok(None);
        }
        let high = match &self.high {
            Some(high) => high.get(index, blocks)?,
            None => Some(0),
        };
        Ok(self.low.get(index, blocks)?.zip(high))
    }
}

/// A stream's running total before each block, computed on demand.
#[derive(Debug, Default)]
struct Before(RefCell<Vec<u64>>);

impl Before {
    /// Returns the sum of the values before the value at `index`. The first call is linear in the
    /// preceding values. Later calls decode one block.
    fn up_to(
        &self,
        index: u64,
        stream: &Coded<'_>,
        blocks: &Blocks,
        sum: impl Fn(&[u64]) -> Result<u64, EpochError>,
    ) -> Result<u64, EpochError> {
        let (wanted, within) = (index / BLOCK as u64, (index % BLOCK as u64) as usize);
        let mut known = self.0.borrow_mut();
        if known.is_empty() {
            known.push(0);
        }
        while known.len() as u64 <= wanted {
            let block = known.len() - 1;
            let more = sum(&stream.block(block as u64, blocks)?)?;
            let next = known[block].checked_add(more);
            known.push(next.ok_or(damaged("a sum of 2^64 or more"))?);
        }
        let values = stream.block(wanted, blocks)?;
        let values = values.get(..within).ok_or(damaged("a stream"))?;
        let more = sum(values)?;
        let sum = known[wanted as usize].checked_add(more);
        sum.ok_or(damaged("a sum of 2^64 or more"))
    }
}

/// The maximum number of runs in the copies of one write in an epoch.
const MOST_RUNS: u64 = 1 << 28;

/// The origins of the data that the executions of a memory copy copied.
#[derive(Debug)]
pub(crate) struct CopyView<'a> {
    at: Coded<'a>,
    counts: Coded<'a>,
    lengths: Coded<'a>,
    elements: Coded<'a>,
    origins: Vec<Origin>,
    places: Coded<'a>,
    executions: Coded<'a>,
    steps: Coded<'a>,
    /// The number of runs before each block of the stream `counts`.
    before: Before,
}

impl<'a> CopyView<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, EpochError> {
        let count = reader.number()?;
        let runs = reader.number()?;
        if runs > MOST_RUNS {
            return Err(damaged("a copy of too many runs"));
        }
        let at = reader.stream(count)?;
        let counts = reader.stream(count)?;
        let lengths = reader.stream(runs)?;
        let elements = reader.stream(runs)?;
        let mut origins = Vec::new();
        for _ in 0..reader.count()? {
            origins.push(reader.origin()?);
        }
        Ok(Self {
            at,
            counts,
            lengths,
            elements,
            origins,
            places: reader.stream(runs)?,
            executions: reader.stream(runs)?,
            steps: reader.stream(runs)?,
            before: Before::default(),
        })
    }

    /// Returns the first run of an execution's copy, and the number of its runs. Returns `None` if
    /// the execution copied nothing.
    pub(super) fn runs_at(
        &self,
        execution: u64,
        blocks: &Blocks,
    ) -> Result<Option<(u64, u64)>, EpochError> {
        let Some(index) = self.at.after(execution, blocks)?.checked_sub(1) else {
            return Ok(None);
        };
        if self.at.get(index, blocks)? != Some(execution) {
            return Ok(None);
        }
        // The executions of the copies ascend, so this execution copied nothing.
        if index > execution {
            return Err(damaged("a copy that is executed twice"));
        }
        let total = |counts: &[u64]| {
            let mut counts = counts.iter();
            let total = counts.try_fold(0u64, |sum, &count| sum.checked_add(count));
            total.ok_or(damaged("a copy of too many runs"))
        };
        let first = self.before.up_to(index, &self.counts, blocks, total)?;
        let count = self.counts.get(index, blocks)?.unwrap_or(0);
        Ok(Some((first, count)))
    }

    /// Returns the origin of the byte at this offset of an execution's copy, and the execution of
    /// the origin's node. Returns `None` if the execution copied nothing, or fewer bytes. Takes
    /// O(runs of the copy) and, in the first call, O(earlier copies).
    ///
    /// # Errors
    /// Returns an error if the stored data is damaged.
    pub(crate) fn at(
        &self,
        execution: u64,
        offset: u64,
        blocks: &Blocks,
    ) -> Result<Option<(Origin, u64)>, EpochError> {
        let Some((first, count)) = self.runs_at(execution, blocks)? else {
            return Ok(None);
        };
        let mut start = 0u64;
        for run in first..first.saturating_add(count) {
            let of_run = |stream: &Coded<'_>| -> Result<u64, EpochError> {
                let value = stream.get(run, blocks)?;
                value.ok_or(damaged("a run that does not exist"))
            };
            let (length, elements) = (of_run(&self.lengths)?, of_run(&self.elements)?);
            let end = start.saturating_add(length.saturating_mul(elements));
            if end == start {
                return Err(damaged("a run of nothing"));
            }
            if offset < end {
                let element = (offset - start) / length;
                let within = (offset - start) % length;
                let place = usize::try_from(of_run(&self.places)?).ok();
                let origin = place.and_then(|place| self.origins.get(place));
                let origin = *origin.ok_or(damaged("an origin that does not exist"))?;
                let step = of_run(&self.steps)?.wrapping_mul(element);
                let execution = of_run(&self.executions)?.wrapping_add(step);
                return Ok(Some((origin.at(within), execution)));
            }
            start = end;
        }
        Ok(None)
    }
}
