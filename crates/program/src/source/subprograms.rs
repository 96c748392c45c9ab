//! Finds functions, and the calls that the compiler inlined into them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use afterimage_ids::OrigOffset;

use super::entries::{Description, EntryId};
use super::{FileId, Location, SourceMap};
use crate::Fit;

mod walk;

/// The maximum number of inlined calls that are distinguished for one line of one function.
const CALLS: usize = 64;

/// One of the functions to which an operator belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedFrame {
    /// The function's linkage name (mangled), or its plain name if it has no other name.
    pub function: Option<String>,
    /// The place of the function's declaration.
    pub declared: Option<Location>,
    /// The place in this function. For the innermost frame, it is the place of the operator. For
    /// outer frames, it is the place of the inlined call.
    pub location: Option<Location>,
}

/// A function that was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedFunction {
    /// The function's linkage name (mangled), or its plain name if it has no other name.
    pub name: String,
    /// The place of the inlined function's declaration.
    pub declared: Location,
    /// The first line of the function at which the code of an inlined call begins.
    pub first: Option<Location>,
    /// The linkage names of the functions that contain its code, ascending.
    pub into: BTreeSet<String>,
}

/// All functions that DWARF describes, and their inlined calls.
#[derive(Debug, Default)]
pub(super) struct Subprograms {
    /// The stretches of functions' code, ascending by start.
    functions: Vec<Subprogram>,
    calls: Vec<InlinedCall>,
    /// The indices of the inlined calls on each line, ascending.
    calls_by_line: OnceLock<HashMap<(FileId, u32), Vec<u32>>>,
    /// The bodies that the functions' entries claim.
    pub(super) fit: Fit,
    /// The functions that the linker removed. A removed function that was inlined is also in
    /// `inlined`.
    removed: Vec<EntryId>,
    inlined: Vec<EntryId>,
    warnings: Vec<String>,
}

/// A stretch of a function's code.
#[derive(Debug)]
struct Subprogram {
    range: Range<OrigOffset>,
    entry: EntryId,
    /// The inlined calls in the stretch, ascending by depth and then by start.
    calls: Range<u32>,
}

/// A stretch of code that was inlined.
#[derive(Clone, Debug)]
struct InlinedCall {
    depth: u32,
    range: Range<OrigOffset>,
    entry: EntryId,
    /// The place of the call in the source.
    call: Option<Location>,
}

impl Subprograms {
    fn calls_by_line(&self) -> &HashMap<(FileId, u32), Vec<u32>> {
        self.calls_by_line.get_or_init(|| {
            let mut by_line: HashMap<(FileId, u32), Vec<u32>> = HashMap::new();
            for (index, call) in (0..).zip(&self.calls) {
                if let Some(at) = call.call {
                    by_line.entry((at.file, at.line)).or_default().push(index);
                }
            }
            by_line
        })
    }
}

