//! Finds the function that a user's text names.

use std::collections::HashMap;

use afterimage_ids::{EntityRef, FuncId};
use thiserror::Error;

use super::parts::{Parts, squeezed};
use super::{Names, demangle};
use crate::nearest::nearest;
use crate::source::{FileId, Location, SourceMap};

/// The reason why a string does not name a function.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// The index is larger than the index of the last function.
    #[error("there is no function {index}; the last is {last}")]
    NoIndex {
        /// The requested index.
        index: u64,
        /// The index of the last function, or 0 if there is none.
        last: u64,
    },
    /// The text names more than one function.
    #[error("\"{query}\" is ambiguous: {}", listed(candidates))]
    Ambiguous {
        /// The name as the user wrote it.
        query: String,
        /// The functions that the text could mean, with their names.
        candidates: Vec<(FuncId, String)>,
    },
    /// The linker removed the function.
    #[error(
        "{name}, declared at {declared}, is not in the module: the linker removed it, and it was never called"
    )]
    Removed {
        /// The name of the function.
        name: String,
        /// The place of the function's declaration, such as `file.c:42`.
        declared: String,
    },
    /// The function has no code of its own.
    #[error(
        "{name}, declared at {declared}, has no code of its own: its calls were inlined{}; name a \
         line inside it{}",
        into_which(into),
        first.as_ref().map_or_else(String::new, |line| format!(", such as {line}"))
    )]
    Inlined {
        /// The name of the function.
        name: String,
        /// The place of the function's declaration, such as `file.c:42`.
        declared: String,
        /// The first line of the function that has code.
        first: Option<String>,
        /// The functions that contain its code.
        into: Vec<String>,
    },
    /// No function has this name.
    #[error("no function is called \"{query}\"{}", suggestion(nearest))]
    Unknown {
        /// The name as the user wrote it.
        query: String,
        /// Similar names, best first.
        nearest: Vec<String>,
    },
}

fn listed(candidates: &[(FuncId, String)]) -> String {
    const SHOWN: usize = 8;
    let mut text = candidates[..candidates.len().min(SHOWN)]
        .iter()
        .map(|(id, name)| format!("func[{}] {name}", id.as_u32()))
        .collect::<Vec<_>>()
        .join(", ");
    if candidates.len() > SHOWN {
        text.push_str(&format!(" and {} more", candidates.len() - SHOWN));
    }
    text
}

