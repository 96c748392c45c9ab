//! Records the WebAssembly test suite, as `cargo xtask suites`.
//!
//! Each call that must return or trap is made in a recorded run. An added function ([`driver`])
//! first makes the script's earlier calls. The recording is compared with the script. Then the
//! machine re-runs the guest along the recorded path and is compared with the recording. Invalid
//! modules must be rejected.

mod alone;
mod driver;
mod script;
mod sections;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use afterimage_machine::{Machine, MachineError, stopped_before};
use afterimage_program::{ParseError, Program};
use afterimage_record::{Interrupt, RecordOptions};
use afterimage_trace::{Ending, RawValue};
use wasmparser::{ExternalKind, Parser, Payload};
use wast::parser::{ParseBuffer, parse};
use wast::{
    QuoteWat, QuoteWatTest, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet,
};

use alone::{Registered, alone, imported};
use driver::{Call, DRIVE, Export, signature, with_driver};
use script::{Value, fits, trap_fits};

use crate::harness::{Recording, invoke, quiet, try_record};
use crate::stored::Stored;

/// The maximum number of results of a driver function.
const MOST_RESULTS: usize = 1000;

/// The number of assertions that held, by kind, and the number left out, by reason.
#[derive(Default)]
struct Counts {
    held: BTreeMap<&'static str, u64>,
    left_out: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl Counts {
    fn held(&mut self, what: &'static str, count: usize) {
        *self.held.entry(what).or_default() += count as u64;
    }

    fn add(&mut self, other: Self) {
        for (what, count) in other.held {
            *self.held.entry(what).or_default() += count;
        }
        for (why, count) in other.left_out {
            *self.left_out.entry(why).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }

    fn left_out(&mut self, why: impl Into<String>) {
        *self.left_out.entry(why.into()).or_default() += 1;
    }
}

/// Reasons for which older scripts reject modules that are valid with more than one memory or
/// table.
const SUPERSEDED: [&str; 2] = ["multiple ", "zero byte expected"];

/// The expected outcome of a call.
enum Expected<'a> {
    Anything,
    Returns(&'a [WastRet<'a>]),
    Traps(&'a str),
}

struct Step<'a> {
    line: usize,
    export: Export,
    arguments: Vec<Value>,
    expected: Expected<'a>,
}

/// A module of a script, and its calls.
struct Guest<'a> {
    bytes: Vec<u8>,
    program: Program,
    steps: Vec<Step<'a>>,
    /// The reason why the module's state is unknown. A call or a module that was left out may have
    /// changed it.
    lost: Option<&'static str>,
}

/// A module, or the reason why its assertions are left out.
type Known<'a> = Result<Guest<'a>, String>;

fn options() -> RecordOptions {
    RecordOptions {
        clock: true,
        ..quiet()
    }
}

/// Parses a module after making it independent of other modules.
fn guest<'a>(bytes: &[u8], registered: &Registered<'_>) -> Known<'a> {
    // Check for unsupported features first, because their errors name the feature.
    let parsed = |bytes: &[u8]| {
        Program::parse(bytes).map_err(|error| match error {
            ParseError::Unsupported { feature, .. } => feature.to_string(),
            error => format!("refused as invalid: {error}"),
        })
    };
    if let Err(why) = parsed(bytes)
        && !why.contains("imported")
    {
        return Err(why);
    }
    let bytes = alone(bytes, registered)?;
    Ok(Guest {
        program: parsed(&bytes)?,
        bytes,
        steps: Vec::new(),
        lost: None,
    })
}

