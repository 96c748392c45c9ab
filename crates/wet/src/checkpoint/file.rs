//! Reads and writes checkpoints in trace files.

use std::sync::Arc;

use afterimage_machine::Checkpoint;
use afterimage_trace::{
    HostWrite, Kind, LogReader, SectionReader, SectionWriter, TraceError as FileError, TraceFile,
    TraceWriter,
};

use super::cache::{Cache, Room};
use super::group::{Group, Parts, Sets};
use super::tree::Tree;
use super::vertices::Vertex;
use super::{CHILDREN, WORD};
use crate::epoch::wire::{put, take};

/// The maximum number of a vertex's bytes in one chunk.
const PART: usize = 8 << 20;
/// The number of bytes that one chunk of words contains.
const WORDS: usize = 64 << 10;
/// The maximum size of a vertex in bytes.
const LARGEST: u64 = 1 << 30;
/// The maximum number of levels.
const LEVELS: u32 = 16;
/// The version of the index.
const VERSION: u8 = 3;
/// The reason why checkpoints cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The checkpoints are damaged.
    #[error(
        "the checkpoints are damaged: {0}; build the values again with `afterimage build --lens full --again`"
    )]
    Damaged(&'static str),
}

/// The location of a vertex's data in its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    level: u32,
    number: u64,
    first: u64,
    children: u32,
    before: u64,
    after: u64,
    /// The first chunk of the vertex.
    chunk: u32,
    /// The number of the vertex's chunks. The chunks of its units follow.
    chunks: u32,
    /// The number of chunks of the vertex's units. The chunks of its words follow.
    units: u32,
    /// The number of chunks of the vertex's words.
    words: u32,
}

impl Entry {
    fn numbers(&self) -> [u64; 9] {
        [
            self.level.into(),
            self.number,
            self.first,
            self.children.into(),
            self.before,
            self.after - self.before,
            self.chunks.into(),
            self.units.into(),
            self.words.into(),
        ]
    }
}

/// Writes the vertices of the tree to a file, one by one.
pub struct CheckpointWriter {
    section: SectionWriter,
    entries: Vec<Entry>,
    chunk: u32,
}

impl CheckpointWriter {
    /// Begins the section.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(out: &TraceWriter) -> Result<Self, FileError> {
        Ok(Self {
            section: out.section(Kind::CHECKPOINTS, None)?,
            entries: Vec::new(),
            chunk: 0,
        })
    }

    /// Writes the next vertex.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn put(&mut self, vertex: &Vertex) -> Result<(), FileError> {
        let mut put = |bytes: &[u8], part| {
            let mut count = 0;
            for part in bytes.chunks(part) {
                self.section.put(vertex.after, part)?;
                count += 1;
            }
            Ok::<u32, FileError>(count)
        };
        let chunks = put(&vertex.bytes, PART)?;
        let mut units = 0;
        for unit in &vertex.units {
            units += put(unit, PART)?;
        }
        let words = put(&vertex.words, WORDS)?;
        self.entries.push(Entry {
            level: vertex.level,
            number: vertex.number,
            first: vertex.first,
            children: vertex.children,
            before: vertex.before,
            after: vertex.after,
            chunk: self.chunk,
            chunks,
            units,
            words,
        });
        self.chunk += chunks + units + words;
        Ok(())
    }

    /// Writes the index, and ends the section. `nodes` is the [`fingerprint`](crate::fingerprint)
    /// of the path. `interval` is the intended number of instructions per interval. The caller must
    /// commit the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(self, nodes: u32, interval: u64) -> Result<(), FileError> {
        let mut index = vec![VERSION];
        put(&mut index, nodes.into());
        put(&mut index, interval);
        put(&mut index, self.entries.len() as u64);
        for entry in &self.entries {
            entry
                .numbers()
                .iter()
                .for_each(|&number| put(&mut index, number));
        }
        let last = self.entries.last().map_or(0, |entry| entry.after);
        self.section.finish(last, &index)
    }
}

