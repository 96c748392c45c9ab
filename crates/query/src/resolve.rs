//! Locations → functions, operators and lines of a program.

use std::collections::{BTreeSet, HashMap};

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::{Function, Program};

use crate::body::decode;
use crate::location::{Form, Location, LocationError, Place, cuts, decimal, form, split_occurrence};
use crate::nearest::nearest;
use crate::{Line, Names, OperatorCount, Source, walk};

/// Finds places in a program. Made once, it answers each question about a name in O(1), about an offset
/// in O(log functions + size of the body), about a line in O(size of the module).
pub struct Resolver<'a> {
    program: &'a Program,
    module: &'a [u8],
    names: &'a dyn Names,
    source: &'a dyn Source,
    by_name: HashMap<&'a str, Vec<FuncId>>,
}

impl<'a> Resolver<'a> {
    /// Prepares for questions. O(functions).
    pub fn new(
        program: &'a Program,
        module: &'a [u8],
        names: &'a dyn Names,
        source: &'a dyn Source,
    ) -> Self {
        let mut by_name = HashMap::<_, Vec<_>>::new();
        for id in (0..function_count(program)).map(|i| FuncId::from_u32(i as u32)) {
            let both: BTreeSet<_> = [names.raw(id), names.demangled(id)].into_iter().flatten().collect();
            for name in both {
                by_name.entry(name).or_default().push(id);
            }
        }
        Self { program, module, names, source, by_name }
    }

    /// The location that a text stands for.
    ///
    /// # Errors
    /// If it is none; the error names the nearest that exists.
    pub fn location(&self, text: &str) -> Result<Location, LocationError> {
        if self.by_name.contains_key(text) {
            return Ok(Location { place: Place::Function(self.function(text)?), occurrence: None });
        }
        let (place, occurrence) = split_occurrence(text)?;
        Ok(Location { place: self.place(place)?, occurrence })
    }

    /// The two locations of `FIRST..LAST`, both of which belong to the range.
    ///
    /// # Errors
    /// If there are not two; of several ways to cut the text the error speaks of the last dots.
    pub fn range(&self, text: &str) -> Result<(Location, Location), LocationError> {
        let mut error = None;
        for (first, last) in cuts(text) {
            match (self.location(first), self.location(last)) {
                (Ok(first), Ok(last)) => return Ok((first, last)),
                (Err(this), _) | (_, Err(this)) => error = error.or(Some(this)),
            }
        }
        Err(error.unwrap_or_else(|| LocationError::NoRange(text.to_owned())))
    }

    /// The function with this name, demangled name, or index (`12`, `func[12]`).
    ///
    /// # Errors
    /// If there is none, or several have the name.
    pub fn function(&self, text: &str) -> Result<FuncId, LocationError> {
        match self.by_name.get(text).map(Vec::as_slice) {
            Some(&[function]) => return Ok(function),
            Some(functions) => {
                return Err(LocationError::AmbiguousFunction {
                    name: text.to_owned(),
                    functions: functions.to_vec(),
                });
            }
            None if text.is_empty() => return Err(LocationError::Empty),
            None => {}
        }
        let bracketed = text.strip_prefix("func[").and_then(|rest| rest.strip_suffix(']'));
        if let Some(index) = decimal(bracketed.unwrap_or(text)) {
            let count = function_count(self.program) as u64;
            return match u32::try_from(index).ok().filter(|_| index < count) {
                Some(index) => Ok(FuncId::from_u32(index)),
                None => Err(LocationError::NoIndex { index, last: count.saturating_sub(1) }),
            };
        }
        let mut known: Vec<&str> = self.by_name.keys().copied().collect();
        known.sort_unstable();
        let candidate = nearest(text, known).map(str::to_owned);
        Err(LocationError::NoFunction { name: text.to_owned(), candidate })
    }

    fn place(&self, text: &str) -> Result<Place, LocationError> {
        if text.is_empty() {
            return Err(LocationError::Empty);
        }
        if self.by_name.contains_key(text) {
            return self.function(text).map(Place::Function);
        }
        match form(text) {
            Form::Function(name) => self.function(name).map(Place::Function),
            Form::Offset(offset) => {
                let functions = &self.program.functions;
                let after = functions.partition_point(|function| function.body.start <= offset);
                self.operator(functions.get(after.saturating_sub(1)), offset)
            }
            Form::Within { function, distance } => {
                let id = self.function(function)?;
                let function = self.program.function(id).ok_or_else(|| {
                    LocationError::Imported(self.names.shown(id).into_owned())
                })?;
                let offset = OrigOffset(function.body.start.0.saturating_add(distance));
                self.operator(Some(function), offset)
            }
            Form::Line { file, line, column } => self.line(file, line, column),
        }
    }

