//! Writes profiles for pprof: its `profile.proto`, compressed with gzip.
//!
//! A sample represents a *stretch*: adjacent instructions of one block with the same line. Its
//! address is the stretch's offset in the original module. Its location has the line of each
//! function inlined there. Samples of a profile have no callers on their stacks, because counts of
//! edges do not identify callers. Samples of a path have full stacks ([`pprof_stacks`]).

use std::collections::HashMap;
use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::{Line, OperatorCount, Profile, ProfileError, Scope};
use afterimage_program::{FileId, InlinedFrame, demangle};
use afterimage_replay::whole_path::{ContextTree, Frame};
use flate2::{Compression, GzBuilder};

use super::Frames;
use super::protobuf::Message;
use super::stacks::{StackFrame, each_stack};
use crate::PresentError;

/// Writes the executed stretches of a profile. The values of a sample are the number of times that
/// the stretch began and the number of instructions executed in it.
///
/// # Errors
/// Returns an error if `out` fails, the profile cannot be evaluated, or a number does not fit into
/// pprof's 63 bits.
pub fn pprof(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
) -> Result<(), PresentError> {
    let mut writer = Writer::default();
    writer.string("");
    for (name, unit) in [("executions", "count"), ("instructions", "count")] {
        let mut value_type = Message::default();
        value_type
            .integer(1, writer.string(name))
            .integer(2, writer.string(unit));
        writer.message.message(1, &value_type);
    }
    let mut operators = Vec::new();
    for row in profile
        .function_rows(scope)?
        .iter()
        .filter(|row| row.instructions > 0)
    {
        let Some((function, _, counts)) = profile.function(row.function) else {
            continue;
        };
        profile.operators(function, counts, &mut operators)?;
        operators.retain(|operator| operator.instruction && operator.count > 0);
        let frames = |operator: &OperatorCount| profile.source().inlined_frames(operator.offset);
        let framed = operators
            .iter()
            .map(|operator| (*operator, frames(operator)));
        let framed = Vec::from_iter(framed);
        for stretch in stretches(&framed) {
            let frames = &stretch[0].1;
            let stretch = Vec::from_iter(stretch.iter().map(|(operator, _)| *operator));
            let line = stretch[0].position.map(Line::from);
            let home = row.position.map(|position| position.file);
            let (outer, inlined) = match frames.split_last() {
                Some((whole, inlined)) if !inlined.is_empty() => {
                    (whole.location.map(Line::from), inlined)
                }
                _ => (line, &[][..]),
            };
            let mut lines = Vec::new();
            for (depth, frame) in inlined.iter().enumerate() {
                let own = match depth {
                    0 => line,
                    _ => frame.location.map(Line::from),
                };
                let file = own.map(|own| own.file);
                let path = file.map_or("", |file| profile.file(file));
                let raw = frame.function.as_deref().unwrap_or("???");
                let shown = demangle(raw);
                let names = [shown.as_deref().unwrap_or(raw), raw];
                lines.push((writer.function(None, names, file, path), own));
            }
            let file = outer.map(|outer| outer.file).or(home);
            let path = file.map_or("", |file| profile.file(file));
            let shown = profile.names().function(row.function);
            let names = [shown, profile.names().raw(row.function).unwrap_or(shown)];
            let function = writer.function(Some(row.function), names, file, path);
            lines.push((function, outer));
            let sum = stretch
                .iter()
                .map(|operator| operator.count)
                .try_fold(0, u64::checked_add);
            let sum = sum.filter(|&sum| i64::try_from(sum).is_ok());
            let sum = sum.ok_or(ProfileError::Overflow {
                function: row.function,
            })?;
            writer.sample(&stretch, &lines, sum);
        }
    }
    let mut mapping = Message::default();
    // The mapping has functions, file names, line numbers and inlined frames.
    mapping
        .integer(1, 1)
        .integer(7, 1)
        .integer(8, 1)
        .integer(9, 1)
        .integer(10, writer.inlines.into());
    writer.message.message(3, &mapping);
    let comment = "Exact counts. Samples have no callers, because edge counts do not record them.";
    writer.finish(out, comment, "instructions")
}

/// Writes the stacks of a path, each with the number of blocks executed in it. A function is at the
/// line of its declaration. Inlined functions are lines in the location of the function that
/// contains them.
///
/// # Errors
/// Returns an error if `out` fails, or if a number does not fit into pprof's 63 bits.
pub fn pprof_stacks(
    out: &mut dyn Write,
    tree: &ContextTree,
    frames: &Frames<'_>,
) -> Result<(), PresentError> {
    let mut writer = Writer::default();
    writer.string("");
    let mut value_type = Message::default();
    value_type
        .integer(1, writer.string("blocks"))
        .integer(2, writer.string("count"));
    writer.message.message(1, &value_type);
    // Merged calls appear as a function, too.
    let mut functions: HashMap<String, (u64, u64)> = HashMap::new();
    let mut locations: HashMap<Vec<u64>, u64> = HashMap::new();
    each_stack(tree, frames, |stack, blocks| {
        let is_inlined = |frame: &StackFrame<'_>| matches!(frame.frame, Some(Frame::Inlined(_)));
        let mut ids = Vec::new();
        for place in stack.chunk_by(|_, next| is_inlined(next)) {
            let mut lines = Vec::new();
            // pprof expects the innermost frame first.
            for frame in place.iter().rev() {
                let next = functions.len() as u64 + 1;
                let key = format!("{:?} {}", frame.frame, frame.name);
                let known = functions.entry(key);
                lines.push(
                    *known.or_insert_with(|| (next, writer.stack_frame(next, frame, frames))),
                );
            }
            writer.inlines |= lines.len() > 1;
            let key = Vec::from_iter(lines.iter().map(|line| line.0));
            let next = locations.len() as u64 + 1;
            ids.push(*locations.entry(key).or_insert_with(|| {
                let mut location = Message::default();
                location.integer(1, next).integer(2, 1);
                let address = place[0].frame.map_or(0, |frame| frames.address(frame));
                location.integer(3, address.into());
                for (function, line) in lines {
                    let mut at = Message::default();
                    location.message(4, at.integer(1, function).integer(2, line));
                }
                writer.message.message(4, &location);
                next
            }));
        }
        ids.reverse();
        let mut sample = Message::default();
        sample.packed(1, &ids).packed(2, &[blocks]);
        writer.message.message(2, &sample);
        Ok(())
    })?;
    let mut mapping = Message::default();
    mapping
        .integer(1, 1)
        .integer(7, 1)
        .integer(10, writer.inlines.into());
    writer.message.message(3, &mapping);
    writer.finish(out, "Exact counts, in executed basic blocks.", "blocks")
}

