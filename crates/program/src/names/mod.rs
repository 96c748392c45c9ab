//! The names of functions, locals and labels.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use afterimage_ids::{EntityRef, FuncId};
use wasmparser::{BinaryReader, Name, NameMap, NameSectionReader};

use crate::sections::Sections;
use crate::{Program, SourceMap};

mod demangle;
mod lookup;
mod parts;
mod short;

pub use demangle::demangle;
pub use lookup::{NameError, declared_without_code};
pub use short::{short_function, short_type, without_parameters};

/// The names of a module.
///
/// A function's name is its entry in the name section, its first export name (or `module.field` for
/// an import), or its linkage name in DWARF, whichever is available first. Otherwise, the name is
/// `func[12]`.
#[derive(Debug)]
pub struct Names {
    functions: Vec<FunctionName>,
    locals: Indirect,
    labels: Indirect,
    warnings: Vec<String>,
    /// The exported functions, by the names of their exports.
    exports: HashMap<Box<str>, FuncId>,
    lookup: OnceLock<lookup::Lookup>,
}

#[derive(Debug)]
struct FunctionName {
    raw: Option<Box<str>>,
    shown: OnceLock<Box<str>>,
}

impl Names {
    /// Collects the names of a program. `bytes` is the module from which the program was parsed.
    ///
    /// DWARF is read only for functions that have no other name. Takes linear time in the size of
    /// the name section. Names are demangled on request.
    pub fn build(program: &Program, bytes: &[u8], source: &SourceMap<'_>) -> Self {
        Self::build_with(program, bytes, || source)
    }