/// Runs a script.
fn run(path: &Path, text: &str, counts: &mut Counts) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Ok(buffer) = ParseBuffer::new(text) else {
        return counts.left_out(format!("a script that the assembler cannot read: {name}"));
    };
    let Ok(script) = parse::<Wast<'_>>(&buffer) else {
        return counts.left_out(format!("a script that the assembler cannot read: {name}"));
    };
    let mut directives = script.directives;
    let mut guests: Vec<Known<'_>> = Vec::new();
    let mut named: HashMap<String, usize> = HashMap::new();
    let mut registered: HashMap<&str, usize> = HashMap::new();
    let mut offered = Registered::new();
    // Encode the modules first, because encoding changes them.
    let mut modules = Vec::new();
    for directive in &mut directives {
        modules.push(match directive {
            WastDirective::Module(module) | WastDirective::ModuleDefinition(module) => Some((
                module.name().map(|id| id.name().to_owned()),
                module.encode().map_err(|e| e.to_string()),
            )),
            WastDirective::AssertInvalid { module, .. }
            | WastDirective::AssertMalformed { module, .. } => {
                let is_text = !matches!(module, QuoteWat::Wat(_));
                let bytes = match module.to_test() {
                    Ok(QuoteWatTest::Binary(bytes)) if !is_text => Ok(bytes),
                    _ => Err(String::new()),
                };
                Some((None, bytes))
            }
            WastDirective::AssertTrap {
                exec: WastExecute::Wat(module),
                ..
            }
            | WastDirective::AssertUnlinkable { module, .. } => {
                Some((None, module.encode().map_err(|e| e.to_string())))
            }
            _ => None,
        });
    }
    for (directive, module) in directives.iter().zip(modules) {
        let (line, _) = directive.span().linecol_in(text);
        let line = line + 1;
        match directive {
            WastDirective::Module(_) | WastDirective::ModuleDefinition(_) => {
                let (id, bytes) = module.unwrap_or((None, Err(String::new())));
                if let Some(id) = id {
                    named.insert(id, guests.len());
                }
                let made = linked(bytes, &mut guests, &registered, &offered);
                guests.push(made);
            }
            WastDirective::AssertInvalid { message, .. }
            | WastDirective::AssertMalformed { message, .. } => match module {
                Some((_, Ok(bytes))) if Program::parse(&bytes).is_err() => {
                    counts.held("refused", 1)
                }
                Some((_, Ok(_))) if SUPERSEDED.iter().any(|old| message.starts_with(old)) => {
                    counts.left_out("what is allowed with more than one memory or table");
                }
                Some((_, Ok(_))) => counts
                    .wrong
                    .push(format!("{name}:{line}: is not refused: {message}")),
                _ => counts.left_out("text that the assembler refuses"),
            },
            WastDirective::Invoke(call) => {
                let used = Used::of(call);
                add(&mut guests, &named, used, Expected::Anything, line, counts)
            }
            WastDirective::AssertReturn { exec, results, .. } => {
                let used = Used::by(exec);
                let expected = Expected::Returns(results);
                add(&mut guests, &named, used, expected, line, counts);
            }
            WastDirective::AssertTrap {
                exec: WastExecute::Wat(_),
                message,
                ..
            } => {
                let bytes = module.map_or_else(|| Err(String::new()), |(_, bytes)| bytes);
                let made = linked(bytes, &mut guests, &registered, &offered);
                match made {
                    Ok(guest) => {
                        traps(
                            &format!("{name}:{line}"),
                            &guest,
                            &[],
                            message,
                            true,
                            counts,
                        );
                    }
                    Err(why) => counts.left_out(why),
                }
            }
            WastDirective::AssertTrap { exec, message, .. } => {
                let used = Used::by(exec);
                let expected = Expected::Traps(message);
                add(&mut guests, &named, used, expected, line, counts);
            }
            WastDirective::AssertExhaustion { call, message, .. } => {
                let used = Used::of(call);
                let expected = Expected::Traps(message);
                add(&mut guests, &named, used, expected, line, counts);
            }
            WastDirective::AssertException { exec, .. } => {
                let used = Used::by(exec);
                let expected = Expected::Traps("exception");
                add(&mut guests, &named, used, expected, line, counts);
            }
            WastDirective::ModuleInstance {
                instance, module, ..
            } => {
                let definition = match module {
                    Some(id) => named.get(id.name()).copied(),
                    None => guests.len().checked_sub(1),
                };
                let definition = definition.and_then(|at| guests.get(at));
                let copy = match definition {
                    Some(Ok(one)) => guest(&one.bytes, &offered),
                    Some(Err(why)) => Err(why.clone()),
                    None => Err("no module".to_owned()),
                };
                if let Some(id) = instance {
                    named.insert(id.name().to_owned(), guests.len());
                }
                guests.push(copy);
            }
            WastDirective::Register { name, module, .. } => {
                let at = match module {
                    Some(id) => named.get(id.name()).copied(),
                    None => guests.len().checked_sub(1),
                };
                if let Some(at) = at {
                    registered.insert(name, at);
                    if let Some(Ok(guest)) = guests.get(at) {
                        offered.insert(name, guest.bytes.clone());
                    }
                }
            }
            WastDirective::AssertUnlinkable { .. } => {
                if let Some((_, Ok(bytes))) = module {
                    lose(&mut guests, &registered, &bytes);
                }
                counts.left_out("linking of modules");
            }
            WastDirective::Thread(_) | WastDirective::Wait { .. } => counts.left_out("threads"),
            WastDirective::AssertInvalidCustom { .. }
            | WastDirective::AssertMalformedCustom { .. } => {
                counts.left_out("custom sections that only an assembler checks");
            }
            WastDirective::AssertSuspension { .. } => counts.left_out("stack switching"),
        }
    }
    for guest in guests.into_iter().flatten() {
        check(&name, &guest, counts);
    }
}

