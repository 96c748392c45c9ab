//! Where the entries of functions and global variables are: one pass over all units, made when first asked.

use std::collections::HashMap;
use std::ops::Range;

use afterimage_ids::OrigOffset;
use gimli::DwTag;

use crate::DebugError;
use crate::debug::{Debug, EntryId, Next};

/// The functions and global variables of a module.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Ascending by where they begin, no two at one place.
    functions: Vec<(Range<OrigOffset>, EntryId)>,
    pub(crate) globals: Vec<GlobalEntry>,
    /// Namespaces and types that global variables are in.
    pub(crate) spaces: Vec<Space>,
    /// In which space the declarations of static members are.
    declarations: HashMap<EntryId, u32>,
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
    /// The space around it, or [`NO_SPACE`].
    pub(crate) parent: u32,
}

/// The outermost space.
pub(crate) const NO_SPACE: u32 = u32::MAX;

impl Index {
    /// Reads the entries of all units. O(entries · log).
    pub(crate) fn build(debug: &Debug<'_>) -> Self {
        let mut index = Self::default();
        let mut functions = Vec::new();
        let mut ranges = debug.size();
        for unit in 0..debug.units() {
            if let Err(error) = index.unit(debug, unit, &mut functions, &mut ranges) {
                index.warnings.push(error.to_string());
            }
        }
        // Where the linker chose one of several definitions, all entries point to it. The entry that ends where the
        // function ends is taken, and of equals the first.
        functions.sort_by_key(|(range, _): &(Range<OrigOffset>, _)| {
            let body = debug.sections.body_at(range.start);
            (range.start, body.is_none_or(|body| body.end != range.end))
        });
        functions.dedup_by_key(|(range, _)| range.start);
        index.functions = functions;
        index
    }

    fn unit(
        &mut self,
        debug: &Debug<'_>,
        unit: u32,
        functions: &mut Vec<(Range<OrigOffset>, EntryId)>,
        ranges: &mut usize,
    ) -> Result<(), DebugError> {
        // The open spaces with their depths; and how deep the open function is.
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut function = None;
        debug.walk(unit, None, interesting, |depth, entry| {
            while open.pop_if(|(own, _)| *own >= depth).is_some() {}
            function = function.filter(|own| *own < depth);
            let space = open.last().map_or(NO_SPACE, |(_, space)| *space);
            match entry.tag {
                gimli::DW_TAG_subprogram => {
                    let code = debug.code(&entry)?.unwrap_or_default();
                    let left = ranges.checked_sub(code.len());
                    *ranges = left.ok_or(DebugError::TooMuch { what: "ranges" })?;
                    functions.extend(code.iter().map(|range| (range.clone(), entry.id)));
                    function = function.or(Some(depth));
                }
                // What is in a function is found with its scopes.
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
                    // Each takes at least a byte of a section of less than 4 GiB.
                    open.push((depth, self.spaces.len() as u32));
                    self.spaces.push(Space {
                        entry,
                        parent: space,
                    });
                }
            }
            Ok(Next::Into)
        })?;
        Ok(())
    }

    /// The function that an offset is in.
    pub(crate) fn function_at(&self, at: OrigOffset) -> Option<EntryId> {
        let after = self
            .functions
            .partition_point(|(range, _)| range.start <= at);
        let (range, entry) = self.functions[..after].last()?;
        (at < range.end).then_some(*entry)
    }

    /// The first function that begins in a body.
    pub(crate) fn function_in(&self, body: &Range<OrigOffset>) -> Option<EntryId> {
        let first = self
            .functions
            .partition_point(|(range, _)| range.start < body.start);
        let (range, entry) = self.functions.get(first)?;
        (range.start < body.end).then_some(*entry)
    }

    /// The innermost `most` namespaces and types that a global variable is in, innermost first.
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
            // A member may be defined in another namespace than its class.
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