/// Decodes an index. Returns `None` if it is invalid.
fn index(bytes: &[u8]) -> Option<((u32, u64), Vec<Entry>)> {
    let (&version, mut input) = bytes.split_first()?;
    if version != VERSION {
        return None;
    }
    let input = &mut input;
    let nodes = u32::try_from(take(input)?).ok()?;
    let interval = take(input)?;
    let count = take(input)?;
    if count > input.len() as u64 / 9 {
        return None;
    }
    let mut entries = Vec::with_capacity(count as usize);
    let mut chunk = 0u32;
    for _ in 0..count {
        let small = |number: u64| u32::try_from(number).ok();
        let level = small(take(input)?).filter(|level| (1..=LEVELS).contains(level))?;
        let (number, first) = (take(input)?, take(input)?);
        let children = small(take(input)?).filter(|&n| (1..=CHILDREN as u32).contains(&n))?;
        let before = take(input)?;
        let after = before.checked_add(take(input)?)?;
        let mut count = || small(take(input)?);
        let (chunks, units, words) = (count()?, count()?, count()?);
        entries.push(Entry {
            level,
            number,
            first,
            children,
            before,
            after,
            chunk,
            chunks,
            units,
            words,
        });
        let all = chunks.checked_add(units)?.checked_add(words)?;
        chunk = chunk.checked_add(all)?;
    }
    input.is_empty().then_some(((nodes, interval), entries))
}

/// Returns the vertices of a section, and its intended interval length. Returns `None` if the
/// section belongs to another path, or has an older version.
fn vertices(
    mut section: SectionReader,
    nodes: u32,
) -> Result<Option<(u64, Vec<Entry>)>, CheckpointError> {
    let chunks = section.chunks();
    section.go(chunks - 1);
    section.advance()?;
    let version = section.bytes().first();
    if version.is_some_and(|&version| version < VERSION) {
        return Ok(None);
    }
    let damaged = || CheckpointError::Damaged("their index");
    let ((of, interval), entries) = index(section.bytes()).ok_or_else(damaged)?;
    let used = entries.last().map_or(0, |e| {
        let parts = [e.chunk, e.chunks, e.units, e.words];
        parts.map(u64::from).iter().sum()
    });
    if used + 1 != chunks as u64 {
        return Err(damaged());
    }
    Ok((of == nodes).then_some((interval, entries)))
}

/// A vertex, and the number of its section.
type StoredInterval = (Entry, usize);

/// The checkpoints of a file, from the beginning of the run up to the first gap.
///
/// Some of the data that has been read stays in memory. It takes at most about 1 GiB regardless of
/// the run's length, or more if a single item is larger.
#[derive(Debug)]
pub struct FileCheckpoints {
    file: TraceFile,
    /// The approximate number of instructions per interval.
    interval: u64,
    /// The vertices, from the groups of intervals upwards.
    levels: Vec<Vec<StoredInterval>>,
    groups: Cache<u64, Group>,
    /// The data about each interval's words.
    parts: Cache<u64, Parts>,
    sets: Cache<(usize, u64), Vec<Arc<Sets>>>,
    /// The sets of words of vertices without a parent.
    united: Cache<(usize, u64), Sets>,
    units: Cache<(u64, usize), Vec<u8>>,
    words: Cache<(u64, u32), Vec<u8>>,
    pub(super) host_writes: Cache<u64, Vec<HostWrite>>,
}

impl Room for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Room for Vec<Arc<Sets>> {
    fn bytes(&self) -> usize {
        self.iter().map(|sets| sets.bytes()).sum()
    }
}

impl Room for Vec<HostWrite> {
    fn bytes(&self) -> usize {
        let each = |write: &HostWrite| 2 * size_of::<HostWrite>() + write.bytes.len();
        self.iter().map(each).sum()
    }
}

