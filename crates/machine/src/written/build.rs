//! Collects written lines, and writes them to a file.

use afterimage_trace::{Kind, Result, SectionWriter, TraceError, TraceWriter};

use super::set::{LineRun, LineSet};
use super::{CHUNK, FAN, LARGEST, VERSION};
use crate::snapshots::put;

/// Records the lines that the stretches of a run write, in order. One set per level is in memory,
/// with a bit for each line.
#[derive(Debug)]
pub struct WrittenLinesBuilder {
    section: SectionWriter,
    /// The lines written in the current stretch.
    lines: LineSet,
    /// For each level from 1 on, the lines written in the incomplete vertex, and the number of its
    /// children.
    levels: Vec<(LineSet, usize)>,
    /// The ends of stretches, encoded as in the index.
    clocks: Vec<u8>,
    /// The number of stretches that have ended.
    ended: u64,
    /// The number of chunks of each vertex.
    chunks: Vec<u8>,
    /// The value of the stop clock at the stretch's beginning.
    clock: u64,
}

impl WrittenLinesBuilder {
    /// Begins a section with the first stretch. The caller must commit the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The same applies to the following methods.
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

    /// Returns the lines written in the current stretch.
    pub fn lines(&mut self) -> &mut LineSet {
        &mut self.lines
    }

    /// Ends the stretch at this value of the stop clock, and begins the next stretch. The values
    /// must increase.
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

    /// Ends the last stretch, at the end of the run.
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

/// Writes runs. Returns the number of chunks.
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
