//! Resolves locations to functions, operators and lines of a program.

use std::collections::BTreeSet;

use afterimage_ids::{EntityRef, FuncId, OpId, OrigOffset};
use afterimage_program::{
    FileId, Function, LineError, NameError, Names, Program, SourceMap, declared_without_code,
};

use crate::body::decode;
use crate::location::{
    Form, Occurrence, Place, ResolveError, Resolved, cuts, form, is_moment, split_occurrence,
};
use crate::{Line, walk};

/// The number of lines in the line table to examine when searching for the nearest line with
/// instructions.
const LOOKED_AT: usize = 64;

/// Receives a remark whenever a string is not interpreted literally.
pub trait Remarks {
    /// Receives a remark, as a sentence.
    fn remark(&self, text: String);
}

/// Finds places in a program.
#[derive(Clone, Copy)]
pub struct Resolver<'a> {
    program: &'a Program,
    module: &'a [u8],
    names: &'a Names,
    source: &'a SourceMap<'a>,
    remarks: Option<&'a dyn Remarks>,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver for a program, which was parsed from `module`.
    pub fn new(
        program: &'a Program,
        module: &'a [u8],
        names: &'a Names,
        source: &'a SourceMap<'a>,
    ) -> Self {
        Self {
            program,
            module,
            names,
            source,
            remarks: None,
        }
    }

    /// Makes the resolver send its remarks to `remarks`.
    #[must_use]
    pub fn heard_by(self, remarks: Option<&'a dyn Remarks>) -> Self {
        Self { remarks, ..self }
    }

    /// Resolves a string, as [`location`](crate::location) describes. A string that is a function's
    /// whole name always means this function.
    ///
    /// The first query of each kind indexes the names or lines. Later queries take time logarithmic
    /// in the number of functions, and linear in the size of the bodies that the text names.
    ///
    /// # Errors
    /// Returns an error if the text is not a location in this program. For an unknown name or line,
    /// the error names similar names or the nearest line with code.
    pub fn location(&self, text: &str) -> Result<Resolved, ResolveError> {
        if text.is_empty() {
            return Err(ResolveError::Empty);
        }
        let split = split_occurrence(text);
        if !matches!(split, Ok((_, None)))
            && let Some(function) = self.names.known(text)
        {
            return Ok(Resolved {
                place: Place::Function(function),
                occurrence: None,
            });
        }
        let (place, occurrence): (_, Option<Occurrence>) = split?;
        let found = match self.place(place) {
            Err(ResolveError::Name(unknown @ NameError::Unknown { .. })) => {
                return Err(self.misspelt(place, occurrence.is_some(), unknown));
            }
            found => found?,
        };
        Ok(Resolved {
            place: found,
            occurrence,
        })
    }

    /// Returns the error for a string that neither has the form of a place nor is the name of a
    /// function. The error is `unknown` if the text looks like a name.
    fn misspelt(&self, text: &str, counted: bool, unknown: NameError) -> ResolveError {
        let whole = || text.to_owned();
        if !counted && let Some((place, which)) = text.rsplit_once('#') {
            let is_place = !matches!(form(place), Form::Function(_)) || self.place(place).is_ok();
            if is_place
                && !which.is_empty()
                && which
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || b",_".contains(&byte))
            {
                return ResolveError::Large(whole());
            }
            if is_place {
                return ResolveError::Number(whole());
            }
        }
        if text.starts_with('@') {
            return ResolveError::Offset(whole());
        }
        if is_moment(text) {
            return if counted {
                ResolveError::Once(whole())
            } else {
                ResolveError::Moment(whole())
            };
        }
        if counted && ["start", "end"].contains(&text) {
            return ResolveError::Once(whole());
        }
        if let Some((before, last)) = text.rsplit_once(':') {
            let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
            if matches!(form(before), Form::Line { .. }) {
                return ResolveError::Column(whole());
            }
            // Text after two colons is part of a name.
            let is_path = before.is_empty() || before.ends_with(':');
            if !is_path && (is_number || self.source.find_file(before).is_ok()) {
                return ResolveError::NoLine(whole());
            }
        }
        if let Some((function, _)) = text.rsplit_once('+')
            && self.names.known(function).is_some()
        {
            return ResolveError::Distance(whole());
        }
        unknown.into()
    }

    /// Returns the two locations of `FIRST..LAST`. The range includes both.
    ///
    /// # Errors
    /// Returns an error if the text does not consist of two locations in this program. If the text
    /// can be split in several ways, the error concerns the split at the last dots.
    pub fn range(&self, text: &str) -> Result<(Resolved, Resolved), ResolveError> {
        let mut error = None;
        for (first, last) in cuts(text) {
            match (self.location(first), self.location(last)) {
                (Ok(first), Ok(last)) => return Ok((first, last)),
                (Err(this), _) | (_, Err(this)) => error = error.or(Some(this)),
            }
        }
        Err(error.unwrap_or_else(|| ResolveError::NoRange(text.to_owned())))
    }

    fn place(&self, text: &str) -> Result<Place, ResolveError> {
        let written = form(text);
        if !matches!(written, Form::Function(_))
            && let Some(function) = self.names.known(text)
        {
            return Ok(Place::Function(function));
        }
        match written {
            Form::Function("") => Err(ResolveError::Empty),
            Form::Function(name) => Ok(Place::Function(self.names.find(name, self.source)?)),
            Form::Offset(offset) => {
                let functions = &self.program.functions;
                let after = functions.partition_point(|function| function.body.start <= offset);
                self.operator(functions.get(after.saturating_sub(1)), offset)
            }
            Form::Within { function, distance } => {
                let id = self.names.find(function, self.source)?;
                let imported = || ResolveError::Imported(self.names.function(id).to_owned());
                let function = self.program.function(id).ok_or_else(imported)?;
                // The declarations of locals precede the first operator of a body.
                if distance == 0 {
                    return Ok(Place::Operator(id, OpId::from_u32(0)));
                }
                let offset = OrigOffset(function.body.start.0.saturating_add(distance));
                self.operator(Some(function), offset)
            }
            Form::Line { file, line, column } => self.line(file, line, column),
        }
    }

    /// Returns the operator of a function that begins at an offset.
    fn operator(
        &self,
        function: Option<&Function>,
        offset: OrigOffset,
    ) -> Result<Place, ResolveError> {
        let Some(function) = function else {
            return Err(ResolveError::NoOperator {
                offset,
                nearest: None,
            });
        };
        let mut body = Vec::new();
        decode(self.program, self.module, function, &mut body)?;
        match body.binary_search_by_key(&offset, |op| op.offset) {
            Ok(op) => Ok(Place::Operator(function.id, OpId::from_u32(op as u32))),
            Err(at) => {
                let around = [at.checked_sub(1), Some(at)].into_iter().flatten();
                let offsets = around.filter_map(|i| body.get(i)).map(|op| op.offset);
                let nearest = offsets.min_by_key(|near| near.0.abs_diff(offset.0));
                Err(ResolveError::NoOperator { offset, nearest })
            }
        }
    }

    /// Returns the instructions of a line, including instructions that take their line from the
    /// previous instruction.
    fn line(&self, file: &str, number: u32, column: Option<u32>) -> Result<Place, ResolveError> {
        let file = self.source.find_file(file)?;
        // It takes a long time to find out why a line has no code.
        if column.is_none() && self.source.lines_of(file).binary_search(&number).is_err() {
            let operators = self.inlined(file, number, &[]);
            if !operators.is_empty() {
                return Ok(Place::Line(Line { file, number }, operators));
            }
        }
        let found = self.of_line(file, number, column);
        let is_nothing = matches!(
            found,
            Ok(None)
                | Err(ResolveError::Line(
                    LineError::NoCode { .. } | LineError::NoColumn { .. }
                ))
        );
        if !is_nothing {
            let mut operators = found?.unwrap_or_default();
            if column.is_none() {
                let inlined = self.inlined(file, number, &operators);
                operators.extend(inlined);
            }
            return Ok(Place::Line(Line { file, number }, operators));
        }
        if column.is_none() {
            let operators = self.inlined(file, number, &[]);
            if !operators.is_empty() {
                return Ok(Place::Line(Line { file, number }, operators));
            }
        }
        if column.is_none()
            && let Some(place) = self.declared(file, number)?
        {
            return Ok(place);
        }
        if let [first, others @ ..] = &self.source.inlined_at(file, number, column)[..] {
            return match others {
                [] => self.first_from(*first),
                _ => Err(ResolveError::Inlined {
                    path: self.source.path(file).to_owned(),
                    line: number,
                    starts: std::iter::once(first).chain(others).copied().collect(),
                }),
            };
        }
        if let Some(column) = column
            && let Ok(Some(operators)) = self.of_line(file, number, None)
        {
            return Err(self.no_column(file, number, column, &operators)?.into());
        }
        let mut lines = self.source.lines_of(file);
        lines.sort_by_key(|line| (line.abs_diff(number), std::cmp::Reverse(*line)));
        let near = lines.into_iter().filter(|line| *line != number);
        let has_code = |line: &u32| matches!(self.of_line(file, *line, None), Ok(Some(_)));
        Err(LineError::NoCode {
            path: self.source.path(file).to_owned(),
            line: number,
            nearest: near.take(LOOKED_AT).find(has_code),
        }
        .into())
    }

    /// Returns the first instructions of the calls that were inlined on a line, in functions where
    /// the line has no code of its own. `own` are the line's own instructions.
    fn inlined(&self, file: FileId, number: u32, own: &[(FuncId, OpId)]) -> Vec<(FuncId, OpId)> {
        let starts = self.source.inlined_at(file, number, None);
        let function_at = |start: &OrigOffset| self.program.function_at(*start);
        let mut found = Vec::new();
        let mut body = Vec::new();
        for starts in starts.chunk_by(|a, b| {
            function_at(a).map(|function| function.id) == function_at(b).map(|function| function.id)
        }) {
            let Some(function) = starts.first().and_then(function_at) else {
                continue;
            };
            let has_code = own.iter().any(|(other, _)| *other == function.id);
            if has_code || decode(self.program, self.module, function, &mut body).is_err() {
                continue;
            }
            for start in starts {
                let from = body.partition_point(|op| op.offset < *start);
                let first = (from..body.len()).find(|&op| body[op].instruction);
                found.extend(first.map(|op| (function.id, OpId::from_u32(op as u32))));
            }
        }
        found
    }

    /// Returns the function that is declared on a line.
    fn declared(&self, file: FileId, number: u32) -> Result<Option<Place>, ResolveError> {
        let starts = self.source.declared_at(file, number).into_iter();
        let functions = starts.filter_map(|start| Some(self.program.function_at(start)?.id));
        let functions = Vec::from_iter(BTreeSet::from_iter(functions));
        let line = || format!("{}:{number}", self.source.short_path(file));
        match functions[..] {
            [] => declared_without_code(self.source, file, number)
                .map_or(Ok(None), |why| Err(why.into())),
            [function] => {
                if let Some(remarks) = self.remarks {
                    let name = self.names.function(function);
                    let line = line();
                    remarks.remark(format!(
                        "{line} has no code, but declares {name}: using that function"
                    ));
                }
                Ok(Some(Place::Function(function)))
            }
            _ => Err(ResolveError::Declares {
                line: line(),
                functions: functions
                    .iter()
                    .map(|&id| format!("func[{}] {}", id.as_u32(), self.names.function(id)))
                    .collect(),
            }),
        }
    }

    /// Returns the first instruction at or after an offset.
    fn first_from(&self, offset: OrigOffset) -> Result<Place, ResolveError> {
        let function = self.program.function_at(offset);
        let mut body = Vec::new();
        if let Some(function) = function {
            decode(self.program, self.module, function, &mut body)?;
            let from = body.partition_point(|op| op.offset < offset);
            if let Some(first) = (from..body.len()).find(|&op| body[op].instruction) {
                return Ok(Place::Operator(function.id, OpId::from_u32(first as u32)));
            }
        }
        Err(ResolveError::NoOperator {
            offset,
            nearest: None,
        })
    }

    /// Returns the error for a column without code in a line with code in other columns.
    fn no_column(
        &self,
        file: FileId,
        line: u32,
        column: u32,
        operators: &[(FuncId, OpId)],
    ) -> Result<LineError, ResolveError> {
        let mut body = Vec::new();
        let mut found = BTreeSet::new();
        for own in operators.chunk_by(|a, b| a.0 == b.0) {
            if let Some(function) = self.program.function(own[0].0) {
                decode(self.program, self.module, function, &mut body)?;
                let offsets = own.iter().filter_map(|(_, op)| body.get(op.index()));
                let places = offsets.filter_map(|op| self.source.locate(op.offset));
                found.extend(places.map(|place| place.column));
            }
        }
        Ok(LineError::NoColumn {
            path: self.source.path(file).to_owned(),
            line,
            column,
            found: found.into_iter().collect(),
        })
    }

    /// Returns the instructions of a line of a file, or `None` if its rows cover only markers.
    fn of_line(
        &self,
        file: FileId,
        number: u32,
        column: Option<u32>,
    ) -> Result<Option<Vec<(FuncId, OpId)>>, ResolveError> {
        let rows = self.source.code_of_line(file, number, column)?;
        let functions: BTreeSet<FuncId> = rows
            .iter()
            .filter_map(|row| Some(self.program.function_at(row.start)?.id))
            .collect();
        let line = Line { file, number };
        let (mut body, mut operators, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for function in functions
            .into_iter()
            .filter_map(|id| self.program.function(id))
        {
            decode(self.program, self.module, function, &mut body)?;
            walk::positions(function, &body, self.source, &mut operators);
            found.extend(operators.iter().filter_map(|operator| {
                let at = operator.position?;
                let here = Line::from(at) == line && column.is_none_or(|c| c == at.column);
                here.then_some((function.id, operator.op))
            }));
        }
        Ok((!found.is_empty()).then_some(found))
    }
}
