//! Indexes the entries of functions and global variables, in one pass over all units at the first
//! query.

use std::collections::HashMap;
use std::ops::Range;

use afterimage_ids::OrigOffset;
use afterimage_program::Fit;
use gimli::DwTag;

use crate::DebugError;
use crate::debug::{Debug, Entry, EntryId, Next, local_of};

/// The functions and global variables of a module.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Shows how the functions' entries match the bodies in the module.
    pub(crate) fit: Fit,
    /// The described functions, ascending by start. No two start at the same place.
    functions: Vec<(Range<OrigOffset>, EntryId)>,
    pub(crate) globals: Vec<GlobalEntry>,
    /// The namespaces and types that contain global variables.
    pub(crate) spaces: Vec<Space>,
    /// The space of each declaration of a static member.
    declarations: HashMap<EntryId, u32>,
    /// Static variables of functions, each with its function's entry, in the order of the entries.
    pub(crate) statics: Vec<(EntryId, EntryId)>,
    /// The static variables of each function, by its entry.
    statics_of: HashMap<EntryId, Vec<EntryId>>,
    /// The locals that point to functions' frames according to the debug information, each with the
    /// start and the entry of its function.
    frames: Vec<(OrigOffset, EntryId, u32)>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobalEntry {
    pub(crate) entry: EntryId,
    /// The space of the entry, or [`NO_SPACE`].
    pub(crate) space: u32,
}

/// A namespace or a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) entry: EntryId,
    /// The enclosing space, or [`NO_SPACE`].
    pub(crate) parent: u32,
}

/// The number of the outermost space, outside every namespace and type.
pub(crate) const NO_SPACE: u32 = u32::MAX;

impl Index {
    /// Reads the entries of all units. O(entries · log entries).
    pub(crate) fn build(debug: &Debug<'_>) -> Self {
        let mut index = Self::default();
        let mut functions = Vec::new();
        let mut ranges = debug.size();
        for unit in 0..debug.units() {
            if let Err(error) = index.unit(debug, unit, &mut functions, &mut ranges) {
                index.warnings.push(error.to_string());
            }
        }
        // If the linker chose one of several definitions, all their entries point to it. Keep the
        // first entry that ends where the function ends. Other entries belong to code that is not
        // in the module.
        let claims = functions
            .iter()
            .map(|(range, _): &(Range<OrigOffset>, _)| range.clone());
        index.fit = Fit::of_functions(debug.sections.bodies(), claims);
        functions.retain(|(range, _)| index.fit.fits(range));
        functions.sort_by_key(|(range, _)| range.start);
        functions.dedup_by_key(|(range, _)| range.start);
        index.functions = functions;
        let mut frames = std::mem::take(&mut index.frames);
        frames.retain(|(start, entry, _)| index.function(&(*start..*start)) == Some(*entry));
        index.frames = frames;
        for (variable, function) in &index.statics {
            let all = index.statics_of.entry(*function).or_default();
            all.push(*variable);
        }
        index
    }

    fn unit(
        &mut self,
        debug: &Debug<'_>,
        unit: u32,
        functions: &mut Vec<(Range<OrigOffset>, EntryId)>,
        ranges: &mut usize,
    ) -> Result<(), DebugError> {
        // The open spaces with their depths, and the depth of the open function.
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut function: Option<isize> = None;
        // The open functions with their source positions, and static variables whose function is
        // unknown.
        let mut inside: Vec<(isize, EntryId)> = Vec::new();
        let (mut declared, mut orphans) = (Vec::new(), Vec::new());
        let encoding = debug.unit(unit).encoding();
        debug.walk(unit, None, interesting, |depth, entry| {
            while open.pop_if(|(own, _)| *own >= depth).is_some() {}
            while inside.pop_if(|(own, _)| *own >= depth).is_some() {}
            function = function.filter(|own| *own < depth);
            let space = open.last().map_or(NO_SPACE, |(_, space)| *space);
            match entry.tag {
                gimli::DW_TAG_subprogram => {
                    inside.push((depth, entry.id));
                    if let Some(place) = declaration(&entry) {
                        declared.push((place, entry.id));
                    }
                    let code = debug.code(&entry)?.unwrap_or_default();
                    let left = ranges.checked_sub(code.len());
                    *ranges = left.ok_or(DebugError::TooMuch { what: "ranges" })?;
                    functions.extend(code.iter().map(|range| (range.clone(), entry.id)));
                    let frame = entry.value(gimli::DW_AT_frame_base);
                    if let (Some(range), Some(gimli::AttributeValue::Exprloc(frame))) =
                        (code.first(), frame)
                        && let Some(local) = local_of(frame, encoding)
                    {
                        self.frames.push((range.start, entry.id, local));
                    }
                    function = function.or(Some(depth));
                }
                gimli::DW_TAG_variable if function.is_some() => {
                    if let (true, Some((_, function))) =
                        (is_static(&entry, encoding), inside.last())
                    {
                        self.statics.push((entry.id, *function));
                        orphans.extend(
                            declaration(&entry).map(|place| (place, self.statics.len() - 1)),
                        );
                    }
                }
                // Other contents of a function are read with its scopes.
                _ if function.is_some() => {}
                gimli::DW_TAG_variable | gimli::DW_TAG_member => {
                    let declared = entry.flag(gimli::DW_AT_declaration);
                    let external = entry.flag(gimli::DW_AT_external);
                    if declared || entry.tag == gimli::DW_TAG_member {
                        if (declared || external) && space != NO_SPACE {
                            self.declarations.insert(entry.id, space);
                        }
                    } else {
                        self.globals.push(GlobalEntry {
                            entry: entry.id,
                            space,
                        });
                    }
                }
                _ => {
                    let entry = entry.id;
                    // Each space takes at least a byte of a section of less than 4 GiB.
                    open.push((depth, self.spaces.len() as u32));
                    self.spaces.push(Space {
                        entry,
                        parent: space,
                    });
                }
            }
            Ok(Next::Into)
        })?;
        // If a function is inlined everywhere, LLVM puts its static variables into an otherwise
        // empty function entry. These variables belong to the function declared last before them in
        // the file.
        declared.sort_unstable();
        for ((file, line), position) in orphans {
            let (_, function) = &mut self.statics[position];
            let holder = debug.entry(*function)?;
            if debug.name(*function)?.is_some() || holder.value(gimli::DW_AT_low_pc).is_some() {
                continue;
            }
            let before = declared.partition_point(|(place, _)| *place <= (file, line));
            if let Some(((own, _), found)) = declared[..before].last()
                && *own == file
            {
                *function = *found;
            }
        }
        Ok(())
    }

