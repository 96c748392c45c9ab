//! Finds global variables by name.

use std::collections::HashSet;

use crate::debug::EntryId;
use crate::index::GlobalEntry;
use crate::nearest::nearest;
use crate::place::Piece;
use crate::types::TypeRef;
use crate::variable::{Variable, VariableKind};
use crate::{DebugError, PathError, Variables};

/// A variable of a file in C, of a namespace in C++ or of a module in Rust, or a static member of a
/// class.
#[derive(Clone, Debug)]
pub struct Global {
    /// The variable's own name, without namespaces.
    pub name: String,
    /// Whether the variable is visible to other compilation units.
    pub external: bool,
    pub(crate) entry: GlobalEntry,
}

impl Variables<'_> {
    /// Returns all named global variables, in the order of the units.
    ///
    /// The first call reads all entries. Each call takes O(global variables).
    ///
    /// # Errors
    /// Returns an error if the names are too long in total for the size of the debug information.
    pub fn globals(&self) -> Result<Vec<Global>, DebugError> {
        let index = self.index();
        let mut left = 4 * self.debug.size() + (1 << 20);
        let mut found = Vec::new();
        for &global in &index.globals {
            // A broken entry does not hide the others. A query about it returns the error.
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

    /// Returns the compilation unit of a global variable, as the path of its source given to the
    /// compiler.
    pub fn unit_name(&self, global: &Global) -> Option<String> {
        let name = self.debug.unit(global.entry.entry.unit).name?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Returns the name with its namespaces and classes, such as `geo::Circle::count`.
    ///
    /// # Errors
    /// Returns an error if an entry is broken.
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
        Ok(name.unwrap_or_else(|| "(anonymous namespace)".into()))
    }

    /// Returns a global variable in the form that can be located.
    ///
    /// # Errors
    /// Returns an error if its entry is broken.
    pub fn global_variable(&self, global: &Global) -> Result<Variable, DebugError> {
        self.global_at(global.name.clone(), global.entry.entry)
    }

    fn global_at(&self, name: String, entry: EntryId) -> Result<Variable, DebugError> {
        Ok(Variable {
            name,
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

    /// Finds a global variable by name. Some of its namespaces may qualify the name, as in `count`,
    /// `Circle::count` or `geo::Circle::count`. A variable with exactly this full name takes
    /// precedence. If no global variable has the name, finds a function's static variable.
    ///
    /// A definition takes precedence over a declaration. If equal definitions have the same place,
    /// the first unit's definition is used. O(global variables).
    ///
    /// # Errors
    /// Returns an error if there is no such variable, or there are several.
    pub fn find_global(&self, query: &str) -> Result<Variable, PathError> {
        self.find_global_from(query, None)
    }

    /// Like [`find_global`](Self::find_global), from the perspective of a unit, whose own variables
    /// take precedence.
    pub(crate) fn find_global_from(
        &self,
        query: &str,
        unit: Option<u32>,
    ) -> Result<Variable, PathError> {
        let mut parts = query.rsplit("::");
        let own = parts.next().unwrap_or_default();
        let spaces: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let globals = self.globals()?;
        let mut found = Vec::new();
        let mut exact = Vec::new();
        for global in globals.iter().filter(|global| global.name == own) {
            // Request one space more than the name has, to see whether its namespaces are complete.
            let most = spaces.len() + 1;
            let inside = self.index().spaces_of(&self.debug, global.entry, most)?;
            let mut matches = inside.len() >= spaces.len();
            for (space, wanted) in inside.iter().zip(&spaces) {
                matches = matches && self.space_name(*space)? == *wanted;
            }
            if matches {
                found.push(global);
                exact.extend((inside.len() == spaces.len()).then_some(global));
            }
        }
        found = self.places_once(found);
        for mut better in [
            exact,
            found
                .iter()
                .copied()
                .filter(|global| Some(global.entry.entry.unit) == unit)
                .collect(),
        ] {
            if found.len() > 1 {
                better = self.places_once(better);
                if better.len() == 1 {
                    found = better;
                }
            }
        }
        match found[..] {
            [one] => Ok(self.global_variable(one)?),
            [] => {
                if let (None, Some(found)) = (unit, self.find_static(query, own, &spaces)?) {
                    return Ok(found);
                }
                let names = globals.iter().map(|global| global.name.as_str());
                let nearest = nearest(own, names);
                let lacks = || self.lacks().or_else(|| self.undescribed());
                Err(PathError::NoVariable {
                    name: query.into(),
                    // If a similar name exists, no other reason is needed.
                    lacks: nearest.is_empty().then(lacks).flatten(),
                    nearest,
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

    /// Finds a function's static variable by name. The name of its function may qualify the name,
    /// as in `calls` or `note::calls`.
    fn find_static(
        &self,
        query: &str,
        own: &str,
        spaces: &[&str],
    ) -> Result<Option<Variable>, PathError> {
        let mut found: Vec<(EntryId, EntryId, Option<Vec<Piece>>)> = Vec::new();
        // The namespaces of a function are unknown here.
        if spaces.len() > 1 {
            return Ok(None);
        }
        for &(entry, function) in &self.index().statics {
            if self.debug.name(entry)?.as_deref() != Some(own) {
                continue;
            }
            let function_name = self.debug.name(function)?;
            if spaces
                .first()
                .is_some_and(|space| Some(*space) != function_name.as_deref())
            {
                continue;
            }
            // Each instance of a function may describe the variable.
            let place = self.locate_statically(&entry);
            if !found.iter().any(|(_, _, known)| *known == place) {
                found.push((entry, function, place));
            }
        }
        match found[..] {
            [] => Ok(None),
            [(entry, ..)] => Ok(Some(self.global_at(own.to_owned(), entry)?)),
            _ => {
                let describe = |(_, function, _): &(EntryId, EntryId, _)| {
                    let function = self.debug.name(*function)?.unwrap_or_default();
                    Ok(format!("{function}::{own}"))
                };
                let candidates = found.iter().take(10).map(describe);
                Err(PathError::Ambiguous {
                    name: query.into(),
                    candidates: candidates.collect::<Result<_, DebugError>>()?,
                })
            }
        }
    }

    /// Removes each variable at the same place as an earlier variable, and variables without a
    /// place. Many units may describe one variable, and some give no place.
    fn places_once<'g>(&self, found: Vec<&'g Global>) -> Vec<&'g Global> {
        if found.len() < 2 {
            return found;
        }
        let mut places = HashSet::new();
        let first = found[0];
        let new = |global: &&Global| {
            let place = self.locate_statically(&global.entry.entry);
            place.is_some_and(|place| places.insert(place))
        };
        let kept: Vec<_> = found.into_iter().filter(new).collect();
        if kept.is_empty() { vec![first] } else { kept }
    }
}