impl FileCheckpoints {
    /// Opens the checkpoints of a file. Returns `None` if no checkpoints cover the beginning of the
    /// run. `nodes` is the [`fingerprint`](crate::fingerprint) of the file's path. Checkpoints of
    /// other paths, and of older versions, are ignored.
    ///
    /// # Errors
    /// Returns an error if an index is damaged.
    pub fn open(file: &TraceFile, nodes: u32) -> Result<Option<Self>, CheckpointError> {
        // The vertices by interval length, with the length of the last section first. If a vertex
        // has been written again, its last version comes first.
        let mut all: Vec<(u64, Vec<Vec<StoredInterval>>)> = Vec::new();
        let sections = (0..).map_while(|position| file.section(position));
        let own = |section: &(usize, SectionReader)| {
            section.1.kind() == Kind::CHECKPOINTS && section.1.is_complete()
        };
        let sections = Vec::from_iter(sections.enumerate().filter(own));
        let mut from_beginning = false;
        for (position, section) in sections.into_iter().rev() {
            let (interval, entries) = match vertices(section, nodes) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                // Checkpoints that were rebuilt from the beginning replace the damaged section.
                Err(_) if from_beginning => continue,
                Err(error) => return Err(error),
            };
            from_beginning |= entries.iter().any(|entry| entry.before == 0);
            let known = all.iter().position(|(length, _)| *length == interval);
            let known = known.unwrap_or_else(|| {
                all.push((interval, Vec::new()));
                all.len() - 1
            });
            let levels = &mut all[known].1;
            for entry in entries {
                let level = entry.level as usize - 1;
                if levels.len() <= level {
                    levels.resize_with(level + 1, Vec::new);
                }
                levels[level].push((entry, position));
            }
        }
        let all = all.into_iter();
        let all = all.map(|(interval, levels)| (interval, connected(levels)));
        let end = |(_, levels): &(u64, Vec<Vec<StoredInterval>>)| {
            let last = levels.first().and_then(|groups| groups.last());
            last.map_or(0, |(entry, _)| entry.after)
        };
        let (interval, levels) = all.rev().max_by_key(end).unwrap_or_default();
        Ok((!levels.is_empty()).then(|| Self::of(file.clone(), interval, levels)))
    }

    /// Returns the intended number of instructions per interval.
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// Returns the number of vertices in the tree.
    pub fn vertices(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }

    fn of(file: TraceFile, interval: u64, levels: Vec<Vec<StoredInterval>>) -> Self {
        let (kib, mib) = (1 << 10, 1 << 20);
        // The caches take 1 GiB in total. The few words that an interval needs may have been
        // written in a thousand other intervals, and a backward walk through a run requests these
        // again for each stretch.
        Self {
            file,
            interval,
            levels,
            groups: Cache::new(64 * mib, 64 * kib),
            parts: Cache::new(512 * mib, 128 * kib),
            sets: Cache::new(192 * mib, mib),
            united: Cache::new(32 * mib, mib),
            units: Cache::new(64 * mib, mib),
            words: Cache::new(128 * mib, WORDS),
            host_writes: Cache::new(32 * mib, 16 * kib),
        }
    }

    /// Returns the ascending numbers of the file's sections that contain these checkpoints.
    pub fn sections(&self) -> Vec<usize> {
        let all = self.levels.iter().flatten();
        let all = all.map(|(_, section)| *section);
        Vec::from_iter(std::collections::BTreeSet::from_iter(all))
    }

    /// Returns the number of intervals.
    pub fn intervals(&self) -> u64 {
        let last = self.levels[0].last();
        last.map_or(0, |(entry, _)| entry.first + u64::from(entry.children))
    }

    /// Returns the number of blocks executed up to the end of the last interval.
    pub fn end(&self) -> u64 {
        self.levels[0].last().map_or(0, |(entry, _)| entry.after)
    }

    /// Returns the interval in which a block is executed, or `None` if the block comes after the
    /// last interval.
    ///
    /// # Errors
    /// Returns an error if the interval's group cannot be read.
    pub fn interval_at(&self, time: u64) -> Result<Option<u64>, CheckpointError> {
        let number = self.levels[0].partition_point(|(entry, _)| entry.after < time);
        let Some((entry, _)) = self.levels[0].get(number) else {
            return Ok(None);
        };
        let group = self.group(number as u64)?;
        let within = group
            .intervals
            .partition_point(|interval| interval.after < time);
        Ok(Some(entry.first + within as u64))
    }

    /// Returns the numbers of blocks executed at an interval's beginning and at its end.
    ///
    /// # Errors
    /// Returns an error if the interval's group cannot be read.
    pub fn times(&self, interval: u64) -> Result<(u64, u64), CheckpointError> {
        let (group, within) = self.group_of(interval)?;
        let interval = &group.intervals[within];
        Ok((interval.before, interval.after))
    }

    /// Returns the checkpoint at an interval's beginning, or `None` for the first interval, with
    /// which the run begins.
    ///
    /// # Errors
    /// Returns an error if the checkpoint cannot be read.
    pub fn checkpoint(&self, interval: u64) -> Result<Option<Checkpoint>, CheckpointError> {
        let Some(before) = interval.checked_sub(1) else {
            return Ok(None);
        };
        let (group, within) = self.group_of(before)?;
        let found = group.state(within).and_then(Checkpoint::decode);
        let damaged = CheckpointError::Damaged("a checkpoint");
        let found = found.ok_or(damaged)?;
        if found.time() == group.intervals[within].after {
            Ok(Some(found))
        } else {
            Err(CheckpointError::Damaged("a checkpoint of another time"))
        }
    }

    /// Returns the log of the run.
    ///
    /// # Errors
    /// Returns an error if the file has no log.
    pub fn log(&self) -> Result<LogReader, CheckpointError> {
        Ok(self.file.log()?)
    }

    /// Returns the group of an interval, and the interval's position in the group.
    pub(super) fn group_of(&self, interval: u64) -> Result<(Arc<Group>, usize), CheckpointError> {
        let number = self.parent(1, interval);
        let number = number.ok_or(CheckpointError::Damaged("an interval is missing"))?;
        let first = self.levels[0][number as usize].0.first;
        Ok((self.group(number)?, (interval - first) as usize))
    }

    /// Returns the data about an interval's words, with the interval's group and its position in
    /// the group.
    pub(super) fn parts(
        &self,
        interval: u64,
    ) -> Result<(Arc<Group>, usize, Arc<Parts>), CheckpointError> {
        let (group, within) = self.group_of(interval)?;
        if let Some(known) = self.parts.get(&interval) {
            return Ok((group, within, known));
        }
        let of = &group.intervals[within];
        let number = self.parent(1, interval).unwrap_or(0);
        let parts = of.parts(&self.unit(number, &group, of.unit)?);
        let parts = Arc::new(parts.ok_or(CheckpointError::Damaged("the writes of an interval"))?);
        self.parts.keep(interval, &parts);
        Ok((group, within, parts))
    }

    fn group(&self, number: u64) -> Result<Arc<Group>, CheckpointError> {
        if let Some(known) = self.groups.get(&number) {
            return Ok(known);
        }
        let (entry, section) = self.levels[0][number as usize];
        let bytes = self.bytes(&entry, section)?;
        let group = Group::decode(bytes, entry.before);
        let group = group.filter(|group| {
            let last = group.intervals.last();
            group.intervals.len() == entry.children as usize
                && last.map(|last| last.after) == Some(entry.after)
        });
        let group = Arc::new(group.ok_or(CheckpointError::Damaged("a group of intervals"))?);
        self.groups.keep(number, &group);
        Ok(group)
    }

    /// Returns the bytes of a vertex.
    fn bytes(&self, entry: &Entry, section: usize) -> Result<Vec<u8>, CheckpointError> {
        self.chunks(entry.chunk..entry.chunk + entry.chunks, section)
    }

    /// Returns the bytes of a unit of a group.
    fn unit(
        &self,
        number: u64,
        group: &Group,
        unit: usize,
    ) -> Result<Arc<Vec<u8>>, CheckpointError> {
        let key = (number, unit);
        if let Some(known) = self.units.get(&key) {
            return Ok(known);
        }
        let damaged = || CheckpointError::Damaged("a group of intervals");
        let (entry, section) = self.levels[0][number as usize];
        let chunks = |unit: &usize| unit.div_ceil(PART);
        let first = group.units[..unit].iter().map(chunks).sum::<usize>();
        let end = first + chunks(&group.units[unit]);
        if end > entry.units as usize {
            return Err(damaged());
        }
        let first = (entry.chunk + entry.chunks) as usize + first;
        let end = (entry.chunk + entry.chunks) as usize + end;
        let bytes = Arc::new(self.chunks(first as u32..end as u32, section)?);
        if bytes.len() != group.units[unit] {
            return Err(damaged());
        }
        self.units.keep(key, &bytes);
        Ok(bytes)
    }

    fn chunks(
        &self,
        chunks: std::ops::Range<u32>,
        section: usize,
    ) -> Result<Vec<u8>, CheckpointError> {
        let damaged = || CheckpointError::Damaged("a vertex of their tree");
        let section = self.file.section(section).ok_or_else(damaged)?;
        let chunks = chunks.start as usize..chunks.end as usize;
        let length = section.length(chunks.clone());
        if length.map_err(|_| damaged())? > LARGEST {
            return Err(damaged());
        }
        Ok(section.decoded(chunks)?)
    }

    /// Returns access to the words stored in the group that contains an interval.
    pub(super) fn words(&self, interval: u64) -> Result<StoredWords<'_>, CheckpointError> {
        let number = self.parent(1, interval).ok_or(NO_WORD)?;
        Ok(StoredWords {
            checkpoints: self,
            number,
            last: None,
        })
    }

    /// Returns whether the file has this vertex with the same contents, or `None` if the file does
    /// not have the vertex.
    ///
    /// # Errors
    /// Returns an error if the vertex cannot be read.
    pub fn has(&self, vertex: &Vertex) -> Result<Option<bool>, CheckpointError> {
        let level = self.levels.get(vertex.level as usize - 1);
        let Some(&(entry, section)) = level.and_then(|level| level.get(vertex.number as usize))
        else {
            return Ok(None);
        };
        let same = (entry.first, entry.children, entry.before, entry.after)
            == (vertex.first, vertex.children, vertex.before, vertex.after);
        let units = entry.chunk + entry.chunks..entry.chunk + entry.chunks + entry.units;
        let words = units.end..units.end + entry.words;
        let same = same
            && self.chunks(words, section)? == vertex.words
            && self.chunks(units, section)? == vertex.units.concat();
        Ok(Some(same && self.bytes(&entry, section)? == vertex.bytes))
    }
}

