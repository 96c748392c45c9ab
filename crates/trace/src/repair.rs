//! Copies the sound parts of a damaged file.
//!
//! A section is copied if all of its chunks are present and intact. The last intact index lists the
//! chunks. Without an intact index, the chunks' own headers identify them. For the log, and for
//! path words written live, an intact beginning is also copied. The copy is then a recording that
//! was cut off there, without anything derived from the whole run.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::path::Path;

use crate::layout::{HEADER_LEN, Kind};
use crate::open::Source;
use crate::place::{Existing, open_regular};
use crate::state::{ChunkEntry, Section};
use crate::{Result, TraceError, TraceWriter, codec};

/// The result of [`repair`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The number of sections copied whole.
    pub whole: u64,
    /// The number of bytes at the file's end that are not readable chunks.
    pub unread: u64,
    /// The lost sections, in the file's order.
    pub lost: Vec<Lost>,
}

/// A section that was not copied whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The kind of its contents.
    pub kind: Kind,
    /// The section's name, if it is readable.
    pub name: Option<String>,
    /// The number of its chunks that were copied, which are the chunks before the damage.
    pub kept: usize,
    /// The reason why the section was not copied whole.
    pub why: String,
}

/// A section of the damaged file, with the number of its chunks that can be copied.
struct FoundSection {
    section: Section,
    name: Option<String>,
    /// The number of intact chunks at its beginning.
    intact: usize,
    /// The number of chunks to copy.
    taken: usize,
    why: String,
}

impl FoundSection {
    /// Whether the whole section is present and intact.
    fn is_sound(&self) -> bool {
        self.section.is_complete() && self.intact == self.section.chunks.len()
    }

    /// Whether the whole section is copied.
    fn is_whole(&self) -> bool {
        self.taken == self.section.chunks.len()
    }

    /// Excludes the section, and keeps the first reason.
    fn lose(&mut self, why: &str) {
        self.taken = 0;
        if self.why.is_empty() {
            self.why = why.into();
        }
    }
}

/// Writes a copy of a trace file that contains everything intact. The original stays unchanged.
///
/// # Errors
/// Returns [`TraceError::Damaged`], [`TraceError::Cut`] or [`TraceError::Missing`] if the module or
/// the description of the run is lost, because the rest cannot answer any question. Returns
/// [`TraceError::NotATrace`] if the file has no sections. Also returns errors of reading the
/// original, and the errors of [`TraceWriter::create`] for the copy.
pub fn repair(from: &Path, to: &Path, existing: Existing) -> Result<Repaired> {
    let mut file = open_regular(from, OpenOptions::new().read(true))?;
    let length = file
        .metadata()
        .map_err(TraceError::io("examine the trace file"))?
        .len();
    if length < HEADER_LEN as u64 {
        return Err(TraceError::NotATrace);
    }
    let mut source = Source::new(&mut file, length);
    let mut state = source.state()?;
    // No sound index lists these chunks. They are at the end of the file, or in a recording without
    // an index.
    let behind = source.walk(state.end)?;
    for &chunk in &behind.chunks {
        // A chunk that is refused belongs to an index, or follows a lost chunk.
        let _ = state.push(chunk, length);
    }
    let mut found = Vec::new();
    for section in state.sections {
        found.push(look(&mut source, section)?);
    }
    if found.is_empty() {
        return Err(TraceError::NotATrace);
    }
    choose(&mut found)?;
    let out = TraceWriter::create(to, existing)?;
    if let Err(error) = copy(&mut source, &found, &out).and_then(|()| out.commit()) {
        let _ = out.discard();
        return Err(error);
    }
    let whole = found.iter().filter(|found| found.is_whole()).count() as u64;
    let lost = found.into_iter().filter(|found| !found.is_whole());
    let lost = lost.map(|found| Lost {
        kind: found.section.kind,
        name: found.name,
        kept: found.taken,
        why: found.why,
    });
    Ok(Repaired {
        whole,
        unread: length - behind.end,
        lost: lost.collect(),
    })
}