/// Does the same as [`guest`]. A module that is left out makes the state of the modules linked with
/// it unknown.
fn linked<'a>(
    bytes: Result<Vec<u8>, String>,
    guests: &mut [Known<'_>],
    registered: &HashMap<&str, usize>,
    offered: &Registered<'_>,
) -> Known<'a> {
    let bytes = bytes?;
    let made = guest(&bytes, offered);
    if made.is_err() {
        lose(guests, registered, &bytes);
    }
    made
}

/// Marks the modules that are linked with a module that is left out.
fn lose(guests: &mut [Known<'_>], registered: &HashMap<&str, usize>, bytes: &[u8]) {
    for module in imported(bytes) {
        let at = registered.get(module.as_str());
        if let Some(Ok(guest)) = at.and_then(|&at| guests.get_mut(at)) {
            guest.lost = Some("linking of modules");
        }
    }
}

/// An export as a script names it.
struct Used<'a> {
    module: Option<&'a str>,
    name: &'a str,
    arguments: &'a [WastArg<'a>],
    /// Whether the export is a global that is read.
    reads: bool,
}

impl<'a> Used<'a> {
    fn of(call: &'a WastInvoke<'a>) -> Self {
        Self {
            module: call.module.as_ref().map(|id| id.name()),
            name: call.name,
            arguments: &call.args,
            reads: false,
        }
    }

    fn by(exec: &'a WastExecute<'a>) -> Self {
        match exec {
            WastExecute::Invoke(call) => Self::of(call),
            WastExecute::Get { module, global, .. } => Self {
                module: module.as_ref().map(|id| id.name()),
                name: global,
                arguments: &[],
                reads: true,
            },
            WastExecute::Wat(_) => unreachable!("a module is only to trap"),
        }
    }

    fn export(&self, guest: &Guest<'_>) -> Option<Export> {
        if self.reads {
            return global(&guest.bytes, self.name).map(Export::Global);
        }
        let mut exports = guest.program.exports.iter();
        let (_, function) = exports.find(|(name, _)| name == self.name)?;
        Some(Export::Function(*function))
    }
}

/// Returns the global that a module exports under a name.
fn global(bytes: &[u8], name: &str) -> Option<u32> {
    Parser::new(0).parse_all(bytes).find_map(|payload| {
        let Ok(Payload::ExportSection(exports)) = payload else {
            return None;
        };
        let mut exports = exports.into_iter().flatten();
        exports.find_map(|e| (e.kind == ExternalKind::Global && e.name == name).then_some(e.index))
    })
}

fn add<'a>(
    guests: &mut [Known<'a>],
    named: &HashMap<String, usize>,
    used: Used<'a>,
    expected: Expected<'a>,
    line: usize,
    counts: &mut Counts,
) {
    let at = match used.module {
        Some(id) => named.get(id).copied(),
        None => guests.len().checked_sub(1),
    };
    let guest = match at.and_then(|at| guests.get_mut(at)) {
        Some(Ok(guest)) => guest,
        Some(Err(why)) => return counts.left_out(why.clone()),
        None => return counts.left_out("no module"),
    };
    let arguments: Option<Vec<Value>> = used.arguments.iter().map(Value::of).collect();
    if let Some(why) = guest.lost {
        return counts.left_out(why);
    }
    let Some(arguments) = arguments else {
        guest.lost = Some("references of the host");
        return counts.left_out("references of the host");
    };
    match used.export(guest) {
        Some(export) => guest.steps.push(Step {
            line,
            export,
            arguments,
            expected,
        }),
        None => counts
            .wrong
            .push(format!("line {line}: no export {}", used.name)),
    }
}