/// The words stored in a group.
pub(super) struct StoredWords<'c> {
    checkpoints: &'c FileCheckpoints,
    /// The number of the group.
    number: u64,
    /// The last chunk that was read, and its number.
    last: Option<(u32, Arc<Vec<u8>>)>,
}

const NO_WORD: CheckpointError = CheckpointError::Damaged("the bytes of a word");

impl StoredWords<'_> {
    /// Returns the bytes of a word, given its position among all words of the group.
    pub fn get(&mut self, position: u64) -> Result<[u8; 4], CheckpointError> {
        let at = position.checked_mul(WORD).ok_or(NO_WORD)?;
        let chunk = u32::try_from(at / WORDS as u64).map_err(|_| NO_WORD)?;
        let known = self.last.take().filter(|(last, _)| *last == chunk);
        let (_, bytes) = match known {
            Some(known) => self.last.insert(known),
            None => self.last.insert((chunk, self.chunk(chunk)?)),
        };
        let rest = bytes.get(at as usize % WORDS..).ok_or(NO_WORD)?;
        rest.first_chunk().copied().ok_or(NO_WORD)
    }

    fn chunk(&self, chunk: u32) -> Result<Arc<Vec<u8>>, CheckpointError> {
        let all = self.checkpoints;
        let (entry, section) = all.levels[0][self.number as usize];
        if chunk >= entry.words {
            return Err(NO_WORD);
        }
        let key = (self.number, chunk);
        if let Some(known) = all.words.get(&key) {
            return Ok(known);
        }
        let first = entry.chunk + entry.chunks + entry.units + chunk;
        let bytes = Arc::new(all.chunks(first..first + 1, section)?);
        all.words.keep(key, &bytes);
        Ok(bytes)
    }
}

