//! Encodes epochs on several threads.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use afterimage_ids::NodeId;
use afterimage_streams::{encode, estimate};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::wire::put;
use super::{ABSOLUTE, AGES, BEFORE, CUTS, FAR, LABELS, VECTORS, slot_of_copy, slot_of_input};
use crate::build::{Buffers, Column, Copies, Executions, Labels, Numbers, Pattern};
use crate::def::Origin;

/// The sizes of the kinds of data, in bytes and in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The origins of memory and globals that are read.
    pub labels: (u64, u64),
    /// The distant origins of variables.
    pub far: (u64, u64),
    /// The values that are stored directly.
    pub values: (u64, u64),
    /// The origins of copied memory.
    pub copies: (u64, u64),
    /// The directories of epochs, in bytes.
    pub directory: u64,
}

impl Sizes {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.labels, other.labels),
            (&mut self.far, other.far),
            (&mut self.values, other.values),
            (&mut self.copies, other.copies),
        ];
        for (sum, (bytes, numbers)) in pairs {
            sum.0 += bytes;
            sum.1 += numbers;
        }
        self.directory += other.directory;
    }
}

/// Encodes epochs one after another.
pub(crate) struct Writer {
    numbers: Arc<Numbers>,
    threads: usize,
    pub sizes: Sizes,
}

/// The contents of a node's slot.
enum What<'a> {
    Column(&'a Column),
    Copies(&'a Copies),
}

impl What<'_> {
    /// Returns the approximate count of numbers in the contents.
    fn weight(&self) -> usize {
        match self {
            Self::Column(column) => {
                let far = column.far_at.len();
                Labels::words_of(column) + far + column.cut_at.len()
            }
            Self::Copies(copies) => copies.at.len() + copies.runs.len(),
        }
    }
}

/// A node's slot, and its contents.
type Entry<'a> = (NodeId, u32, What<'a>);

/// The coded form of some nodes.
struct Piece {
    /// The position of these nodes' group in the order of encoding.
    number: usize,
    /// The end of each entry in `body`.
    ends: Vec<usize>,
    body: Vec<u8>,
}

/// Codes nodes one after another.
struct NodeWriter<'n> {
    numbers: &'n Numbers,
    /// The beginnings and ends of the current node's streams, by length and hash.
    seen: FxHashMap<(usize, u64), (usize, usize)>,
    /// The lengths of these streams.
    counts: FxHashSet<usize>,
    scratch: Vec<u8>,
    /// The patterns of the current column's labels.
    patterns: Vec<u32>,
    first: Executions,
    sizes: Sizes,
}

impl Writer {
    /// Creates an encoder that uses all processors.
    pub(crate) fn new(numbers: Arc<Numbers>) -> Self {
        Self::with_threads(
            numbers,
            thread::available_parallelism().map_or(1, usize::from),
        )
    }

    /// Creates an encoder that uses this many threads, and at least one. The bytes do not depend on
    /// the number of threads.
    pub(crate) fn with_threads(numbers: Arc<Numbers>, threads: usize) -> Self {
        Self {
            numbers,
            threads,
            sizes: Sizes::default(),
        }
    }

    /// Encodes the collected data, and sorts its columns.
    pub(crate) fn encode(&mut self, buffers: &mut Buffers) -> Vec<u8> {
        let numbers = &*self.numbers;
        buffers.columns.sort_unstable_by_key(|column| column.input);
        let buffers = &*buffers;
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for column in &buffers.columns {
            let (node, input) = numbers.of_input(column.input);
            entries.push((node, slot_of_input(input), What::Column(column)));
        }
        for copies in &buffers.copies {
            let site = numbers.sites[copies.site as usize];
            let slot = slot_of_copy(site.write as usize);
            entries.push((site.node, slot, What::Copies(copies)));
        }
        entries.sort_unstable_by_key(|(node, slot, _)| (*node, *slot));
        let (pieces, sizes) = pieces(numbers, &entries, buffers, self.threads);
        self.sizes.add(&sizes);
        let mut directory = Vec::new();
        put(&mut directory, entries.len() as u64);
        let mut last = 0;
        let lengths = pieces.iter().flat_map(|piece| {
            let starts = [0].into_iter().chain(piece.ends.iter().copied());
            piece
                .ends
                .iter()
                .zip(starts)
                .map(|(end, start)| end - start)
        });
        for ((node, slot, _), length) in entries.iter().zip(lengths) {
            put(&mut directory, u64::from(node.as_u32() - last));
            put(&mut directory, u64::from(*slot));
            put(&mut directory, length as u64);
            last = node.as_u32();
        }
        self.sizes.directory += directory.len() as u64;
        for piece in &pieces {
            directory.extend_from_slice(&piece.body);
        }
        directory
    }
}