/// Reads a section's chunks.
fn look(source: &mut Source<'_, File>, section: Section) -> Result<FoundSection> {
    let (mut intact, mut why, mut name) = (0, String::new(), None);
    let mut raw = Vec::new();
    for chunk in &section.chunks {
        let payload = source.payload(chunk)?;
        if let Err(what) = codec::decode(&chunk.header, payload, &mut raw) {
            why = chunk.damaged(what).to_string();
            break;
        }
        if let Ok((Some(own), _)) = codec::split_name(&chunk.header, payload) {
            name = Some(own.to_owned());
        }
        intact += 1;
    }
    Ok(FoundSection {
        section,
        name,
        intact,
        taken: intact,
        why,
    })
}

/// Decides which chunks to copy.
fn choose(all: &mut [FoundSection]) -> Result<()> {
    for kind in [Kind::META, Kind::MODULE] {
        match all.iter().find(|it| it.section.kind == kind) {
            None => return Err(TraceError::Missing(kind)),
            Some(it) if it.is_sound() => {}
            Some(it) => {
                return Err(match it.section.chunks.get(it.intact) {
                    Some(chunk) => chunk.damaged("its bytes differ from what was written"),
                    None => TraceError::Cut(kind),
                });
            }
        }
    }
    let is_ended = all
        .iter()
        .any(|it| it.section.kind == Kind::END && it.is_sound());
    // A recording whose log was cut off has no end, but is then valid up to that point.
    let is_cut = all.iter().any(|it| {
        let is_damaged = it.intact < it.section.chunks.len();
        it.section.kind == Kind::LOG && !it.is_sound() && (is_damaged || is_ended)
    });
    let mut singles = BTreeSet::new();
    for it in &mut *all {
        let kind = it.section.kind;
        let is_live = matches!(kind, Kind::LOG | Kind::PATH_WORDS);
        if !it.is_sound() && it.why.is_empty() && !is_live {
            it.lose("its last chunk is missing");
        } else if kind == Kind::PATH_WORDS && !it.is_sound() && is_ended && !is_cut {
            it.lose("it ends before the run does");
        } else if it.intact < it.section.chunks.len() && !is_live {
            it.taken = 0;
        } else if kind.is_single() && !singles.insert(kind) {
            it.lose("there is another one before it");
        } else if is_cut && !is_live && !matches!(kind, Kind::META | Kind::MODULE | Kind::SOURCES) {
            it.lose("it covers more than what is left of the boundary log");
        }
    }
    pair(all, Kind::PATHS, Kind::PATH_INDEX);
    pair(all, Kind::PATHS, Kind::PATH_GRAMMARS);
    pair(all, Kind::VALUES, Kind::VALUES_INDEX);
    Ok(())
}

/// Sections that belong together are copied together or not at all. A path, however, can do without
/// its opened grammars.
fn pair(all: &mut [FoundSection], main: Kind, part: Kind) {
    let mut before = None;
    let mut has_part = BTreeSet::new();
    for at in 0..all.len() {
        let kind = all[at].section.kind;
        if kind == main {
            before = Some(at);
        } else if kind == part {
            match before.filter(|&main| all[main].is_whole()) {
                None => all[at].lose("the section that it belongs to is lost"),
                Some(main) if all[at].is_whole() => {
                    has_part.insert(main);
                }
                Some(_) => {}
            }
        }
    }
    for (at, it) in all.iter_mut().enumerate() {
        if it.section.kind == main && part != Kind::PATH_GRAMMARS && !has_part.contains(&at) {
            it.lose("its index is lost");
        }
    }
}

/// Copies chunks unchanged and in their order, so that the log comes before the sections derived
/// from it.
fn copy(source: &mut Source<'_, File>, all: &[FoundSection], out: &TraceWriter) -> Result<()> {
    let mut chunks: Vec<(ChunkEntry, usize)> = Vec::new();
    for (number, it) in all.iter().enumerate() {
        let taken = it.section.chunks[..it.taken].iter();
        chunks.extend(taken.map(|chunk| (*chunk, number)));
    }
    chunks.sort_unstable_by_key(|(chunk, _)| chunk.offset);
    let mut numbers = BTreeMap::new();
    for (chunk, number) in chunks {
        let payload = source.payload(&chunk)?;
        let number = match numbers.entry(number) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(out.number(chunk.header.kind)?),
        };
        out.copied(chunk.header, number, payload)?;
    }
    Ok(())
}