/// Returns, for each level, the longest sequence of consecutive vertices whose children all exist.
/// The sequence starts at the first vertex.
fn connected(all: Vec<Vec<StoredInterval>>) -> Vec<Vec<StoredInterval>> {
    let mut levels: Vec<Vec<StoredInterval>> = Vec::new();
    for mut level in all {
        level.sort_by_key(|(entry, _)| entry.number);
        level.dedup_by_key(|(entry, _)| entry.number);
        let (mut next, mut time) = (0, 0);
        let below = levels.last().map(|level| level.len() as u64);
        let mut kept = Vec::new();
        for (entry, section) in level {
            let end = entry.first.saturating_add(u64::from(entry.children));
            let fits = entry.number == kept.len() as u64
                && entry.first == next
                && entry.before == time
                && below.is_none_or(|below| end <= below);
            if !fits {
                break;
            }
            (next, time) = (end, entry.after);
            kept.push((entry, section));
        }
        if kept.is_empty() {
            break;
        }
        levels.push(kept);
    }
    levels
}

impl FileCheckpoints {
    /// Returns the words written and read in a vertex without a parent.
    fn united(&self, level: usize, number: u64) -> Result<Arc<Sets>, CheckpointError> {
        let key = (level, number);
        if let Some(known) = self.united.get(&key) {
            return Ok(known);
        }
        let mut all = Sets::default();
        for child in self.children(level, number) {
            all.add(&*self.sets(level - 1, child)?);
        }
        all.shrink();
        let all = Arc::new(all);
        self.united.keep(key, &all);
        Ok(all)
    }
}

