//! Global variables by name.

use std::collections::HashSet;

use crate::debug::EntryId;
use crate::index::GlobalEntry;
use crate::types::TypeRef;
use crate::variable::{Variable, VariableKind};
use crate::{DebugError, PathError, Variables};

/// A global variable: of a file in C, of a namespace in C++, of a module in Rust, or a static member of a class.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its own name.
    pub name: String,
    /// Whether other compilation units see it.
    pub external: bool,
    pub(crate) entry: GlobalEntry,
}

impl Variables<'_> {
    /// All global variables that have a name, in the order of the units.
    ///
    /// The first call reads all entries; any call takes O(global variables).
    ///
    /// # Errors
    /// If names are longer than the debug information can hold honestly.
    pub fn globals(&self) -> Result<Vec<Global>, DebugError> {
        let index = self.index();
        let mut left = 4 * self.debug.size() + (1 << 20);
        let mut found = Vec::new();
        for &global in &index.globals {
            // A broken entry does not hide the others; what is asked about it gives the error.
            let name = self.debug.name(global.entry);
            let Some(name) = name.unwrap_or_else(|_| Some("<broken>".into())) else {
                continue;
            };
            // Entries may share one long name.
            let rest = left.checked_sub(name.len());
            left = rest.ok_or(DebugError::TooMuch { what: "long names" })?;
            let external = self.debug.attribute(global.entry, gimli::DW_AT_external);
            found.push(Global {
                name,
                external: external.is_ok_and(|external| external.is_some()),
                entry: global,
            });
        }
        Ok(found)
    }

    /// The compilation unit of a global variable: the path of its source as the compiler was given it.
    pub fn unit_name(&self, global: &Global) -> Option<String> {
        let name = self.debug.unit(global.entry.entry.unit).name?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The name with its namespaces and classes, `geo::Circle::count`.
    ///
    /// # Errors
    /// If an entry is broken.
    pub fn full_name(&self, global: &Global) -> Result<String, DebugError> {
        let mut parts = vec![global.name.clone()];
        for space in self
            .index()
            .spaces_of(&self.debug, global.entry, usize::MAX)?
        {
            parts.push(self.space_name(space)?);
        }
        parts.reverse();
        Ok(parts.join("::"))
    }

    fn space_name(&self, space: EntryId) -> Result<String, DebugError> {
        let name = self.debug.name(space)?;
        Ok(name.unwrap_or_else(|| "<anonymous>".into()))
    }

    /// A global variable in the form in which it is located.
    ///
    /// # Errors
    /// If its entry is broken.
    pub fn global_variable(&self, global: &Global) -> Result<Variable, DebugError> {
        let entry = global.entry.entry;
        Ok(Variable {
            name: global.name.clone(),
            type_ref: TypeRef::new(self.debug.type_of(entry)?),
            kind: VariableKind::Global,
            inlined: 0,
            function: None,
            scope: [].into(),
            shadowed: false,
            line: self.line(entry)?,
            entry,
            frame: None,
        })
    }

    /// The global variable that a name means, possibly with some of its namespaces: `count`, `Circle::count`,
    /// `geo::Circle::count`.
    ///
    /// A declaration stands back behind the definition, and an equal definition of another unit at the same place
    /// behind the first. O(global variables).
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn find_global(&self, query: &str) -> Result<Variable, PathError> {
        let mut parts = query.rsplit("::");
        let own = parts.next().unwrap_or_default();
        let spaces: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let globals = self.globals()?;
        let mut found = Vec::new();
        for global in globals.iter().filter(|global| global.name == own) {
            let inside = self
                .index()
                .spaces_of(&self.debug, global.entry, spaces.len())?;
            let mut matches = inside.len() >= spaces.len();
            for (space, wanted) in inside.into_iter().zip(&spaces) {
                matches = matches && self.space_name(space)? == *wanted;
            }
            if matches {
                found.push(global);
            }
        }
        // The same variable may be described by many units, or by some without a place.
        if found.len() > 1 {
            let place = |global: &Global| self.locate_statically(&global.entry.entry);
            let mut places = HashSet::new();
            let mut kept = Vec::new();
            for &global in &found {
                let place = place(global);
                if let Some(place) = place
                    && places.insert(place)
                {
                    kept.push(global);
                }
            }
            found.truncate(1);
            if !kept.is_empty() {
                found = kept;
            }
        }
        match found[..] {
            [one] => Ok(self.global_variable(one)?),
            [] => {
                let names = globals.iter().map(|global| global.name.as_str());
                Err(PathError::NoVariable {
                    name: query.into(),
                    nearest: crate::nearest::nearest(own, names),
                })
            }
            _ => {
                let describe = |global: &&Global| {
                    let unit = self.unit_name(global).unwrap_or_default();
                    Ok(format!("{} ({unit})", self.full_name(global)?))
                };
                let candidates = found.iter().take(10).map(describe);
                Err(PathError::Ambiguous {
                    name: query.into(),
                    candidates: candidates.collect::<Result<_, DebugError>>()?,
                })
            }
        }
    }
}
