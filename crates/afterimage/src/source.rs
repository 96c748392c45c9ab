//! Maps the code of a program to its source.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use afterimage_ids::OrigOffset;
use afterimage_present::grouped;
use afterimage_profile::{CodeFilter, Folded, Profile, Scope, Source, is_library_name};
use afterimage_program::{Location, Module, NoDebug, SourceMap};
use anyhow::{Result, anyhow, bail};

use crate::monitor::{Monitor, Note};
use crate::sources::{SourceFiles, SourcePaths};
use crate::text::harmless;

/// Parses a module. With `is_text`, the module may be in text form.
///
/// # Errors
/// Returns an error if the bytes are not a module.
pub fn parse_module(bytes: Vec<u8>, is_text: bool) -> Result<Module> {
    if !is_text || bytes.starts_with(b"\0asm") {
        return Ok(Module::parse(bytes)?);
    }
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("the text is not UTF-8"))?;
    let bytes = wat::parse_str(&text).map_err(|error| {
        // The parser's message draws the place on several lines. Keep one line.
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default();
        let place = message
            .lines()
            .find_map(|line| line.trim().strip_prefix("--> "));
        match place {
            Some(place) => anyhow!("{first} (at {})", place.trim_start_matches("<anon>:")),
            None => anyhow!("{first}"),
        }
    })?;
    Ok(Module::parse(bytes)?)
}

/// Builds the source map of a module. `name` is the module's name in messages. The monitor receives
/// warnings about unreadable debug information.
pub fn source_map<'a>(name: &Path, module: &'a Module, monitor: &dyn Monitor) -> SourceMap<'a> {
    let sources = SourceFiles::new(name, SourcePaths::default());
    source_map_with(name, module, monitor, Arc::new(sources))
}

/// Like [`source_map`], but with the available sources.
pub fn source_map_with<'a>(
    name: &Path,
    module: &'a Module,
    monitor: &dyn Monitor,
    sources: Arc<SourceFiles>,
) -> SourceMap<'a> {
    let map = SourceMap::build(&module.bytes);
    sources.expect(map.digests());
    let map = map.preferring(move |path| sources.has(path));
    let remarks = [foreign(name, module, &map), unread(name, &map)];
    for remark in remarks.into_iter().flatten() {
        monitor.note(name, &Note::Remark(remark))
    }
    map
}

/// The maximum number of functions that a message names.
const NAMED: usize = 3;

/// Lists the first few names, and says how many more there are.
fn some<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut named = Vec::from_iter(names.take(NAMED).map(harmless));
    if more > 0 {
        named.push(format!("{} more", grouped(more as u64)));
    }
    named.join(", ")
}

/// Refuses a glob that selects no source file of a program.
///
/// # Errors
/// Returns an error if the glob selects no source file. The error names some source files of the
/// program.
pub fn check_code(source: &dyn Source, code: &CodeFilter) -> Result<()> {
    let CodeFilter::Files(glob) = code else {
        return Ok(());
    };
    let files = source.files();
    if files.iter().any(|file| code.shows(file)) {
        return Ok(());
    }
    if files.is_empty() {
        bail!("no source file matches {glob}: the program names none (compile it with -g)");
    }
    // Rust names its compilation units `app.rs/@/app.…`.
    let is_own = |file: &&String| CodeFilter::Mine.shows(file) && !file.contains("/@/");
    let own = files.iter().filter(is_own);
    let own = Vec::from_iter(own.map(String::as_str));
    if own.is_empty() {
        bail!("no source file matches {glob}: the program has only library code: --code all");
    }
    bail!(
        "no source file matches {glob}; your own are {}",
        some(own.into_iter())
    )
}

/// Describes the executed functions without lines, which a report by line leaves out. Returns
/// `None` if there are none. Also returns `None` if the module has no lines at all, because the
/// report says so itself. Ignores functions of the linker and the C library. Also ignores less than
/// a hundredth of the run, unless the module's debug information is stored elsewhere.
pub fn without_lines(
    name: &Path,
    profile: &Profile<'_>,
    scope: &Scope,
    map: &SourceMap<'_>,
) -> Option<String> {
    if map.rows().is_empty() {
        return None;
    }
    let foreign = HashSet::<_>::from_iter(map.foreign().map(|body| body.start));
    let names = profile.names();
    let (mut silent, mut instructions) = (Vec::new(), 0);
    for (function, _, counted) in profile.functions() {
        let called = names.function(function.id);
        // Users do not compile functions of the linker and the C library.
        let of_linker = called.starts_with("__") || called.ends_with(".command_export");
        if counted.instructions > 0
            && scope.contains(function.id)
            && !of_linker
            && !foreign.contains(&function.body.start)
            && !map.has_lines(&function.body)
        {
            instructions += counted.instructions;
            silent.push(called);
        }
    }
    let total = profile.totals().instructions;
    // Libraries hide some functions from debuggers, so a few functions without lines are normal.
    let is_worth = map.missing() != NoDebug::Nowhere || instructions >= total / 100;
    (!silent.is_empty() && is_worth).then(|| {
        format!(
            "{}: {} of {} executed instructions ({}) have no known line{}",
            name.display(),
            grouped(instructions),
            grouped(total),
            some(silent.into_iter()),
            map.missing().hint(),
        )
    })
}

/// Returns the message about debug information that does not belong to the code.
fn foreign(name: &Path, module: &Module, map: &SourceMap<'_>) -> Option<String> {
    let foreign = map
        .foreign()
        .filter_map(|body| module.program.function_at(body.start));
    let foreign = Vec::from_iter(foreign.map(|function| function.id));
    if foreign.is_empty() {
        return None;
    }
    let names = module.names(map);
    Some(format!(
        "{}: the debug information of {} of {} functions does not match their code ({}): a tool \
         rewrote the module and kept the old addresses; their lines and variables are left out; \
         record the module as it was linked",
        name.display(),
        grouped(foreign.len() as u64),
        grouped(map.described() as u64),
        some(foreign.iter().map(|id| names.function(*id))),
    ))
}

/// Returns the message about debug information that cannot be read.
fn unread(name: &Path, map: &SourceMap<'_>) -> Option<String> {
    let mut warnings = map.warnings();
    let first = warnings.next()?;
    let more = match warnings.count() {
        0 => String::new(),
        more => format!(", and {more} more like it"),
    };
    Some(format!(
        "{}: part of the program's debug information cannot be read, so lines and functions may be missing: {first}{more}",
        name.display()
    ))
}

/// Whether an operator at `offset`, with source position `position`, is neither in the user's own
/// code nor inlined into it. For a function without lines, its `name` decides.
pub(crate) fn is_library(
    folded: &Folded<'_>,
    offset: OrigOffset,
    (name, position): (&str, Option<Location>),
) -> bool {
    match position {
        Some(at) => !folded.shows(at.file) && folded.around(offset).is_empty(),
        None => folded.shows_any() && is_library_name(name),
    }
}