    /// Like [`build`](Self::build), but builds the source map only if a function has no other name.
    pub fn build_with<'s, 'b: 's>(
        program: &Program,
        bytes: &[u8],
        source: impl Fn() -> &'s SourceMap<'b>,
    ) -> Self {
        let count = program.imports.len() + program.functions.len();
        let mut raw: Vec<Option<Box<str>>> = vec![None; count];
        let mut names = Self {
            functions: Vec::new(),
            locals: Indirect::default(),
            labels: Indirect::default(),
            warnings: Vec::new(),
            exports: program
                .exports
                .iter()
                .map(|(name, id)| (name.as_str().into(), *id))
                .collect(),
            lookup: OnceLock::new(),
        };
        let sections = Sections::read(bytes);
        if let Some((data, at)) = sections.custom("name")
            && let Err(error) = names.read_section(data, at, &mut raw)
        {
            names.warnings.push(format!("name section: {error}"));
        }
        for (name, function) in &program.exports {
            let slot = &mut raw[function.index()];
            if slot.is_none() && !name.is_empty() {
                *slot = Some(name.as_str().into());
            }
        }
        for (slot, import) in raw.iter_mut().zip(&program.imports) {
            slot.get_or_insert_with(|| format!("{}.{}", import.module, import.name).into());
        }
        for function in &program.functions {
            let slot = &mut raw[function.id.index()];
            if slot.is_none() {
                *slot = source().linkage_name(function.body.start).map(Into::into);
            }
        }
        let main = main(&raw);
        names.functions = raw
            .into_iter()
            .map(|raw| FunctionName {
                raw,
                shown: OnceLock::new(),
            })
            .collect();
        if let Some(main) = main {
            names.functions[main].shown = OnceLock::from(Box::from("main"));
        }
        names
    }

    /// Reads the custom section "name". If an error occurs, the names before the error are kept.
    fn read_section(
        &mut self,
        data: &[u8],
        at: usize,
        functions: &mut [Option<Box<str>>],
    ) -> wasmparser::Result<()> {
        for subsection in NameSectionReader::new(BinaryReader::new(data, at)) {
            match subsection? {
                Name::Function(map) => {
                    for naming in map {
                        let naming = naming?;
                        let slot = functions.get_mut(naming.index as usize);
                        if let Some(slot) = slot.filter(|_| !naming.name.is_empty()) {
                            slot.get_or_insert_with(|| naming.name.into());
                        }
                    }
                }
                Name::Local(maps) => {
                    for map in maps {
                        let map = map?;
                        self.locals.read(map.index, map.names)?;
                    }
                }
                Name::Label(maps) => {
                    for map in maps {
                        let map = map?;
                        self.labels.read(map.index, map.names)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the name to show for a function. A mangled name is demangled, and a function without
    /// a name is `func[12]`. A `main` that clang renamed is shown as `main` unless another function
    /// has this name.
    pub fn function(&self, function: FuncId) -> &str {
        let fallback = || format!("func[{}]", function.as_u32());
        let Some(name) = self.functions.get(function.index()) else {
            return "func[?]";
        };
        name.shown.get_or_init(|| match &name.raw {
            Some(raw) => demangle(raw).map_or_else(|| raw.clone(), Into::into),
            None => fallback().into(),
        })
    }

    /// Returns the name of a function with short names of types, for messages. Types of parameters
    /// stay, because they tell overloads apart.
    pub fn short(&self, function: FuncId) -> String {
        short_type(self.function(function))
    }

    /// Returns the name of a function as it is in the module, if the function has a name.
    pub fn raw(&self, function: FuncId) -> Option<&str> {
        self.functions.get(function.index())?.raw.as_deref()
    }

    /// Returns the name of a local. Parameters come first.
    pub fn local(&self, function: FuncId, local: u32) -> Option<&str> {
        self.locals.get(function, local)
    }

    /// Returns the first local of a function with the given name. O(named locals of the program).
    pub fn find_local(&self, function: FuncId, name: &str) -> Option<u32> {
        let own = self.locals.spans.iter();
        let own = own.filter(|((of, _), _)| *of == function.as_u32());
        let same = own.filter(|(_, span)| {
            self.locals.text.get(span.start as usize..span.end as usize) == Some(name)
        });
        same.map(|((_, index), _)| *index).min()
    }

    /// Returns the name of the label of the n-th `block`, `loop`, `if` or `try_table` of the
    /// function.
    pub fn label(&self, function: FuncId, label: u32) -> Option<&str> {
        self.labels.get(function, label)
    }

    /// Returns all functions, including imports.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = FuncId> + use<> {
        (0..self.functions.len()).map(FuncId::new)
    }

    /// Returns warnings about unreadable parts.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Returns the function that is `main` in the source. Returns `None` if another function in any
/// module of the source is called `main`. Clang renames C's `main`, because WebAssembly cannot cast
/// between function types. The new name depends on whether `main` has parameters.
fn main(raw: &[Option<Box<str>>]) -> Option<usize> {
    let names = || {
        raw.iter()
            .map(Option::as_deref)
            .map(Option::unwrap_or_default)
    };
    let is_main = |name: &str| {
        let shown = name.contains("4main").then(|| demangle(name)).flatten();
        let shown = shown.as_deref().unwrap_or(name);
        shown == "main" || shown.ends_with("::main")
    };
    let renamed = |name: &str| ["__original_main", "__main_argc_argv"].contains(&name);
    let mut found = names().enumerate().filter(|(_, name)| renamed(name));
    let (main, _) = found.next()?;
    (found.next().is_none() && !names().any(is_main)).then_some(main)
}

/// The names of locals or labels of all functions, in one string.
#[derive(Debug, Default)]
struct Indirect {
    text: String,
    spans: HashMap<(u32, u32), Range<u32>>,
}

impl Indirect {
    fn read(&mut self, function: u32, names: NameMap<'_>) -> wasmparser::Result<()> {
        for naming in names {
            let naming = naming?;
            // All names together are part of a module of less than 4 GiB.
            let start = self.text.len() as u32;
            self.text.push_str(naming.name);
            let span = start..self.text.len() as u32;
            self.spans.entry((function, naming.index)).or_insert(span);
        }
        Ok(())
    }

    fn get(&self, function: FuncId, index: u32) -> Option<&str> {
        let span = self.spans.get(&(function.as_u32(), index))?;
        self.text.get(span.start as usize..span.end as usize)
    }
}