/// Records the calls of a guest. All calls that return are in one run. Each call that traps has its
/// own run, with the calls before it.
fn check(name: &str, guest: &Guest<'_>, counts: &mut Counts) {
    let steps = &guest.steps;
    let returns = |step: &Step<'_>| !matches!(step.expected, Expected::Traps(_));
    let results = |step: &Step<'_>| signature(&guest.program, step.export).1.len();
    let call = |step: &Step<'_>, kept| Call {
        export: step.export,
        arguments: step.arguments.clone(),
        kept,
    };
    let mut at = 0;
    while at < steps.len() {
        let mut end = at;
        let mut kept = 0;
        while end < steps.len() && kept + results(&steps[end]) <= MOST_RESULTS {
            if returns(&steps[end]) {
                kept += results(&steps[end]);
            }
            end += 1;
        }
        let before = steps[..at]
            .iter()
            .filter(|step| returns(step))
            .map(|step| call(step, false));
        let now = steps[at..end].iter().filter(|step| returns(step));
        let calls = Vec::from_iter(before.chain(now.map(|step| call(step, true))));
        if calls.iter().any(|call| call.kept) {
            let first = format!("{name}:{}", steps[at].line);
            match recorded(guest, &calls) {
                Err(error) => counts.wrong.push(format!("{first}: {error}")),
                Ok(recording) if recording.ending() != &Ending::Returned => {
                    counts
                        .wrong
                        .push(format!("{first}: {}", recording.ending()));
                }
                Ok(recording) => {
                    keep(&first, &recording.bytes);
                    compare(
                        name,
                        guest,
                        &steps[at..end],
                        &recording.recorded.results,
                        counts,
                    );
                    machine(&first, &recording, counts);
                }
            }
        }
        at = end;
    }
    let mut seen = BTreeSet::new();
    for (i, step) in steps.iter().enumerate() {
        let Expected::Traps(message) = step.expected else {
            continue;
        };
        // Keep one module for each kind of trap, for the tests of the command line.
        let keeps = seen.insert(message);
        let before = steps[..i].iter().filter(|step| returns(step));
        let mut calls = Vec::from_iter(before.map(|step| call(step, false)));
        calls.push(call(step, false));
        let place = format!("{name}:{}", step.line);
        traps(&place, guest, &calls, message, keeps, counts);
    }
}

/// Records calls, the last of which must trap.
fn traps(
    place: &str,
    guest: &Guest<'_>,
    calls: &[Call],
    message: &str,
    keeps: bool,
    counts: &mut Counts,
) {
    let recording = match recorded(guest, calls) {
        Ok(recording) => recording,
        // There are no calls, so the module must trap when it is instantiated.
        Err(error) if calls.is_empty() && error.contains(message) => {
            return counts.held("traps of instantiation", 1);
        }
        Err(error) => return counts.wrong.push(format!("{place}: {error}")),
    };
    let ending = recording.ending();
    let fits = match message {
        "exception" => matches!(ending, Ending::Exception { .. }),
        message => trap_fits(&ending.to_string(), message),
    };
    if !fits {
        counts
            .wrong
            .push(format!("{place}: {ending}, not {message}"));
    } else if recording.recorded.uncertain.is_some() {
        counts
            .wrong
            .push(format!("{place}: {:?}", recording.recorded.uncertain));
    } else {
        counts.held("traps", 1);
        if keeps {
            keep(place, &recording.bytes);
        }
        machine(place, &recording, counts);
    }
}

/// Saves a module for the tests of the command line.
fn keep(place: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("AFTERIMAGE_SUITE_MODULES") {
        let file = format!("{}.wasm", place.replace([':', '/'], "-"));
        std::fs::write(Path::new(&folder).join(file), bytes).expect("a module");
    }
}

fn recorded(guest: &Guest<'_>, calls: &[Call]) -> Result<Recording, String> {
    let bytes = with_driver(&guest.bytes, &guest.program, calls);
    let command = invoke(DRIVE, &[]);
    let recorded = catch_unwind(AssertUnwindSafe(|| {
        try_record(&bytes, &command, &options(), &Interrupt::new())
    }));
    let recorded = recorded.map_err(|_| "the recorder panicked".to_owned())?;
    recorded.map_err(|error| error.to_string())
}