impl SourceMap<'_> {
    /// Returns the functions that contain the code at an offset. The innermost inlined function is
    /// first, and the function that the module defines is last. If the functions are unknown, the
    /// list has only a frame for the location, if the location is known.
    ///
    /// The first call reads the debugging information entries. Later calls take O(depth · log
    /// inlined calls).
    pub fn inlined_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        self.frames(offset, Description::name)
    }

    /// Like [`inlined_frames`](Self::inlined_frames), but with names as written in the source,
    /// without their scope. Compilers include the arguments of a generic function in its name, so
    /// `branch<char>` and `branch<u8>` are different.
    pub fn written_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        self.frames(offset, Description::written_name)
    }

    fn frames(
        &self,
        offset: OrigOffset,
        name: impl Fn(&Description) -> Option<String>,
    ) -> Vec<InlinedFrame> {
        let mut location = self.locate(offset);
        let Some(function) = self.subprograms().at(offset) else {
            let frame = |location| InlinedFrame {
                function: None,
                declared: None,
                location: Some(location),
            };
            return location.map(frame).into_iter().collect();
        };
        let around = self.calls_around(function, offset);
        let mut stack: Vec<_> = around.map(|call| (call.entry, call.call)).collect();
        stack.insert(0, (function.entry, None));
        stack
            .into_iter()
            .rev()
            .map(|(entry, call)| {
                let description = self.describe(entry);
                InlinedFrame {
                    declared: description.declared(),
                    function: name(&description),
                    location: std::mem::replace(&mut location, call),
                }
            })
            .collect()
    }

    /// Returns the stretches of code of the calls that were inlined into the function at an offset,
    /// each with its depth and with the place of the call. They are ascending by depth and then by
    /// start, and stretches of the same depth do not overlap.
    pub fn inlined_calls(
        &self,
        offset: OrigOffset,
    ) -> impl Iterator<Item = (u32, Range<OrigOffset>, Option<Location>)> {
        let all = self.subprograms();
        let calls = all
            .at(offset)
            .map_or(0..0, |function| function.calls.clone());
        let calls = &all.calls[calls.start as usize..calls.end as usize];
        calls
            .iter()
            .map(|call| (call.depth, call.range.clone(), call.call))
    }

    /// Returns the inlined calls to which an offset of a function belongs, the outermost first.
    fn calls_around(
        &self,
        function: &Subprogram,
        offset: OrigOffset,
    ) -> impl Iterator<Item = &InlinedCall> {
        let calls = function.calls.start as usize..function.calls.end as usize;
        let calls = &self.subprograms().calls[calls];
        (0..).map_while(move |depth| {
            let key = |call: &InlinedCall| (call.depth, call.range.start) <= (depth, offset);
            let call = calls[..calls.partition_point(key)].last()?;
            (call.depth == depth && offset < call.range.end).then_some(call)
        })
    }

    /// Returns the starts, ascending, of the outermost calls that were inlined on a line or in one
    /// of its columns.
    ///
    /// The first call reads the debugging information entries. Later calls take O(calls on the line
    /// · log functions).
    pub fn inlined_at(&self, file: FileId, line: u32, column: Option<u32>) -> Vec<OrigOffset> {
        let all = self.subprograms();
        let here = all.calls_by_line().get(&(file, line));
        let here = here.map_or(&[][..], Vec::as_slice);
        let function_of = |index: u32| {
            let start = all.calls[index as usize].range.start;
            all.at(start).map(|function| function.range.start)
        };
        let mut starts = Vec::new();
        for calls in here.chunk_by(|&a, &b| function_of(a) == function_of(b)) {
            // Inner calls come later. A call begins with its first stretch.
            let mut seen: Vec<&InlinedCall> = Vec::new();
            for call in calls.iter().map(|&index| &all.calls[index as usize]) {
                let is_here = |at: Location| column.is_none_or(|column| column == at.column);
                let is_inside = |outer: &&InlinedCall| {
                    outer.entry == call.entry || outer.range.contains(&call.range.start)
                };
                // Ordinary lines have few calls.
                let is_new = seen.len() < CALLS && !seen.iter().any(is_inside);
                if is_new && call.call.is_some_and(is_here) {
                    seen.push(call);
                    starts.push(call.range.start);
                }
            }
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Returns the lines of a file on which calls were inlined, in any order.
    pub fn lines_of_inlined(&self, file: FileId) -> Vec<u32> {
        let lines = self.subprograms().calls_by_line().keys();
        let own = lines.filter(|(other, _)| *other == file);
        own.map(|(_, line)| *line).collect()
    }

    /// Returns the functions that the linker removed because nothing calls them, by name and
    /// declaration. They are in ascending order of declaration. Copies of other functions, and
    /// functions that were inlined, are excluded. O(functions · log).
    pub fn removed_functions(&self) -> Vec<(String, Location)> {
        let there = self.declarations();
        let mut found = Vec::new();
        for &entry in &self.subprograms().removed {
            let description = self.describe(entry);
            let declared = description
                .declared()
                .filter(|declared| !there.contains(declared));
            found.extend(description.name().zip(declared));
        }
        found.sort_by(|(name, at), (other, other_at)| (at, name).cmp(&(other_at, other)));
        found.dedup();
        found
    }

    /// Returns the functions that were inlined, ascending by declaration. O(inlined calls · log).
    pub fn inlined_functions(&self) -> Vec<InlinedFunction> {
        let mut found: BTreeMap<(Location, String), (Option<Location>, BTreeSet<String>)> =
            BTreeMap::new();
        let all = self.subprograms();
        for function in &all.functions {
            let calls = function.calls.start as usize..function.calls.end as usize;
            let into = self.describe(function.entry).name();
            for call in &all.calls[calls] {
                let description = self.describe(call.entry);
                let Some(declared) = description.declared() else {
                    continue;
                };
                let Some(name) = description.name() else {
                    continue;
                };
                let begins = self.locate(call.range.start);
                let begins =
                    begins.filter(|at| at.file == declared.file && at.line >= declared.line);
                let (first, functions) = found.entry((declared, name)).or_default();
                *first = [*first, begins].into_iter().flatten().min();
                functions.extend(into.clone());
            }
        }
        let each = found.into_iter();
        each.map(|((declared, name), (first, into))| InlinedFunction {
            name,
            declared,
            first,
            into,
        })
        .collect()
    }

    /// Whether code of one of the files begins a call that was inlined. O(inlined calls · log).
    pub fn has_inlined(&self, is_of: impl Fn(FileId) -> bool) -> bool {
        let all = self.subprograms();
        let calls = all.functions.iter().flat_map(|function| {
            &all.calls[function.calls.start as usize..function.calls.end as usize]
        });
        let mut begins = calls.filter_map(|call| self.locate(call.range.start));
        begins.any(|at| is_of(at.file))
    }

    /// Returns the starts of the functions that are declared on a line, ascending. O(functions).
    pub fn declared_at(&self, file: FileId, line: u32) -> Vec<OrigOffset> {
        let is_here = |function: &&Subprogram| {
            let declared = self.describe(function.entry).declared();
            declared.is_some_and(|at| (at.file, at.line) == (file, line))
        };
        let all = self.subprograms().functions.iter().filter(is_here);
        all.map(|function| function.range.start).collect()
    }

    /// Returns the declarations of functions that have code of their own, that were inlined, or
    /// that had code before optimisation.
    pub(super) fn declarations(&self) -> HashSet<Location> {
        let all = self.subprograms();
        let there = all.functions.iter().map(|function| function.entry);
        let there = there.chain(all.calls.iter().map(|call| call.entry));
        let there = there.chain(all.inlined.iter().copied());
        there
            .filter_map(|entry| self.describe(entry).declared())
            .collect()
    }

    /// Returns the linkage name of the function whose body contains an offset.
    pub fn linkage_name(&self, offset: OrigOffset) -> Option<String> {
        self.describe(self.subprograms().at(offset)?.entry).name()
    }

    /// Returns the declaration of the function whose body contains an offset.
    pub fn declared(&self, offset: OrigOffset) -> Option<Location> {
        self.describe(self.subprograms().at(offset)?.entry)
            .declared()
    }

    pub(super) fn subprograms(&self) -> &Subprograms {
        self.subprograms.get_or_init(|| {
            let mut subprograms = Subprograms::default();
            for unit in 0..self.units.len() as u32 {
                if let Err(error) = walk::scan(self, unit, &mut subprograms) {
                    let at = self.unit(unit).header.offset().0;
                    let warning =
                        format!("entries of the unit at 0x{at:x} of .debug_info: {error}");
                    subprograms.warnings.push(warning);
                }
            }
            // If the linker chose one of several definitions, all entries point to it. The first
            // entry that ends where the function ends is used. Other entries belong to code that is
            // not in the module.
            let functions = &mut subprograms.functions;
            let claims = functions.iter().map(|function| function.range.clone());
            let fit = Fit::of_functions(&self.sections.bodies, claims);
            functions.retain(|function| fit.fits(&function.range));
            functions.sort_by_key(|function| function.range.start);
            functions.dedup_by_key(|function| function.range.start);
            subprograms.fit = fit;
            subprograms
        })
    }
}

impl Subprograms {
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn at(&self, offset: OrigOffset) -> Option<&Subprogram> {
        let after = self
            .functions
            .partition_point(|function| function.range.start <= offset);
        self.functions[..after]
            .last()
            .filter(|function| offset < function.range.end)
    }
}
