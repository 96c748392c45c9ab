//! Reads the written lines from a file.

use std::ops::ControlFlow;

use afterimage_trace::{Kind, MAX_MEMORY, SectionReader, TraceError, TraceFile};

use super::set::{LineRun, LineSet};
use super::{FAN, LARGEST, LINE, VERSION};
use crate::snapshots::take;

/// The lines that the stretches of a run write, in a file.
#[derive(Debug)]
pub struct WrittenLines {
    file: TraceFile,
    /// The section that contains the lines.
    section: usize,
    /// The value of the stop clock at the end of each stretch except the last.
    clocks: Vec<u64>,
    /// The complete vertices of each level. These are the stretches, the groups of 16 stretches,
    /// the groups of 16 of these groups, and so on.
    levels: Vec<Vec<Vertex>>,
}

/// The location of the lines of a stretch, or of a group of stretches.
#[derive(Clone, Copy, Debug)]
struct Vertex {
    chunk: u32,
    chunks: u32,
}

/// The reason why written lines cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WrittenLinesError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] TraceError),
    /// The data is damaged.
    #[error("the written lines in the recording are damaged: {0}")]
    Damaged(&'static str),
}

impl WrittenLines {
    /// Opens the written lines in the last complete section of a file. Time: O(stretches).
    ///
    /// # Errors
    /// Returns an error if the written lines are damaged.
    pub fn open(file: &TraceFile) -> Result<Option<Self>, WrittenLinesError> {
        let sections = (0..).map_while(|position| file.section(position));
        let known = |(_, section): &(usize, SectionReader)| {
            section.kind() == Kind::WRITTEN && section.is_complete()
        };
        let Some((position, mut section)) = sections.enumerate().filter(known).last() else {
            return Ok(None);
        };
        let damaged = WrittenLinesError::Damaged;
        let last = section.chunks().checked_sub(1).ok_or(damaged("no index"))?;
        section.go(last);
        section.advance()?;
        let (clocks, levels) = index(section.bytes(), last).ok_or(damaged("their index"))?;
        Ok(Some(Self {
            file: file.clone(),
            section: position,
            clocks,
            levels,
        }))
    }

    /// Returns the number of stretches.
    pub fn stretches(&self) -> usize {
        self.clocks.len() + 1
    }

    /// Returns the value of the stop clock at the end of each stretch except the last, ascending.
    /// The last stretch ends with the run.
    pub fn clocks(&self) -> &[u64] {
        &self.clocks
    }

    /// Returns the lines that a stretch writes, as ascending runs.
    ///
    /// # Errors
    /// Returns an error if the lines are damaged, or the stretch does not exist.
    pub fn lines(&self, stretch: usize) -> Result<Vec<LineRun>, WrittenLinesError> {
        let vertex = self.vertex(0, stretch)?;
        let mut runs = Vec::new();
        self.each(&mut self.reader()?, vertex, |run| {
            runs.push(run);
            ControlFlow::Continue(())
        })?;
        Ok(runs)
    }

    /// Returns the last stretch, among the first `end`, that writes one of the lines of a range.
    /// Returns `None` if no stretch writes any of them, or if the range is empty.
    ///
    /// Reads O(log stretches) sets.
    ///
    /// # Errors
    /// Returns an error if the lines are damaged, or there are fewer than `end` stretches.
    pub fn last_before(
        &self,
        end: usize,
        memory: u32,
        address: u64,
        length: u64,
    ) -> Result<Option<usize>, WrittenLinesError> {
        if let Some(last) = end.checked_sub(1) {
            self.vertex(0, last)?;
        }
        let Some(last) = length.checked_sub(1) else {
            return Ok(None);
        };
        let wanted = Wanted {
            memory,
            first: address / LINE,
            last: address.saturating_add(last) / LINE,
        };
        let mut reader = self.reader()?;
        // Everything before the end consists of its older siblings, the older siblings of its
        // parent, and so on.
        let (mut level, mut end) = (0, end);
        while end > 0 {
            let begin = end - end % FAN;
            if let Some(found) = self.last_of(&mut reader, level, begin..end, wanted)? {
                return self.within(&mut reader, level, found, wanted).map(Some);
            }
            (level, end) = (level + 1, begin / FAN);
        }
        Ok(None)
    }

