//! Collecting written lines.

use afterimage_trace::{Kind, Result, SectionWriter, TraceError, TraceWriter};

use super::set::{LineRun, LineSet};
use super::{CHUNK, FAN, LARGEST, VERSION};
use crate::snapshots::put;

/// Writes which lines are written in the stretches of a run, in its order. A set is in memory for each level, a bit for each line.
#[derive(Debug)]
pub struct WrittenLinesBuilder {
    section: SectionWriter,
    /// What is written in the stretch that goes on.
    lines: LineSet,
    /// Of each level from 1 on: what is written in the vertex that is not complete, and how many children it has.
    levels: Vec<(LineSet, usize)>,
    /// When stretches end, as the index has it, and how many did.
    clocks: Vec<u8>,
    ended: u64,
    /// How many chunks each vertex has.
    chunks: Vec<u8>,
    /// What the stop clock showed when the stretch began.
    clock: u64,
}

impl WrittenLinesBuilder {
    /// Begins a section with the first stretch. The caller commits.
    ///
    /// # Errors
    /// If the file cannot be written, as for all that follows.
    pub fn new(out: &TraceWriter) -> Result<Self> {
        Ok(Self {
            section: out.section(Kind::WRITTEN, None)?,
            lines: LineSet::default(),
            levels: Vec::new(),
            clocks: Vec::new(),
            ended: 0,
            chunks: Vec::new(),
            clock: 0,
        })
    }

    /// What is written in the stretch that goes on.
    pub fn lines(&mut self) -> &mut LineSet {
        &mut self.lines
    }

    /// The stretch ends when the stop clock shows this, which grows, and the next one begins.
    pub fn next(&mut self, clock: u64) -> Result<()> {
        put(&mut self.clocks, clock.saturating_sub(self.clock));
        self.end()?;
        self.clock = clock;
        Ok(())
    }

    /// Writes the lines of the stretch, and of the vertices that end with it.
    fn end(&mut self) -> Result<()> {
        self.ended += 1;
        let (section, clock) = (&mut self.section, self.clock);
        let mut write = |set: &LineSet| -> Result<()> {
            let chunks = write(section, clock, set.runs())?;
            put(&mut self.chunks, chunks);
            Ok(())
        };
        write(&self.lines)?;
        for level in 0..=self.levels.len() {
            if self.levels.len() == level {
                self.levels.push((LineSet::default(), 0));
            }
            let (below, rest) = self.levels.split_at_mut(level);
            let child = match below.last_mut() {
                Some((child, _)) => child,
                None => &mut self.lines,
            };
            let (parent, children) = &mut rest[0];
            parent.add_all(child);
            child.clear();
            *children += 1;
            if *children < FAN {
                break;
            }
            *children = 0;
            write(parent)?;
        }
        Ok(())
    }

    /// The last stretch ends with the run.
    pub fn finish(mut self) -> Result<()> {
        self.end()?;
        let mut index = Vec::new();
        put(&mut index, VERSION);
        put(&mut index, self.ended);
        index.append(&mut self.clocks);
        index.append(&mut self.chunks);
        self.section.finish(self.clock, &index)
    }
}

/// Writes runs. The answer is how many chunks they have.
fn write(
    section: &mut SectionWriter,
    first: u64,
    runs: impl Iterator<Item = LineRun>,
) -> Result<u64> {
    let (mut memory, mut next, mut chunks, mut all) = (0, 0, 0, 0);
    let mut bytes = Vec::new();
    for run in runs {
        if run.memory != memory {
            put(&mut bytes, u64::from(run.memory - memory));
            put(&mut bytes, 0);
            (memory, next) = (run.memory, 0);
        }
        put(&mut bytes, u64::from(run.first - next));
        put(&mut bytes, u64::from(run.count));
        next = run.first + run.count;
        if bytes.len() >= CHUNK {
            section.put(first, &bytes)?;
            all += bytes.len() as u64;
            bytes.clear();
            (memory, next) = (0, 0);
            chunks += 1;
        }
    }
    if all + bytes.len() as u64 > LARGEST {
        return Err(TraceError::TooLarge {
            what: "the written lines of a stretch",
            limit: LARGEST,
        });
    }
    if !bytes.is_empty() {
        section.put(first, &bytes)?;
        chunks += 1;
    }
    Ok(chunks)
}
