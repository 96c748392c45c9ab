//! Answers requests for memory, operators, and source text.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_ids::OrigOffset;
use afterimage_present::Sources as _;
use afterimage_profile::operator_texts;
use afterimage_program::OperatorIndex;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::base64;
use crate::breakpoints::address;
use crate::debuggee::Debuggee;
use crate::protocol::{Disassemble, Instruction, ReadMemory, SourceText};

/// The maximum number of bytes in one read.
const LARGEST_READ: i64 = 1 << 20;
/// The maximum number of operators in one answer.
const MOST_OPERATORS: i64 = 1 << 14;

impl<W: Write + Send + 'static> Debuggee<'_, '_, W> {
    pub(crate) fn read_memory(&self, wanted: &ReadMemory) -> Result<Value> {
        let begin = address(&wanted.memory_reference)?;
        if !(0..=LARGEST_READ).contains(&wanted.count) {
            bail!("count: must be from 0 to {LARGEST_READ} bytes");
        }
        let first = begin.checked_add_signed(wanted.offset);
        let first = first.context("the address is before the first or after the last one")?;
        let count = wanted.count as usize;
        let bytes = self
            .debugger
            .inspect(self.at, 1, |inspection| Ok(inspection.memory(first, count)))?;
        Ok(json!({
            "address": format!("0x{first:x}"),
            "unreadableBytes": count - bytes.len(),
            "data": base64::encoded(&bytes),
        }))
    }

    pub(crate) fn disassemble(&mut self, wanted: &Disassemble) -> Result<Value> {
        let begin = address(&wanted.memory_reference)?;
        let begin = begin.checked_add_signed(wanted.offset);
        let begin = begin.context("the address is before the first or after the last one")?;
        if !(0..=MOST_OPERATORS).contains(&wanted.instruction_count) {
            bail!("instructionCount: must be at most {MOST_OPERATORS}");
        }
        let session = self.debugger.session();
        let (program, bytes) = (session.program(), session.bytes());
        let offset = u32::try_from(begin).unwrap_or(u32::MAX);
        let function = program.function_at(OrigOffset(offset));
        let function = function.with_context(|| format!("there is no code at 0x{begin:x}"))?;
        let index = OperatorIndex::new(program, bytes);
        let offsets = index.offsets(function);
        let here = offsets.partition_point(|known| known.0 < offset) as i64;
        let first = here.saturating_add(wanted.instruction_offset);
        let last = first.saturating_add(wanted.instruction_count);
        let inside = |number: i64| number.clamp(0, offsets.len() as i64) as usize;
        let own = &offsets[inside(first)..inside(last).max(inside(first))];
        let texts = operator_texts(bytes, own)?;
        let name = self
            .debugger
            .program()
            .names
            .function(function.id)
            .to_owned();
        let mut instructions = Vec::new();
        let (mut before, mut after) = (0, 0);
        if own.is_empty() {
            before = wanted.instruction_count;
        } else {
            before += (-first).max(0).min(wanted.instruction_count);
            after = wanted.instruction_count - before - own.len() as i64;
        }
        // Functions are not adjacent, so no instruction precedes or follows a function's body.
        let nothing = |address: u64| Instruction {
            address: format!("0x{address:x}"),
            instruction: "(outside the function)".to_owned(),
            presentation_hint: Some("invalid"),
            ..Instruction::default()
        };
        let start = u64::from(offsets.first().map_or(offset, |first| first.0));
        let end = u64::from(offsets.last().map_or(offset, |last| last.0)) + 1;
        for number in (1..=before as u64).rev() {
            instructions.push(nothing(start.saturating_sub(number)));
        }
        let mut last_line = None;
        for (&at, text) in own.iter().zip(texts) {
            let located = self.debugger.source().locate(at);
            let line = located.map(|at| (at.file, at.line));
            let is_new = line.is_some() && line != last_line;
            last_line = line;
            let location = located.filter(|_| is_new);
            let path = location.map(|at| self.debugger.source().path(at.file).to_owned());
            instructions.push(Instruction {
                address: format!("0x{:x}", at.0),
                instruction: text.trim().to_owned(),
                symbol: Some(name.clone()),
                location: path.map(|path| self.source(&path)),
                line: location.map(|at| self.numbering.line(at.line)),
                presentation_hint: None,
            });
        }
        for number in 0..after.max(0) as u64 {
            instructions.push(nothing(end + number));
        }
        Ok(json!({ "instructions": instructions }))
    }

    pub(crate) fn source_text(&self, wanted: &SourceText) -> Result<Value> {
        let mut source = wanted.source.clone();
        if wanted.source_reference > 0 {
            source.source_reference = Some(wanted.source_reference);
        }
        let path = self.file_of(&source)?;
        let text = self.debugger.session().sources().read(&path);
        let text =
            text.with_context(|| format!("{path}: its text was not found; set sourcePath"))?;
        Ok(json!({ "content": text }))
    }

    /// Returns the files of the user's own code. A file without code is not a source: it may be the
    /// name of a compilation unit.
    pub(crate) fn loaded_sources(&mut self) -> Value {
        let code = self.debugger.session().code().clone();
        let source = self.debugger.source();
        let files = source.rows().iter().map(|row| row.location.file);
        let files = BTreeSet::from_iter(files).into_iter();
        let own = files.map(|file| source.path(file).to_owned());
        let own = Vec::from_iter(own.filter(|path| code.shows(path)));
        let sources = own.iter().map(|path| self.source(path));
        json!({ "sources": Vec::from_iter(sources) })
    }
}