/// Compares the results of calls with the script.
fn compare(
    name: &str,
    guest: &Guest<'_>,
    steps: &[Step<'_>],
    results: &[RawValue],
    counts: &mut Counts,
) {
    let mut results = results.iter();
    for step in steps {
        let count = signature(&guest.program, step.export).1.len();
        let expected = match step.expected {
            Expected::Traps(_) => continue,
            Expected::Anything => {
                results.by_ref().take(count).for_each(drop);
                continue;
            }
            Expected::Returns(expected) => expected,
        };
        let own = Vec::from_iter(results.by_ref().take(count).copied());
        let same = own.len() == expected.len()
            && own.iter().zip(expected).all(|(own, one)| fits(*own, one));
        if same {
            counts.held("returns", 1);
            counts.held("results", own.len());
        } else {
            counts
                .wrong
                .push(format!("{name}:{}: {own:?}, not {expected:?}", step.line));
        }
    }
}

/// Re-runs a recording on the machine, which compares every branch, call and result with it.
fn machine(place: &str, recording: &Recording, counts: &mut Counts) {
    // A function with this many locals is rejected (docs/LIMITS.md).
    let log = recording.file.log().expect("a log");
    let machine = Machine::new(&recording.program, &recording.bytes, log);
    if let Err(error @ MachineError::TooDeep) = machine {
        return counts.left_out(error.to_string());
    }
    let followed = catch_unwind(AssertUnwindSafe(|| follow(recording)));
    match followed {
        Ok(Ok(())) => counts.held("runs followed by the machine", 1),
        Ok(Err(error)) => counts.wrong.push(format!("{place}: machine: {error}")),
        Err(_) => counts
            .wrong
            .push(format!("{place}: the machine or the path panicked")),
    }
}

fn follow(recording: &Recording) -> Result<(), String> {
    let stored = Stored::of(recording);
    let mut machine = stored.machine(recording);
    let mut cursor = stored.path.cursor();
    let mut visits = Vec::new();
    while let Some(visit) = cursor.next().map_err(|e| e.to_string())? {
        visits.push(visit);
    }
    let last = visits.pop();
    for visit in visits {
        machine
            .step(visit.node, visit.length, &mut ())
            .map_err(|e| e.to_string())?;
    }
    if let Some(last) = last {
        let end = &recording.recorded.end;
        match stopped_before(&recording.program, &recording.bytes, end) {
            Some(stopped) => machine.step_before(last.node, last.length, stopped, &mut ()),
            None => machine.step(last.node, last.length, &mut ()),
        }
        .map_err(|e| e.to_string())?;
    }
    match (recording.ending(), machine.trap()) {
        (Ending::Trapped { code, .. }, Some(trap)) if trap.code() == *code => Ok(()),
        (Ending::Trapped { code, .. }, other) => Err(format!("{code}, but the machine {other:?}")),
        (_, None) => Ok(()),
        (ending, Some(trap)) => Err(format!("{ending}, but the machine traps: {trap}")),
    }
}

/// Collects the scripts in a folder.
fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "wast")
        {
            found.push(path);
        }
    }
    found.sort();
}

fn next(left: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    left.lock().expect("no panic").pop()
}

#[test]
#[ignore = "needs the WebAssembly test suite: cargo xtask suites"]
fn webassembly() {
    let folder = std::env::var_os("AFTERIMAGE_SUITE").expect("a folder in AFTERIMAGE_SUITE");
    let mut found = Vec::new();
    for folder in std::env::split_paths(&folder) {
        scripts(&folder, &mut found);
    }
    assert!(!found.is_empty(), "no scripts in {folder:?}");
    // The longest scripts come first, on two threads. More threads would exceed CI's memory.
    found.sort_by_key(|path| std::fs::metadata(path).map_or(0, |data| data.len()));
    let scripts = found.len();
    let left = Mutex::new(found);
    let all = Mutex::new(Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = next(&left) {
                    let started = std::time::Instant::now();
                    let mut counts = Counts::default();
                    let text = std::fs::read(&path).expect("a script");
                    run(&path, &String::from_utf8_lossy(&text), &mut counts);
                    for wrong in &counts.wrong {
                        println!("WRONG {wrong}");
                    }
                    println!("{:>8.1?} {}", started.elapsed(), path.display());
                    all.lock().expect("no panic").add(counts);
                }
            });
        }
    });
    let counts = all.into_inner().expect("no panic");
    println!("{scripts} scripts");
    for (what, count) in &counts.held {
        println!("{count:>8} {what}");
    }
    println!("left out:");
    for (why, count) in &counts.left_out {
        println!("{count:>8} {why}");
    }
    assert!(
        counts.wrong.is_empty(),
        "{} wrong\n{}",
        counts.wrong.len(),
        counts.wrong.join("\n")
    );
}