    /// Whether the lines of each group contain the lines of all its stretches. Time: O(lines of all
    /// stretches).
    ///
    /// # Errors
    /// Returns an error if the written lines are damaged.
    pub fn is_sound(&self) -> Result<bool, WrittenLinesError> {
        let mut reader = self.reader()?;
        let mut set = |vertex: Vertex| {
            let mut set = LineSet::default();
            self.each(&mut reader, vertex, |run| {
                set.mark(run.range());
                ControlFlow::Continue(())
            })?;
            Ok::<_, WrittenLinesError>(set)
        };
        for pair in self.levels.windows(2) {
            for (parent, children) in pair[1].iter().zip(pair[0].chunks(FAN)) {
                let parent = set(*parent)?;
                for child in children {
                    if !parent.has_all(&set(*child)?) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Returns the last stretch in a vertex that writes one of the lines.
    fn within(
        &self,
        reader: &mut SectionReader,
        level: usize,
        vertex: usize,
        wanted: Wanted,
    ) -> Result<usize, WrittenLinesError> {
        let mut found = vertex;
        for level in (0..level).rev() {
            let children = found * FAN..(found + 1) * FAN;
            let child = self.last_of(reader, level, children, wanted)?;
            found = child.ok_or(WrittenLinesError::Damaged("lines that no stretch has"))?;
        }
        Ok(found)
    }

    /// Returns the last of these vertices that contains one of the lines.
    fn last_of(
        &self,
        reader: &mut SectionReader,
        level: usize,
        vertices: std::ops::Range<usize>,
        wanted: Wanted,
    ) -> Result<Option<usize>, WrittenLinesError> {
        for number in vertices.rev() {
            let vertex = self.vertex(level, number)?;
            let mut has = false;
            self.each(reader, vertex, |run| match wanted.is_in(run) {
                Some(true) => {
                    has = true;
                    ControlFlow::Break(())
                }
                Some(false) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            })?;
            if has {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn vertex(&self, level: usize, number: usize) -> Result<Vertex, WrittenLinesError> {
        let vertices = self.levels.get(level);
        let vertex = vertices.and_then(|vertices| vertices.get(number));
        vertex
            .copied()
            .ok_or(WrittenLinesError::Damaged("the stretch does not exist"))
    }

    fn reader(&self) -> Result<SectionReader, WrittenLinesError> {
        let section = self.file.section(self.section);
        section.ok_or(WrittenLinesError::Damaged("their section is missing"))
    }

    /// Passes the runs of a vertex to `tell`, ascending, with one chunk in memory at a time.
    fn each(
        &self,
        reader: &mut SectionReader,
        vertex: Vertex,
        mut tell: impl FnMut(LineRun) -> ControlFlow<()>,
    ) -> Result<(), WrittenLinesError> {
        let chunks = vertex.chunk as usize..(vertex.chunk + vertex.chunks) as usize;
        if reader.length(chunks.clone())? > LARGEST {
            return Err(WrittenLinesError::Damaged("more lines than are possible"));
        }
        let mut before = (0, 0);
        for chunk in chunks {
            reader.go(chunk);
            reader.advance()?;
            let mut runs = Runs::of(reader.bytes());
            while let Some(run) = runs.next() {
                let run = run.filter(|run| (run.memory, run.first) >= before);
                let run = run.ok_or(WrittenLinesError::Damaged("the lines of a stretch"))?;
                before = (run.memory, run.first + run.count);
                if tell(run).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The lines to search for.
#[derive(Clone, Copy)]
struct Wanted {
    memory: u32,
    first: u64,
    last: u64,
}

impl Wanted {
    /// Returns whether a run contains one of the lines. Returns `None` if neither this run nor any
    /// later run can contain one.
    fn is_in(self, run: LineRun) -> Option<bool> {
        let first = u64::from(run.first);
        if run.memory > self.memory || run.memory == self.memory && first > self.last {
            return None;
        }
        Some(run.memory == self.memory && first + u64::from(run.count) > self.first)
    }
}

/// The runs of a chunk.
struct Runs<'a> {
    rest: &'a [u8],
    memory: u32,
    /// The line after the previous run.
    next: u32,
}

impl<'a> Runs<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            memory: 0,
            next: 0,
        }
    }

    /// Returns the next run. A damaged run is an inner `None`, and no more runs follow it.
    fn next(&mut self) -> Option<Option<LineRun>> {
        if self.rest.is_empty() {
            return None;
        }
        let run = self.run();
        if run.is_none() {
            self.rest = &[];
        }
        Some(run)
    }

    fn run(&mut self) -> Option<LineRun> {
        loop {
            let (gap, count) = (take(&mut self.rest)?, take(&mut self.rest)?);
            if count == 0 {
                let further = u32::try_from(gap).ok().filter(|further| *further > 0)?;
                self.memory = self.memory.checked_add(further)?;
                self.next = 0;
                continue;
            }
            let first = u64::from(self.next).checked_add(gap)?;
            let end = first.checked_add(count)?;
            if end > MAX_MEMORY / LINE {
                return None;
            }
            self.next = end as u32;
            return Some(LineRun {
                memory: self.memory,
                first: first as u32,
                count: count as u32,
            });
        }
    }
}

/// Decodes the index of a section with `chunks` chunks before the index. Returns `None` if the
/// index is damaged.
fn index(mut input: &[u8], chunks: usize) -> Option<(Vec<u64>, Vec<Vec<Vertex>>)> {
    let input = &mut input;
    if take(input)? != VERSION {
        return None;
    }
    let count = take(input)?;
    // A stretch takes at least one byte.
    if count == 0 || count > input.len() as u64 {
        return None;
    }
    let mut clock = 0u64;
    let mut clocks = Vec::with_capacity(count as usize - 1);
    for number in 1..count {
        let later = take(input)?;
        clock = clock
            .checked_add(later)
            .filter(|_| number == 1 || later > 0)?;
        clocks.push(clock);
    }
    let mut levels: Vec<Vec<Vertex>> = Vec::new();
    let mut chunk = 0u32;
    for ended in 1..=count {
        let (mut level, mut ended) = (0, ended);
        loop {
            let own = u32::try_from(take(input)?).ok()?;
            if levels.len() == level {
                levels.push(Vec::new());
            }
            levels[level].push(Vertex { chunk, chunks: own });
            chunk = chunk.checked_add(own)?;
            if ended % FAN as u64 != 0 {
                break;
            }
            (level, ended) = (level + 1, ended / FAN as u64);
        }
    }
    (input.is_empty() && chunk as usize == chunks).then_some((clocks, levels))
}
