//! Profiles for pprof: its `profile.proto`, compressed with gzip.
//!
//! A sample stands for a *stretch*: neighbouring instructions of one block that come from
//! the same line. Its address is the stretch's offset in the original module.
//! These samples have no stacks, because counts of edges know no callers. Samples of a path have them ([`pprof_stacks`]).

use std::collections::HashMap;
use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::{Line, OperatorCount, Profile, ProfileError, Scope, Source};
use afterimage_program::{FileId, Names, Program};
use afterimage_replay::paths::ContextTree;
use flate2::{Compression, GzBuilder};

use super::protobuf::Message;
use super::stacks::each_stack;
use crate::PresentError;

/// Writes the executed stretches of a profile. Sample values: how often the stretch
/// began, and instructions executed in it.
///
/// # Errors
/// If `out` or the profile fails, or if a number does not fit into pprof's 63 bits.
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
        operators.retain(|operator| operator.instruction);
        for stretch in stretches(&operators) {
            let line = stretch[0].position.map(Line::from);
            let home = row.position.map(|position| position.file);
            let file = line.map(|line| line.file).or(home);
            let path = file.map_or("", |file| profile.file(file));
            let function = writer.function(profile.names(), (row.function, file), path);
            let sum = stretch
                .iter()
                .map(|operator| operator.count)
                .try_fold(0, u64::checked_add);
            let sum = sum.filter(|&sum| i64::try_from(sum).is_ok());
            let sum = sum.ok_or(ProfileError::Overflow {
                function: row.function,
            })?;
            writer.sample(stretch, function, line, sum);
        }
    }
    let mut mapping = Message::default();
    // Has functions, file names and line numbers.
    mapping
        .integer(1, 1)
        .integer(7, 1)
        .integer(8, 1)
        .integer(9, 1);
    writer.message.message(3, &mapping);
    let comment = "Exact counts. Samples have no callers: counts of edges know none.";
    writer.finish(out, comment, "instructions")
}

/// Writes the stacks of a path, each with how many blocks are executed in it. A function stands at the line where it is declared.
///
/// # Errors
/// If `out` fails, or if a number does not fit into pprof's 63 bits.
pub fn pprof_stacks(
    out: &mut dyn Write,
    tree: &ContextTree,
    program: &Program,
    names: &Names,
    source: &dyn Source,
) -> Result<(), PresentError> {
    let mut writer = Writer::default();
    writer.string("");
    let mut value_type = Message::default();
    value_type
        .integer(1, writer.string("blocks"))
        .integer(2, writer.string("count"));
    writer.message.message(1, &value_type);
    // What was merged is a function, too.
    let mut locations: HashMap<String, u64> = HashMap::new();
    each_stack(tree, names, |stack, blocks| {
        let mut ids = Vec::new();
        // pprof has the innermost first.
        for frame in stack.iter().rev() {
            let key = format!("{:?} {}", frame.function, frame.name);
            if let Some(&known) = locations.get(&key) {
                ids.push(known);
                continue;
            }
            let code = frame
                .function
                .and_then(|function| program.function(function));
            let declared = code.and_then(|code| source.declared(code.body.start));
            let path = declared.map_or(String::new(), |at| source.line(at).path);
            let id = locations.len() as u64 + 1;
            let [shown, path] = [frame.name, &*path].map(|text| writer.string(text));
            let raw = frame.function.and_then(|function| names.raw(function));
            let raw = writer.string(raw.unwrap_or(frame.name));
            let mut function = Message::default();
            function
                .integer(1, id)
                .integer(2, shown)
                .integer(3, raw)
                .integer(4, path);
            writer.message.message(5, &function);
            let mut at = Message::default();
            at.integer(1, id)
                .integer(2, declared.map_or(0, |at| at.line.into()));
            let mut location = Message::default();
            location.integer(1, id).integer(2, 1);
            let address = code.map_or(0, |code| code.body.start.0);
            location.integer(3, address.into()).message(4, &at);
            writer.message.message(4, &location);
            locations.insert(key, id);
            ids.push(id);
        }
        let mut sample = Message::default();
        sample.packed(1, &ids).packed(2, &[blocks]);
        writer.message.message(2, &sample);
        Ok(())
    })?;
    let mut mapping = Message::default();
    mapping.integer(1, 1).integer(7, 1);
    writer.message.message(3, &mapping);
    writer.finish(out, "Exact counts, in executed basic blocks.", "blocks")
}

/// The executed stretches of a body's instructions.
fn stretches(instructions: &[OperatorCount]) -> impl Iterator<Item = &[OperatorCount]> {
    let key = |operator: &OperatorCount| (operator.block, operator.position.map(Line::from));
    let stretches = instructions.chunk_by(move |a, b| key(a) == key(b));
    stretches.filter(|stretch| stretch[0].count > 0)
}

#[derive(Default)]
struct Writer {
    message: Message,
    strings: Vec<String>,
    string_ids: HashMap<String, u64>,
    /// pprof knows one file per function: a function with inlined code is one for each file.
    functions: HashMap<(FuncId, Option<FileId>), u64>,
    locations: u64,
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
        // No time of writing, so that the same profile gives the same bytes.
        let mut gzip = GzBuilder::new().mtime(0).write(out, Compression::default());
        gzip.write_all(&self.message.0)?;
        gzip.finish()?;
        Ok(())
    }

    fn function(&mut self, names: &Names, key: (FuncId, Option<FileId>), path: &str) -> u64 {
        let next = self.functions.len() as u64 + 1;
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        self.functions.insert(key, next);
        let (id, _) = key;
        let shown = self.string(names.function(id));
        let raw = self.string(names.raw(id).unwrap_or(names.function(id)));
        let path = self.string(path);
        let mut function = Message::default();
        function
            .integer(1, next)
            .integer(2, shown)
            .integer(3, raw)
            .integer(4, path);
        self.message.message(5, &function);
        next
    }

    fn sample(&mut self, stretch: &[OperatorCount], function: u64, line: Option<Line>, sum: u64) {
        self.locations += 1;
        let mut at = Message::default();
        at.integer(1, function)
            .integer(2, line.map_or(0, |line| line.number.into()));
        let mut location = Message::default();
        location.integer(1, self.locations).integer(2, 1);
        location
            .integer(3, stretch[0].offset.0.into())
            .message(4, &at);
        self.message.message(4, &location);
        let mut sample = Message::default();
        sample
            .packed(1, &[self.locations])
            .packed(2, &[stretch[0].count, sum]);
        self.message.message(2, &sample);
    }
}