    /// The operator of a function that begins at an offset.
    fn operator(
        &self,
        function: Option<&Function>,
        offset: OrigOffset,
    ) -> Result<Place, LocationError> {
        let Some(function) = function else {
            return Err(LocationError::NoOperator { offset, candidate: None });
        };
        let mut body = Vec::new();
        decode(self.program, self.module, function, &mut body)?;
        match body.binary_search_by_key(&offset, |op| op.offset) {
            Ok(op) => Ok(Place::Operator(function.id, afterimage_ids::OpId::from_u32(op as u32))),
            Err(at) => {
                let around = [at.checked_sub(1), Some(at)].into_iter().flatten();
                let offsets = around.filter_map(|i| body.get(i)).map(|op| op.offset);
                let candidate = offsets.min_by_key(|near| near.0.abs_diff(offset.0));
                Err(LocationError::NoOperator { offset, candidate })
            }
        }
    }

    fn line(&self, file: &str, line: u32, column: Option<u32>) -> Result<Place, LocationError> {
        let path = self.file(file)?;
        let mut found = None;
        let mut operators = Vec::new();
        let mut lines_with_code = BTreeSet::new();
        let mut columns_with_code = BTreeSet::new();
        self.each_position(|function, operator| {
            let Some(position) = operator.position else { return };
            if self.source.files().get(position.file.0 as usize).map(String::as_str) != Some(path) {
                return;
            }
            lines_with_code.insert(position.line);
            if position.line == line {
                columns_with_code.insert(position.column);
                if column.is_none_or(|column| column == position.column) {
                    found.get_or_insert(position.on());
                    operators.push((function.id, operator.op));
                }
            }
        })?;
        let written = match column {
            Some(column) => format!("{line}:{column}"),
            None => line.to_string(),
        };
        let near = |set: &BTreeSet<u32>, wanted: u32| {
            set.iter().copied().min_by_key(|has| (has.abs_diff(wanted), *has))
        };
        let candidate = match column {
            Some(column) if !columns_with_code.is_empty() => near(&columns_with_code, column),
            _ => near(&lines_with_code, line),
        };
        let none = || LocationError::NoCode { file: path.to_owned(), line: written, candidate };
        found.map(|line: Line| Place::Line(line, operators)).ok_or_else(none)
    }

    /// The path of the one file that is meant: itself, or the end of its path.
    fn file(&self, written: &str) -> Result<&'a str, LocationError> {
        let paths: BTreeSet<&str> = self.source.files().iter().map(String::as_str).collect();
        if let Some(&path) = paths.get(written) {
            return Ok(path);
        }
        let ends_in = |path: &&&str| {
            path.strip_suffix(written).is_some_and(|rest| rest.ends_with(['/', '\\']))
        };
        let matching: Vec<_> = paths.iter().filter(ends_in).copied().collect();
        match matching.as_slice() {
            [path] => Ok(path),
            [] => {
                let last = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
                let names: Vec<_> = paths.iter().map(|path| last(path)).collect();
                let candidate = nearest(&last(written), names.iter().map(String::as_str).collect());
                let candidate = candidate.map(str::to_owned);
                Err(LocationError::NoFile { file: written.to_owned(), candidate })
            }
            several => Err(LocationError::AmbiguousFile {
                file: written.to_owned(),
                paths: several.iter().map(|path| path.to_string()).collect(),
            }),
        }
    }

    fn each_position(
        &self,
        mut visit: impl FnMut(&Function, &OperatorCount),
    ) -> Result<(), LocationError> {
        let (mut body, mut operators) = (Vec::new(), Vec::new());
        for function in &self.program.functions {
            decode(self.program, self.module, function, &mut body)?;
            walk::positions(&body, self.source, &mut operators);
            operators.iter().for_each(|operator| visit(function, operator));
        }
        Ok(())
    }
}

fn function_count(program: &Program) -> usize {
    program.imports.len() + program.functions.len()
}
