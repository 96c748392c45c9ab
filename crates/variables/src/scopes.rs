//! Reads the scopes of a function, which are its blocks and the calls inlined into it, with their
//! variables.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use afterimage_ids::{FuncId, OrigOffset};
use gimli::DwTag;

use crate::DebugError;
use crate::debug::{Debug, Entry, EntryId, Next};

/// The scopes of one function. For queries about many offsets of a function, read its scopes only
/// once.
#[derive(Clone, Debug)]
pub struct FunctionScopes {
    /// The function that has these scopes.
    pub func: FuncId,
    pub(crate) body: Range<OrigOffset>,
    pub(crate) entry: EntryId,
    /// The scopes in the order of the entries, each before its inner scopes. The first is the
    /// function's own scope.
    pub(crate) scopes: Vec<Scope>,
    /// The variables that share their place in memory with another variable. Computed on request.
    pub(crate) shared: OnceLock<HashSet<EntryId>>,
}

/// A part of a function's source with its own variables.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The position of the enclosing scope. The first scope has its own position.
    pub(crate) parent: u32,
    pub(crate) depth: u32,
    /// The number of inlined calls that enclose the scope.
    pub(crate) inlined: u32,
    /// The entry of the inlined call or function to which the scope belongs.
    pub(crate) function: EntryId,
    /// Whether the scope is the whole scope of this call or function.
    pub(crate) whole: bool,
    /// The scope that this scope is an instance of. The origin may have variables that are missing
    /// here.
    pub(crate) origin: Option<EntryId>,
    /// The code of the scope. A block without its own code has the enclosing scope's code. The
    /// first scope has the function's body.
    pub(crate) code: Arc<[Range<OrigOffset>]>,
    own_code: bool,
    pub(crate) variables: Vec<EntryId>,
}

impl FunctionScopes {
    pub(crate) fn read(
        debug: &Debug<'_>,
        func: FuncId,
        body: Range<OrigOffset>,
        entry: EntryId,
    ) -> Result<Self, DebugError> {
        let mut scopes: Vec<Scope> = Vec::new();
        // These are the open scopes, with their depths among the entries.
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut ranges = debug.size();
        debug.walk(
            entry.unit,
            Some(entry.offset),
            interesting,
            |depth, entry| {
                while open.pop_if(|(own, _)| *own >= depth).is_some() {}
                let parent = open.last().map(|(_, scope)| *scope);
                match entry.tag {
                    gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                        if let Some(parent) = parent {
                            scopes[parent as usize].variables.push(entry.id);
                        }
                        return Ok(Next::Over);
                    }
                    // Nested functions have their own scopes.
                    gimli::DW_TAG_subprogram if parent.is_some() => return Ok(Next::Over),
                    gimli::DW_TAG_subprogram
                    | gimli::DW_TAG_lexical_block
                    | gimli::DW_TAG_inlined_subroutine => {}
                    // The parts of types are not variables of the function.
                    _ => return Ok(Next::Over),
                }
                let around = parent.map(|parent| (parent, &scopes[parent as usize]));
                let scope = scope(debug, &entry, &body, around)?;
                let left = ranges.checked_sub(if scope.own_code { scope.code.len() } else { 0 });
                ranges = left.ok_or(DebugError::TooMuch { what: "ranges" })?;
                // Each scope takes at least a byte of a section of less than 4 GiB.
                open.push((depth, scopes.len() as u32));
                scopes.push(scope);
                Ok(Next::Into)
            },
        )?;
        Ok(Self {
            func,
            body,
            entry,
            scopes,
            shared: OnceLock::new(),
        })
    }

    /// Returns the scopes that contain an offset, innermost first. A block counts if its own code
    /// contains the offset. The surrounding blocks then also count, because some tools give them an
    /// invalid end. O(scopes · log scopes + ranges).
    pub(crate) fn around(&self, at: OrigOffset) -> Vec<&Scope> {
        let mut inside = vec![false; self.scopes.len()];
        // This is the function or inlined call to which each scope belongs.
        let mut calls = vec![0; self.scopes.len()];
        for (i, scope) in self.scopes.iter().enumerate() {
            let parent = scope.parent as usize;
            calls[i] = if scope.whole { i } else { calls[parent] };
            let around = if scope.own_code && !scope.whole {
                calls[i]
            } else {
                parent
            };
            let here = || scope.code.iter().any(|range| range.contains(&at));
            inside[i] = (i == 0 || inside[around]) && (!scope.own_code || here());
        }
        // A scope comes before its inner scopes.
        for (i, scope) in self.scopes.iter().enumerate().rev() {
            inside[scope.parent as usize] |= inside[i];
        }
        let all = self.scopes.iter().zip(inside);
        let mut found = Vec::from_iter(all.filter_map(|(scope, inside)| inside.then_some(scope)));
        found.sort_by_key(|scope| std::cmp::Reverse(scope.depth));
        found
    }
}

fn scope<'a>(
    debug: &Debug<'a>,
    entry: &Entry<'a>,
    body: &Range<OrigOffset>,
    parent: Option<(u32, &Scope)>,
) -> Result<Scope, DebugError> {
    let call = entry.tag == gimli::DW_TAG_inlined_subroutine;
    let (code, own_code) = match (debug.code(entry)?, parent) {
        // The function's own code ends with its body, even if the entry has another end.
        (_, None) => ([body.clone()].into(), false),
        (Some(code), _) => (code, true),
        // A block without its own code has its parent's code, but an inlined call has no code then.
        (None, Some((_, around))) if !call => (around.code.clone(), false),
        (None, Some(_)) => ([].into(), true),
    };
    let (depth, inlined, function) = match parent {
        None => (0, 0, entry.id),
        Some((_, around)) if call => (around.depth + 1, around.inlined + 1, entry.id),
        Some((_, around)) => (around.depth + 1, around.inlined, around.function),
    };
    // A specification's parameters are not variables, unlike those of an abstract instance.
    let abstract_origin = entry.value(gimli::DW_AT_abstract_origin);
    Ok(Scope {
        parent: parent.map_or(0, |(parent, _)| parent),
        depth,
        inlined,
        function,
        whole: call || parent.is_none(),
        origin: abstract_origin.and_then(|origin| debug.reference(entry.id.unit, origin)),
        code,
        own_code,
        variables: Vec::new(),
    })
}

fn interesting(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_subprogram
            | gimli::DW_TAG_lexical_block
            | gimli::DW_TAG_inlined_subroutine
            | gimli::DW_TAG_variable
            | gimli::DW_TAG_formal_parameter
            | gimli::DW_TAG_subroutine_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_namespace
    )
}