/// Returns the stretches of a body's executed instructions, each with the functions that it comes
/// from.
fn stretches(instructions: &[Framed]) -> impl Iterator<Item = &[Framed]> {
    let is_same = |(a, frames): &Framed, (b, others): &Framed| {
        let key = |operator: &OperatorCount| (operator.block, operator.position.map(Line::from));
        // The position in the innermost function also has a column.
        let inner = |of: &[InlinedFrame]| of.first().map(|frame| frame.function.clone());
        let is_inner = inner(frames) == inner(others);
        key(a) == key(b) && is_inner && frames.get(1..) == others.get(1..)
    };
    instructions.chunk_by(is_same)
}

type Framed = (OperatorCount, Vec<InlinedFrame>);

#[derive(Default)]
struct Writer {
    message: Message,
    strings: Vec<String>,
    string_ids: HashMap<String, u64>,
    /// The ids of functions, by the index of a defined function, linkage name and file. In pprof, a
    /// function has one file, so a function with code in several files has one id for each file.
    functions: HashMap<(Option<FuncId>, String, Option<FileId>), u64>,
    locations: u64,
    /// Whether a location has several lines.
    inlines: bool,
}

impl Writer {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.string_ids.get(text) {
            return id;
        }
        let id = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    /// Ends the message and compresses it.
    fn finish(
        mut self,
        out: &mut dyn Write,
        comment: &str,
        default: &str,
    ) -> Result<(), PresentError> {
        let comment = self.string(comment);
        self.message.integer(13, comment);
        let default = self.string(default);
        self.message.integer(14, default);
        for text in &self.strings {
            self.message.bytes(6, text.as_bytes());
        }
        // Omit the time of writing, so that the same profile gives the same bytes.
        let mut gzip = GzBuilder::new().mtime(0).write(out, Compression::default());
        gzip.write_all(&self.message.0)?;
        gzip.finish()?;
        Ok(())
    }

    /// Writes a function of a stack. Returns the line of its declaration, or 0 if it is unknown.
    fn stack_frame(&mut self, id: u64, frame: &StackFrame<'_>, frames: &Frames<'_>) -> u64 {
        let declared = frame.frame.and_then(|frame| frames.declared(frame));
        let path = declared.map_or_else(String::new, |at| frames.source.line(at).path);
        let raw = frame.frame.map_or(frame.name, |frame| frames.raw(frame));
        let [shown, raw, path] = [frame.name, raw, &*path].map(|text| self.string(text));
        let mut function = Message::default();
        function
            .integer(1, id)
            .integer(2, shown)
            .integer(3, raw)
            .integer(4, path);
        self.message.message(5, &function);
        declared.map_or(0, |at| at.line.into())
    }

    /// Writes a function once, with its displayed name and its linkage name.
    fn function(
        &mut self,
        id: Option<FuncId>,
        [shown, raw]: [&str; 2],
        file: Option<FileId>,
        path: &str,
    ) -> u64 {
        let next = self.functions.len() as u64 + 1;
        let key = (id, raw.to_owned(), file);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        self.functions.insert(key, next);
        let [shown, raw, path] = [shown, raw, path].map(|text| self.string(text));
        let mut function = Message::default();
        function
            .integer(1, next)
            .integer(2, shown)
            .integer(3, raw)
            .integer(4, path);
        self.message.message(5, &function);
        next
    }

    /// Writes a stretch, with the functions and lines that it comes from, the innermost first.
    fn sample(&mut self, stretch: &[OperatorCount], lines: &[(u64, Option<Line>)], sum: u64) {
        self.locations += 1;
        self.inlines |= lines.len() > 1;
        let mut location = Message::default();
        location
            .integer(1, self.locations)
            .integer(2, 1)
            .integer(3, stretch[0].offset.0.into());
        for (function, line) in lines {
            let line = line.map_or(0, |line| line.number.into());
            let mut at = Message::default();
            location.message(4, at.integer(1, *function).integer(2, line));
        }
        self.message.message(4, &location);
        let mut sample = Message::default();
        sample
            .packed(1, &[self.locations])
            .packed(2, &[stretch[0].count, sum]);
        self.message.message(2, &sample);
    }
}
