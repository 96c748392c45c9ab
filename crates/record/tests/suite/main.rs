//! The WebAssembly test suite, recorded: `cargo xtask suites`.
//!
//! Each call that must return or trap is made by a recorded run: the calls that came before it in the script are made first, by a function that is added to the
//! module ([`driver`]). What the recording says is compared with the script, and then the machine runs the guest again along the recorded path and is
//! compared with the recording. Modules that must not be valid must be refused.

#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/harness.rs"]
mod harness;
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/play.rs"]
mod play;
#[path = "../wet/stored.rs"]
mod stored;
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/words.rs"]
mod words;

mod driver;
mod script;

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use afterimage_ids::FuncId;
use afterimage_machine::stopped_before;
use afterimage_program::{ParseError, Program};
use afterimage_record::{HostFunction, Interrupt, RecordOptions};
use afterimage_trace::{Ending, RawValue};
use wast::parser::{ParseBuffer, parse};
use wast::{QuoteWat, QuoteWatTest, Wast, WastDirective, WastExecute, WastInvoke, WastRet};

use crate::driver::{Call, DRIVE, signature, with_driver};
use crate::harness::{Recording, invoke, quiet, try_record};
use crate::script::{Value, fits, trap_fits};
use crate::stored::Stored;

/// No function returns more than this many values.
const MOST_RESULTS: usize = 1000;

/// How many assertions held, by what they are, and how many were left out, by why.
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

    fn left_out(&mut self, why: impl Into<String>) {
        *self.left_out.entry(why.into()).or_default() += 1;
    }
}

/// What a call must come to.
enum Expected<'a> {
    Anything,
    Returns(&'a [WastRet<'a>]),
    Traps(&'a str),
}

struct Step<'a> {
    line: usize,
    function: FuncId,
    arguments: Vec<Value>,
    expected: Expected<'a>,
}

/// A module of a script, and its calls.
struct Guest<'a> {
    bytes: Vec<u8>,
    program: Program,
    steps: Vec<Step<'a>>,
}

/// A module, or why its assertions are left out.
type Known<'a> = Result<Guest<'a>, String>;

fn options() -> RecordOptions {
    let print = |name: &str| HostFunction::new("spectest", name, |_, _| Ok(Vec::new()));
    let names = [
        "print",
        "print_i32",
        "print_i64",
        "print_f32",
        "print_f64",
        "print_i32_f32",
        "print_f64_f64",
    ];
    RecordOptions {
        functions: names.map(print).into(),
        clock: true,
        ..quiet()
    }
}

fn parsed(bytes: &[u8]) -> Result<Program, String> {
    let program = Program::parse(bytes).map_err(|error| match error {
        ParseError::Unsupported { feature, .. } if feature.contains("imported") => {
            "an imported memory, table, global or tag".to_owned()
        }
        ParseError::Unsupported { feature, .. } => feature.to_string(),
        error => format!("refused as invalid: {error}"),
    })?;
    let from_others = program.imports.iter().any(|i| i.module != "spectest");
    match from_others {
        true => Err("an import of another module".to_owned()),
        false => Ok(program),
    }
}

/// Runs a script.
fn run(path: &Path, text: &str, counts: &mut Counts) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Ok(buffer) = ParseBuffer::new(text) else {
        return counts.left_out("a script that cannot be read");
    };
    let Ok(script) = parse::<Wast<'_>>(&buffer) else {
        return counts.left_out("a script that cannot be read");
    };
    let mut directives = script.directives;
    let mut guests: Vec<Known<'_>> = Vec::new();
    let mut named: HashMap<String, usize> = HashMap::new();
    // What the modules are first, because that changes them.
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
                guests.push(bytes.and_then(|bytes| {
                    Ok(Guest {
                        program: parsed(&bytes)?,
                        bytes,
                        steps: Vec::new(),
                    })
                }));
            }
            WastDirective::AssertInvalid { message, .. }
            | WastDirective::AssertMalformed { message, .. } => match module {
                Some((_, Ok(bytes))) if Program::parse(&bytes).is_err() => {
                    counts.held("refused", 1)
                }
                Some((_, Ok(_))) => counts
                    .wrong
                    .push(format!("{name}:{line}: is not refused: {message}")),
                _ => counts.left_out("text that the assembler refuses"),
            },
            WastDirective::Invoke(call) => {
                add(&mut guests, &named, call, Expected::Anything, line, counts)
            }
            WastDirective::AssertReturn {
                exec: WastExecute::Invoke(call),
                results,
                ..
            } => {
                add(
                    &mut guests,
                    &named,
                    call,
                    Expected::Returns(results),
                    line,
                    counts,
                );
            }
            WastDirective::AssertTrap {
                exec: WastExecute::Invoke(call),
                message,
                ..
            } => {
                add(
                    &mut guests,
                    &named,
                    call,
                    Expected::Traps(message),
                    line,
                    counts,
                );
            }
            WastDirective::AssertExhaustion { call, message, .. } => {
                add(
                    &mut guests,
                    &named,
                    call,
                    Expected::Traps(message),
                    line,
                    counts,
                );
            }
            WastDirective::AssertException {
                exec: WastExecute::Invoke(call),
                ..
            } => {
                add(
                    &mut guests,
                    &named,
                    call,
                    Expected::Traps("exception"),
                    line,
                    counts,
                );
            }
            WastDirective::Register { .. } | WastDirective::ModuleInstance { .. } => {}
            _ => counts.left_out("linking, threads and others"),
        }
    }
    for guest in guests.into_iter().flatten() {
        check(&name, &guest, counts);
    }
}

