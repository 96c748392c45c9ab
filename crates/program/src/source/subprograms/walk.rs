//! Reads the entries of a unit. Entries may nest to any depth, so the walk uses an explicit stack.

use std::ops::Range;

use afterimage_ids::OrigOffset;
use gimli::{Abbreviation, EntriesRaw, UnitOffset};

use super::{InlinedCall, Subprogram, Subprograms};
use crate::source::entries::{EntryId, Extent, file_index};
use crate::source::{Location, Slice, SourceMap};

/// Adds the functions of a unit. If an error occurs, the functions before the error are kept.
pub(super) fn scan(map: &SourceMap<'_>, unit: u32, into: &mut Subprograms) -> gimli::Result<()> {
    let mut walk = Walk {
        map,
        unit,
        into,
        open: Vec::new(),
        calls: Vec::new(),
    };
    let result = walk.entries();
    walk.close_to(isize::MIN);
    result
}

struct Walk<'w, 'a> {
    map: &'w SourceMap<'a>,
    unit: u32,
    into: &'w mut Subprograms,
    /// The entries that enclose the walk's current position.
    open: Vec<Open>,
    /// The inlined calls of each open function.
    calls: Vec<Vec<InlinedCall>>,
}

struct Open {
    depth: isize,
    kind: Kind,
}

enum Kind {
    /// A function, with its positions in `functions`.
    Function(Range<usize>),
    /// An inlined call, with its nesting depth.
    Call(u32),
}

/// The attributes of an entry.
struct Entry {
    id: EntryId,
    ranges: Vec<Range<OrigOffset>>,
    /// Whether the linker removed the entry's code.
    is_removed: bool,
    /// Whether the entry is an instance of a function that was also inlined.
    is_instance: bool,
    call: Option<Location>,
}

impl<'a> Walk<'_, 'a> {
    fn entries(&mut self) -> gimli::Result<()> {
        let map = self.map;
        let unit = map.unit(self.unit);
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            self.close_to(depth);
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            match abbreviation.tag() {
                gimli::DW_TAG_subprogram => {
                    let entry = self.entry(&mut entries, offset, abbreviation)?;
                    self.function(depth, entry);
                }
                gimli::DW_TAG_inlined_subroutine if !self.open.is_empty() => {
                    let entry = self.entry(&mut entries, offset, abbreviation)?;
                    self.call(depth, entry);
                }
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        offset: UnitOffset,
        abbreviation: &Abbreviation,
    ) -> gimli::Result<Entry> {
        let unit = self.map.unit(self.unit);
        let mut extent = Extent::default();
        let (mut file, mut line, mut column) = (None, None, None);
        let mut is_instance = false;
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
            let number = || u32::try_from(attribute.udata_value()?).ok();
            match attribute.name() {
                gimli::DW_AT_abstract_origin => is_instance = true,
                gimli::DW_AT_call_file => file = file_index(&attribute.value()),
                gimli::DW_AT_call_line => line = number(),
                gimli::DW_AT_call_column => column = number(),
                _ => extent.attribute(unit, &attribute)?,
            }
        }
        let sections = &self.map.sections;
        let mut ranges = Vec::new();
        extent.each(unit, |from, to| {
            let known = from < to && sections.body_at(from).is_some();
            let range = sections
                .offset(from)
                .zip(sections.offset(to))
                .filter(|_| known);
            ranges.extend(range.map(|(from, to)| from..to));
        })?;
        let file = file.and_then(|file| self.map.file(self.unit, file));
        let call = file.zip(line.filter(|line| *line > 0));
        let column = column.unwrap_or(0);
        let call = call.map(|(file, line)| Location { file, line, column });
        Ok(Entry {
            id: EntryId {
                unit: self.unit,
                offset,
            },
            ranges,
            is_removed: extent.is_removed(unit.header.address_size()),
            is_instance,
            call,
        })
    }

    fn function(&mut self, depth: isize, entry: Entry) {
        if entry.is_removed && entry.is_instance {
            self.into.inlined.push(entry.id);
        } else if entry.is_removed {
            self.into.removed.push(entry.id);
        }
        let functions = &mut self.into.functions;
        let first = functions.len();
        let stretch = |range| Subprogram {
            range,
            entry: entry.id,
            calls: 0..0,
        };
        functions.extend(entry.ranges.into_iter().map(stretch));
        self.open.push(Open {
            depth,
            kind: Kind::Function(first..functions.len()),
        });
        self.calls.push(Vec::new());
    }

    fn call(&mut self, depth: isize, entry: Entry) {
        let level = match self.open.last() {
            Some(Open {
                kind: Kind::Call(level),
                ..
            }) => level + 1,
            _ => 0,
        };
        self.open.push(Open {
            depth,
            kind: Kind::Call(level),
        });
        if let Some(calls) = self.calls.last_mut() {
            let Entry {
                id, ranges, call, ..
            } = entry;
            let call = |range| InlinedCall {
                depth: level,
                range,
                entry: id,
                call,
            };
            calls.extend(ranges.into_iter().map(call));
        }
    }

    /// Leaves all entries at this depth or deeper.
    fn close_to(&mut self, depth: isize) {
        while let Some(last) = self.open.pop_if(|open| open.depth >= depth) {
            if let Kind::Function(stretches) = last.kind {
                let mut inlined = self.calls.pop().unwrap_or_default();
                inlined.sort_by_key(|call| (call.depth, call.range.start));
                // There are fewer calls than bytes in the module.
                let start = self.into.calls.len() as u32;
                self.into.calls.append(&mut inlined);
                let end = self.into.calls.len() as u32;
                for function in &mut self.into.functions[stretches] {
                    function.calls = start..end;
                }
            }
        }
    }
}