    /// Returns the static variables of the functions with these entries.
    pub(crate) fn statics_of(&self, functions: &[EntryId]) -> impl Iterator<Item = EntryId> {
        let each = functions.iter().filter_map(|id| self.statics_of.get(id));
        each.flatten().copied()
    }

    /// Whether a local that should point to a function's frame contains another value.
    pub(crate) fn has_foreign_frame(&self, debug: &Debug<'_>) -> bool {
        let mut frames = self.frames.iter();
        frames.any(|&(start, _, local)| debug.is_frame(start, local) == Some(false))
    }

    /// Returns the function with this body.
    pub(crate) fn function(&self, body: &Range<OrigOffset>) -> Option<EntryId> {
        let start = |(range, _): &(Range<OrigOffset>, _)| range.start;
        let found = self
            .functions
            .binary_search_by_key(&body.start, start)
            .ok()?;
        Some(self.functions[found].1)
    }

    /// Returns the innermost `most` namespaces and types that contain a global variable, innermost
    /// first.
    pub(crate) fn spaces_of(
        &self,
        debug: &Debug<'_>,
        global: GlobalEntry,
        most: usize,
    ) -> Result<Vec<EntryId>, DebugError> {
        let mut space = global.space;
        if space == NO_SPACE {
            let entry = debug.entry(global.entry)?;
            let declaration = debug
                .origin(&entry)
                .and_then(|origin| self.declarations.get(&origin));
            space = declaration.copied().unwrap_or(NO_SPACE);
        } else if let Some(origin) = debug.origin(&debug.entry(global.entry)?) {
            // A member may be defined in a different namespace from its class.
            space = self.declarations.get(&origin).copied().unwrap_or(space);
        }
        let mut found = Vec::new();
        while let Some(own) = self.spaces.get(space as usize)
            && found.len() < most
        {
            found.push(own.entry);
            space = own.parent;
        }
        Ok(found)
    }
}

/// Returns the file and the line of a declaration.
fn declaration(entry: &Entry<'_>) -> Option<(u64, u64)> {
    let file = match entry.value(gimli::DW_AT_decl_file)? {
        gimli::AttributeValue::FileIndex(file) => file,
        other => other.udata_value()?,
    };
    Some((file, entry.number(gimli::DW_AT_decl_line)?))
}

/// Whether a function's variable has the same place during the whole run.
fn is_static(entry: &Entry<'_>, encoding: gimli::Encoding) -> bool {
    let Some(gimli::AttributeValue::Exprloc(location)) = entry.value(gimli::DW_AT_location) else {
        return false;
    };
    let mut rest = location.0;
    matches!(
        gimli::Operation::parse(&mut rest, encoding),
        Ok(gimli::Operation::Address { .. }
            | gimli::Operation::AddressIndex { .. }
            | gimli::Operation::WasmGlobal { .. })
    )
}

fn interesting(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_subprogram
            | gimli::DW_TAG_variable
            | gimli::DW_TAG_member
            | gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
    )
}