fn add<'a>(
    guests: &mut [Known<'a>],
    named: &HashMap<String, usize>,
    call: &'a WastInvoke<'a>,
    expected: Expected<'a>,
    line: usize,
    counts: &mut Counts,
) {
    let at = match call.module {
        Some(id) => named.get(id.name()).copied(),
        None => guests.len().checked_sub(1),
    };
    let guest = match at.and_then(|at| guests.get_mut(at)) {
        Some(Ok(guest)) => guest,
        Some(Err(why)) => return counts.left_out(why.clone()),
        None => return counts.left_out("no module"),
    };
    let export = guest
        .program
        .exports
        .iter()
        .find(|(name, _)| name == call.name);
    let arguments: Option<Vec<Value>> = call.args.iter().map(Value::of).collect();
    match (export, arguments) {
        (Some(&(_, function)), Some(arguments)) => guest.steps.push(Step {
            line,
            function,
            arguments,
            expected,
        }),
        _ => counts.left_out("references of the host"),
    }
}

/// Records the calls of a guest: those that return together, and each that traps with those before it.
fn check(name: &str, guest: &Guest<'_>, counts: &mut Counts) {
    let steps = &guest.steps;
    let returns = |step: &Step<'_>| !matches!(step.expected, Expected::Traps(_));
    let results = |step: &Step<'_>| signature(&guest.program, step.function).1.len();
    let call = |step: &Step<'_>, kept| Call {
        function: step.function,
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
    for (i, step) in steps.iter().enumerate() {
        let Expected::Traps(message) = step.expected else {
            continue;
        };
        let before = steps[..i].iter().filter(|step| returns(step));
        let mut calls = Vec::from_iter(before.map(|step| call(step, false)));
        calls.push(call(step, false));
        let place = format!("{name}:{}", step.line);
        match recorded(guest, &calls) {
            Err(error) => counts.wrong.push(format!("{place}: {error}")),
            Ok(recording) => {
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
                    machine(&place, &recording, counts);
                }
            }
        }
    }
}

fn recorded(guest: &Guest<'_>, calls: &[Call]) -> Result<Recording, String> {
    let bytes = with_driver(&guest.bytes, &guest.program, calls);
    let command = invoke(DRIVE, &[]);
    let recorded = try_record(&bytes, &command, &options(), &Interrupt::new());
    recorded.map_err(|error| error.to_string())
}

/// Compares the results of calls with what they must be.
fn compare(
    name: &str,
    guest: &Guest<'_>,
    steps: &[Step<'_>],
    results: &[RawValue],
    counts: &mut Counts,
) {
    let mut results = results.iter();
    for step in steps {
        let count = signature(&guest.program, step.function).1.len();
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

/// Runs a recording again by the machine, which compares every branch, call and result with it.
fn machine(place: &str, recording: &Recording, counts: &mut Counts) {
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

/// The scripts in a folder, sorted.
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

#[test]
#[ignore = "needs the WebAssembly test suite: cargo xtask suites"]
fn webassembly() {
    let folder = std::env::var_os("AFTERIMAGE_SUITE").expect("a folder in AFTERIMAGE_SUITE");
    let mut found = Vec::new();
    scripts(Path::new(&folder), &mut found);
    assert!(!found.is_empty(), "no scripts in {folder:?}");
    let mut counts = Counts::default();
    for path in &found {
        let text = std::fs::read(path).expect("a script");
        run(path, &String::from_utf8_lossy(&text), &mut counts);
    }
    println!("{} scripts", found.len());
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