impl Tree for FileCheckpoints {
    fn count(&self, level: usize) -> u64 {
        match level.checked_sub(1) {
            None => self.intervals(),
            Some(level) => self.levels.get(level).map_or(0, |level| level.len() as u64),
        }
    }

    fn children(&self, level: usize, number: u64) -> std::ops::Range<u64> {
        let (entry, _) = self.levels[level - 1][number as usize];
        entry.first..entry.first + u64::from(entry.children)
    }

    fn parent(&self, level: usize, child: u64) -> Option<u64> {
        let level = self.levels.get(level - 1)?;
        let number = level.partition_point(|(entry, _)| entry.first <= child);
        let number = number.checked_sub(1)?;
        let (entry, _) = level[number];
        (child - entry.first < u64::from(entry.children)).then_some(number as u64)
    }

    fn sets(&self, level: usize, number: u64) -> Result<Arc<Sets>, CheckpointError> {
        if level == 0 {
            let (_, _, parts) = self.parts(number)?;
            return Ok(Arc::clone(&parts.sets));
        }
        let Some(parent) = self.parent(level + 1, number) else {
            return self.united(level, number);
        };
        let position = (number - self.children(level + 1, parent).start) as usize;
        let key = (level + 1, parent);
        if let Some(known) = self.sets.get(&key) {
            return Ok(Arc::clone(&known[position]));
        }
        let (entry, section) = self.levels[level][parent as usize];
        let bytes = self.bytes(&entry, section)?;
        let mut input = &bytes[..];
        let sets = (0..entry.children).map(|_| Sets::decode(&mut input).map(Arc::new));
        let sets = sets.collect::<Option<Vec<_>>>();
        let sets = sets.filter(|_| input.is_empty());
        let sets = Arc::new(sets.ok_or(CheckpointError::Damaged("a vertex of their tree"))?);
        self.sets.keep(key, &sets);
        Ok(Arc::clone(&sets[position]))
    }
}