/// Encodes entries in parallel. The data of different nodes is independent.
fn pieces(
    numbers: &Numbers,
    entries: &[Entry<'_>],
    buffers: &Buffers,
    threads: usize,
) -> (Vec<Piece>, Sizes) {
    let nodes = Vec::from_iter(entries.chunk_by(|a, b| a.0 == b.0));
    let weight = |number: &usize| -> usize {
        let entries = nodes[*number].iter();
        entries.map(|(_, _, what)| what.weight()).sum()
    };
    // The largest nodes come first, so that all threads end at about the same time.
    let mut order = Vec::from_iter(0..nodes.len());
    order.sort_by_cached_key(|number| std::cmp::Reverse(weight(number)));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut writer = NodeWriter::new(numbers);
        let mut pieces = Vec::new();
        while let Some(&number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            pieces.push(writer.node(number, nodes[number], buffers));
        }
        (pieces, writer.sizes)
    };
    let (mut pieces, mut sizes) = (Vec::with_capacity(nodes.len()), Sizes::default());
    thread::scope(|scope| {
        let others = threads.min(nodes.len()).saturating_sub(1);
        let others = Vec::from_iter((0..others).map(|_| scope.spawn(work)));
        let mut add = |(of_thread, of_sizes): (Vec<Piece>, Sizes)| {
            pieces.extend(of_thread);
            sizes.add(&of_sizes);
        };
        add(work());
        for other in others {
            match other.join() {
                Ok(done) => add(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    pieces.sort_unstable_by_key(|piece| piece.number);
    (pieces, sizes)
}

impl<'n> NodeWriter<'n> {
    fn new(numbers: &'n Numbers) -> Self {
        Self {
            numbers,
            seen: FxHashMap::default(),
            counts: FxHashSet::default(),
            scratch: Vec::new(),
            patterns: Vec::new(),
            first: Executions::default(),
            sizes: Sizes::default(),
        }
    }

    /// Returns the coded form of a node.
    fn node(&mut self, number: usize, entries: &[Entry<'_>], buffers: &Buffers) -> Piece {
        self.forget();
        let mut body = Vec::new();
        let mut ends = Vec::with_capacity(entries.len());
        for (_, _, what) in entries {
            match what {
                What::Column(column) => self.column(column, buffers, &mut body),
                What::Copies(copies) => self.copies(copies, &mut body),
            }
            ends.push(body.len());
        }
        Piece { number, ends, body }
    }

    /// Drops the streams of earlier nodes, because later streams do not refer to them.
    fn forget(&mut self) {
        self.seen.clear();
        self.counts.clear();
    }

    fn column(&mut self, column: &Column, buffers: &Buffers, out: &mut Vec<u8>) {
        let mut flags = 0;
        flags |= if column.chunks.is_empty() { 0 } else { LABELS };
        flags |= if column.far_at.is_empty() { 0 } else { FAR };
        flags |= if column.cut_at.is_empty() { 0 } else { CUTS };
        flags |= if column.cut_high.is_empty() {
            0
        } else {
            VECTORS
        };
        out.push(flags);
        let mut start = out.len();
        let mut account = |sizes: &mut (u64, u64), out: &Vec<u8>, count: usize| {
            sizes.0 += (out.len() - start) as u64;
            sizes.1 += count as u64;
            start = out.len();
        };
        if flags & LABELS != 0 {
            let count = self.labels(column, buffers, out);
            account(&mut self.sizes.labels, out, count);
        }
        if flags & FAR != 0 {
            put(out, column.far_at.len() as u64);
            self.stream(&column.far_at, out);
            let (nodes, indices) = ranks(&column.far_nodes);
            put(out, nodes.len() as u64);
            let mut last = 0;
            for &node in &nodes {
                put(out, u64::from(node - last));
                last = node;
            }
            if nodes.len() > 1 {
                self.stream(&indices, out);
            }
            self.executions(&column.far, out);
            account(&mut self.sizes.far, out, column.far_at.len());
        }
        if flags & CUTS != 0 {
            put(out, column.cut_at.len() as u64);
            self.stream(&column.cut_at, out);
            self.stream(&column.cut, out);
            if flags & VECTORS != 0 {
                self.stream(&column.cut_high, out);
            }
            account(&mut self.sizes.values, out, column.cut_at.len());
        }
    }

    /// Encodes the labels of a column. Returns their number.
    fn labels(&mut self, column: &Column, buffers: &Buffers, out: &mut Vec<u8>) -> usize {
        let mut numbers = std::mem::take(&mut self.patterns);
        let mut first = std::mem::take(&mut self.first);
        numbers.clear();
        first.clear();
        buffers.labels.each(column, |label| {
            numbers.push(label.pattern);
            first.absolute.push(label.execution);
            first.ages.push(label.age);
        });
        put(out, numbers.len() as u64);
        put(out, column.first);
        let (patterns, indices) = ranks(&numbers);
        put(out, patterns.len() as u64);
        for &pattern in &patterns {
            match buffers.patterns.get(pattern) {
                Pattern::One(place) => {
                    put(out, 1);
                    self.origin(place, out);
                }
                Pattern::Parts(parts) => {
                    put(out, parts.len() as u64);
                    for &(length, place) in parts {
                        put(out, u64::from(length));
                        self.origin(place, out);
                    }
                }
            }
        }
        if patterns.len() > 1 {
            self.stream(&indices, out);
        }
        self.executions(&first, out);
        for part in &column.parts {
            put(out, part.absolute.len() as u64);
            self.executions(part, out);
        }
        let count = numbers.len();
        (self.patterns, self.first) = (numbers, first);
        count
    }

    fn origin(&self, place: u32, out: &mut Vec<u8>) {
        match self.numbers.origin(place) {
            Origin::Initial => put(out, 0),
            Origin::Host => put(out, 1),
            // `BEFORE` is not the number of any node.
            Origin::Before => put(out, BEFORE),
            Origin::Write {
                node,
                write,
                offset,
            } => {
                put(out, u64::from(node.as_u32()) + 2);
                put(out, u64::from(write) << 4 | u64::from(offset));
            }
        }
    }

    fn executions(&mut self, executions: &Executions, out: &mut Vec<u8>) {
        let Executions { absolute, ages } = executions;
        let mut hash = None;
        // A stream that the node already has costs the least.
        if self.known(absolute, &mut hash).is_none() && estimate(ages) <= estimate(absolute) {
            out.push(AGES);
            return self.stream(ages, out);
        }
        out.push(ABSOLUTE);
        self.hashed(absolute, hash, out);
    }

    fn copies(&mut self, copies: &Copies, out: &mut Vec<u8>) {
        let start = out.len();
        put(out, copies.at.len() as u64);
        put(out, copies.runs.len() as u64);
        self.stream(&copies.at, out);
        self.stream(&copies.counts, out);
        let runs = &copies.runs;
        self.stream(&Vec::from_iter(runs.iter().map(|run| run.length)), out);
        self.stream(&Vec::from_iter(runs.iter().map(|run| run.count)), out);
        let (places, mut indices) = ranks(&Vec::from_iter(runs.iter().map(|run| run.place)));
        indices.resize(runs.len(), 0);
        put(out, places.len() as u64);
        for &place in &places {
            self.origin(place, out);
        }
        self.stream(&indices, out);
        self.stream(&Vec::from_iter(runs.iter().map(|run| run.execution)), out);
        self.stream(&Vec::from_iter(runs.iter().map(|run| run.step)), out);
        self.sizes.copies.0 += (out.len() - start) as u64;
        self.sizes.copies.1 += runs.len() as u64;
    }

    /// Returns the position of an equal stream of the node. Computes the hash if necessary.
    fn known(&self, values: &[u64], hash: &mut Option<u64>) -> Option<(usize, usize)> {
        if !self.counts.contains(&values.len()) {
            return None;
        }
        let hash = *hash.get_or_insert_with(|| hash_of(values));
        self.seen.get(&(values.len(), hash)).copied()
    }

    /// Writes a stream of numbers, which must not be empty.
    fn stream(&mut self, values: &[u64], out: &mut Vec<u8>) {
        self.hashed(values, None, out);
    }

    /// Works like [`stream`](Self::stream), but uses the hash of the numbers if it is known.
    fn hashed(&mut self, values: &[u64], mut hash: Option<u64>, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some((from, to)) = self.known(values, &mut hash) {
            out.push(0);
            put(out, (start - from) as u64);
            put(out, (to - from) as u64);
            return;
        }
        self.scratch.clear();
        encode(values, &mut self.scratch);
        put(out, self.scratch.len() as u64 + 1);
        let from = out.len();
        out.extend_from_slice(&self.scratch);
        // A reference also takes some bytes.
        if self.scratch.len() > 5 {
            let hash = hash.unwrap_or_else(|| hash_of(values));
            let place = (from, out.len());
            self.seen.entry((values.len(), hash)).or_insert(place);
            self.counts.insert(values.len());
        }
    }
}

/// Returns the distinct numbers in a list, ascending. If there are several, also returns the index
/// of each element's number among them. There are usually few distinct numbers, and the same number
/// often recurs in succession.
fn ranks(numbers: &[u32]) -> (Vec<u32>, Vec<u64>) {
    let Some(&only) = numbers.first() else {
        return (Vec::new(), Vec::new());
    };
    if numbers.iter().all(|&number| number == only) {
        return (vec![only], Vec::new());
    }
    let mut ranks = Vec::with_capacity(numbers.len());
    let mut known: FxHashMap<u32, u64> = FxHashMap::default();
    let mut last = None;
    for &number in numbers {
        // The indices are initially in the order of first occurrence.
        let place = match last {
            Some((before, place)) if before == number => place,
            _ => {
                let next = known.len() as u64;
                *known.entry(number).or_insert(next)
            }
        };
        last = Some((number, place));
        ranks.push(place);
    }
    let mut ascending = Vec::from_iter(known);
    ascending.sort_unstable();
    let mut rank_of = vec![0; ascending.len()];
    for (rank, &(_, place)) in (0..).zip(&ascending) {
        rank_of[place as usize] = rank;
    }
    for rank in &mut ranks {
        *rank = rank_of[*rank as usize];
    }
    let distinct = ascending.into_iter().map(|(number, _)| number);
    (distinct.collect(), ranks)
}

fn hash_of(values: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    values.hash(&mut hasher);
    hasher.finish()
}