/// Names the first functions that contain inlined code.
fn into_which(functions: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut text = match functions {
        [] => return String::new(),
        functions => format!(
            " into {}",
            functions[..functions.len().min(SHOWN)].join(", ")
        ),
    };
    if functions.len() > SHOWN {
        text.push_str(&format!(" and {} more", functions.len() - SHOWN));
    }
    text
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// An index of functions by their names.
#[derive(Debug)]
pub(super) struct Lookup {
    raw: HashMap<Box<str>, Vec<FuncId>>,
    /// The functions, by their shown name in [squeezed] form. C++ templates are also listed without
    /// the leading type.
    shown: HashMap<Box<str>, Vec<FuncId>>,
    /// The functions, by the name of the last segment in their path.
    last: HashMap<Box<str>, Vec<FuncId>>,
}

impl Names {
    /// Finds the function that a string names. The first rule that matches wins:
    ///
    /// 1. a decimal index or `func[12]`;
    /// 2. the name as it is in the module;
    /// 3. the name as shown;
    /// 4. `func12`;
    /// 5. the name of an export;
    /// 6. a name that is unique if generic arguments, parameters, leading namespaces and the type
    ///    before a C++ template's name are omitted;
    /// 7. a mangled name, if the module contains its demangled form.
    ///
    /// White space is ignored. The first call demangles all names. Later calls take time
    /// proportional to the text and to the functions with the same last path segment.
    ///
    /// # Errors
    /// Returns an error if the text names no function or more than one. `source` lists the
    /// functions without their own code.
    pub fn find(&self, query: &str, source: &SourceMap<'_>) -> Result<FuncId, NameError> {
        if let Some(found) = self.search(query) {
            return found;
        }
        if let Some(why) = bodiless(query, source) {
            return Err(why);
        }
        let lookup = self.lookup.get_or_init(|| Lookup::build(self));
        let text = squeezed(query);
        let wanted = Parts::read(&text);
        // Functions of this name with other arguments are listed in the error.
        let others = lookup.fitting(self, &wanted.bare());
        let same = |name| {
            others
                .iter()
                .filter(|id| self.function(**id) == name)
                .count()
        };
        let named = |&id: &FuncId| match self.function(id) {
            name if same(name) > 1 => format!("func[{}] {name}", id.as_u32()),
            name => name.to_owned(),
        };
        let mut near = Vec::from_iter(others.iter().take(OTHERS).map(named));
        if near.is_empty() {
            let names = lookup.shown.keys().chain(lookup.last.keys());
            let mut names: Vec<&str> = names.map(|name| &**name).collect();
            names.sort_unstable();
            names.dedup();
            let found = nearest(query, names);
            near = found.into_iter().map(str::to_owned).collect();
        }
        Err(NameError::Unknown {
            query: query.to_string(),
            nearest: near,
        })
    }

    /// Like [`find`](Self::find), but without suggestions for an unknown name. Returns `None`
    /// unless exactly one function has the name.
    pub fn known(&self, query: &str) -> Option<FuncId> {
        self.search(query)?.ok()
    }

    /// Searches for the function with this name. Returns `None` if no function has the name.
    fn search(&self, query: &str) -> Option<Result<FuncId, NameError>> {
        let lookup = self.lookup.get_or_init(|| Lookup::build(self));
        let bracketed = query
            .strip_prefix("func[")
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(index) = decimal(bracketed.unwrap_or(query)) {
            return Some(self.index(index));
        }
        if let Some(functions) = lookup.raw.get(query) {
            return Some(self.only(query, functions.clone()));
        }
        let text = squeezed(query);
        if let Some(functions) = lookup.shown.get(&*text) {
            return Some(self.only(query, functions.clone()));
        }
        if let Some(index) = query.strip_prefix("func").and_then(decimal) {
            return Some(self.index(index));
        }
        if let Some(&function) = self.exports.get(query) {
            return Some(Ok(function));
        }
        let fitting = lookup.fitting(self, &Parts::read(&text));
        if !fitting.is_empty() {
            return Some(self.only(query, fitting));
        }
        // Linkers write demangled names into modules.
        let demangled = demangle(query).filter(|name| name != query)?;
        self.search(&demangled)
    }

    fn index(&self, index: u64) -> Result<FuncId, NameError> {
        let count = self.functions.len() as u64;
        if index < count {
            return Ok(FuncId::new(index as usize));
        }
        Err(NameError::NoIndex {
            index,
            last: count.saturating_sub(1),
        })
    }

    fn only(&self, query: &str, functions: Vec<FuncId>) -> Result<FuncId, NameError> {
        if let [function] = functions[..] {
            return Ok(function);
        }
        let named = |id: FuncId| (id, self.function(id).to_string());
        let candidates = functions.into_iter().map(named).collect();
        Err(NameError::Ambiguous {
            query: query.to_string(),
            candidates,
        })
    }
}

impl Lookup {
    fn build(names: &Names) -> Self {
        let mut lookup = Self {
            raw: HashMap::new(),
            shown: HashMap::new(),
            last: HashMap::new(),
        };
        let insert = |map: &mut HashMap<Box<str>, Vec<FuncId>>, name: &str, function| {
            map.entry(name.into()).or_default().push(function);
        };
        for function in names.functions() {
            let shown = names.function(function);
            let raw = names.raw(function);
            if let Some(raw) = raw {
                insert(&mut lookup.raw, raw, function);
            }
            let text = squeezed(shown);
            // A user who names a function does not mean a thunk to it.
            if raw.is_some() && !shown.contains(" thunk to ") {
                let parts = Parts::read(&text);
                insert(&mut lookup.last, parts.last(), function);
                if parts.start > 0 {
                    insert(&mut lookup.shown, &text[parts.start..], function);
                }
            }
            insert(&mut lookup.shown, &text, function);
        }
        lookup
    }

    /// Returns the functions that a user may mean by a name without its optional parts.
    fn fitting(&self, names: &Names, wanted: &Parts<'_>) -> Vec<FuncId> {
        let same = self.last.get(wanted.last()).map_or(&[][..], Vec::as_slice);
        let fits = |function: &FuncId| {
            let text = squeezed(names.function(*function));
            Parts::read(&text).fits(wanted)
        };
        same.iter().copied().filter(fits).collect()
    }
}

/// Returns the reason why the function that a query names has no code, if the debug information
/// describes such a function.
fn bodiless(query: &str, source: &SourceMap<'_>) -> Option<NameError> {
    let text = squeezed(query);
    let wanted = Parts::read(&text);
    without_code(source, |raw, _| {
        raw == query || {
            let name = demangle(raw).unwrap_or_else(|| raw.to_owned());
            Parts::read(&squeezed(&name)).fits(&wanted)
        }
    })
}

/// Returns the reason why the function declared on a line has no code, if the line declares such a
/// function.
pub fn declared_without_code(source: &SourceMap<'_>, file: FileId, line: u32) -> Option<NameError> {
    without_code(source, |_, at| (at.file, at.line) == (file, line))
}

/// Returns the reason why a function has no code of its own. Takes the first function whose name
/// and declaration satisfy `is_it`.
fn without_code(
    source: &SourceMap<'_>,
    is_it: impl Fn(&str, Location) -> bool,
) -> Option<NameError> {
    let line = |at: Location| format!("{}:{}", source.short_path(at.file), at.line);
    let shown = |raw: String| demangle(&raw).unwrap_or(raw);
    let mut removed = source.removed_functions().into_iter();
    if let Some((name, at)) = removed.find(|(name, at)| is_it(name, *at)) {
        return Some(NameError::Removed {
            name: shown(name),
            declared: line(at),
        });
    }
    let mut inlined = source.inlined_functions().into_iter();
    let found = inlined.find(|inlined| is_it(&inlined.name, inlined.declared))?;
    Some(NameError::Inlined {
        name: shown(found.name),
        declared: line(found.declared),
        first: found.first.map(line),
        into: found.into.into_iter().map(shown).collect(),
    })
}

/// The maximum number of functions with different arguments that an error names.
const OTHERS: usize = 5;

fn decimal(text: &str) -> Option<u64> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}
