//! Checks that answers from snapshots, for stretches of a path and without values, agree with the
//! whole execution trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage::present::{NoSources, Sources, Style};
use afterimage::rows::Form;
use afterimage::trace::{Bounds, Level, TraceQuery};
use afterimage::verify::{Execute, verify};
use afterimage::{Cancel, Reason, Recording, Session, Silent, Snapshotting, StateQuery};
use afterimage_machine::{Machine, Opened, SNAPSHOT_PAGE, Snapshot, SnapshotBuilder, Snapshots};
use afterimage_program::{Module, Program};
use afterimage_record::{
    Cache, Command, Interrupt, Launch, PathFilter, RecordOptions, Spacing, record,
};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use afterimage_testkit::tools;
use afterimage_trace::{Existing, Kind, TraceFile, TraceWriter};
use wasmparser::ValType;

/// Records a program, with the words of its path. Returns `false` if it cannot begin.
fn recorded(at: &Path, module: &[u8], command: &Command) -> bool {
    let program = Arc::new(Program::parse(module).unwrap());
    let options = RecordOptions {
        paths: true,
        silent: true,
        ..RecordOptions::default()
    };
    let (cache, interrupt) = (Cache::none(), Interrupt::new());
    let out = TraceWriter::create(at, Existing::Replaced).unwrap();
    let launch = Launch {
        bytes: module,
        program: &program,
        command,
        options: &options,
        cache: &cache,
        interrupt: &interrupt,
    };
    record(launch, &out).is_ok()
}

/// Returns the command that calls an export, if its parameters are all numbers.
fn call(program: &Program, export: usize) -> Option<Command> {
    call_with(program, export, 1 + export % 3)
}

/// Like [`call`], with this number for each parameter.
fn call_with(program: &Program, export: usize, number: usize) -> Option<Command> {
    let (name, function) = program.exports.get(export)?;
    let params = &program.types[program.function(*function)?.ty].params;
    let is_number = |ty: &ValType| !matches!(ty, ValType::V128 | ValType::Ref(_));
    params.iter().all(is_number).then(|| Command {
        name: "guest".to_owned(),
        invoke: Some(name.clone()),
        args: params.iter().map(|_| number.to_string()).collect(),
        ..Command::default()
    })
}

fn has(at: &Path, kind: Kind) -> bool {
    TraceFile::open(at).unwrap().last(kind).is_some()
}

/// Copies a recording to another name.
pub fn copied(at: &Path, name: &str) -> PathBuf {
    let copy = at.with_file_name(name);
    fs::copy(at, &copy).unwrap();
    copy
}

fn query(at: &str) -> StateQuery {
    StateQuery {
        at: at.to_owned(),
        depth: 40,
        frame: None,
        globals: true,
    }
}

/// Compares states at some moments, with snapshots at this distance. Returns the number of
/// comparisons, and the number for which the values had to be built.
fn same_states(
    at: &Path,
    every: Snapshotting,
    moments: usize,
    random: &mut SplitMix64,
) -> (usize, usize) {
    let early = at.with_file_name("early.aft");
    let anew = || {
        let session = Session::open(&copied(at, "early.aft")).unwrap();
        session.ensure_snapshots(every).unwrap().then_some(session)
    };
    let Some(mut session) = anew() else {
        return (0, 0);
    };
    let full = Session::open(&copied(at, "full.aft")).unwrap();
    let length = full.ensure_path().unwrap().length();
    if length == 0 {
        return (0, 0);
    }
    let mut asked = Vec::from(["end", "start", "50%", "-1"].map(str::to_owned));
    asked.extend((0..moments).map(|_| format!("t={}", 1 + random.below(length as usize))));
    let mut built = 0;
    for at in &asked {
        let found = session.state(&query(at)).unwrap();
        let known = full.state(&query(at)).unwrap();
        let about = format!("{at} of {length}, {every:?}");
        assert_eq!(found.report, known.report, "{about}");
        assert_eq!(found.results.is_some(), known.results.is_some(), "{about}");
        if has(&early, Kind::VALUES_INDEX) {
            built += 1;
            session = anew().unwrap();
        }
    }
    assert!(!has(&early, Kind::PATH_INDEX), "nothing else was built");
    (asked.len(), built)
}

/// Passes recordings of generated and hand-written programs to `show`, one for each of some
/// exports.
fn each_run(seeds: u64, show: impl FnMut(&Path)) {
    each_run_with(seeds, |export| 1 + export % 3, show);
}

/// Records a call to a program's first export with these arguments, and passes the recording to
/// `show`.
pub fn one_run(text: &str, args: &[&str], show: impl FnOnce(&Path)) {
    let module = wat::parse_str(text).unwrap();
    let program = Program::parse(&module).unwrap();
    let command = Command {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        ..call(&program, 0).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run.aft");
    assert!(recorded(&at, &module, &command));
    show(&at);
}

/// Like [`each_run`]; `argument` returns the number for each parameter of an export.
pub fn each_run_with(seeds: u64, argument: impl Fn(usize) -> usize, mut show: impl FnMut(&Path)) {
    let generated = (0..seeds).map(|seed| module_from_seed(seed, &ModuleConfig::default()));
    let handwritten = HANDWRITTEN
        .iter()
        .map(|(_, text)| wat::parse_str(text).unwrap());
    for (number, module) in generated.chain(handwritten).enumerate() {
        let program = Program::parse(&module).unwrap();
        for export in 0..3 {
            if let Some(command) = call_with(&program, export, argument(export)) {
                // This output is shown if a test fails.
                println!("program {number}, export {export}");
                let folder = tempfile::tempdir().unwrap();
                let at = folder.path().join("run.aft");
                if recorded(&at, &module, &command) {
                    show(&at);
                }
            }
        }
    }
}

#[test]
fn states_are_those_of_the_whole_execution_trace() {
    let mut random = SplitMix64(35);
    let (mut compared, mut runs) = (0, 0);
    each_run(20, |at| {
        let followed = [1, 7, 100].map(Snapshotting::Followed);
        // Running a program again requires compiling it.
        runs += 1;
        let executed = Snapshotting::Executed(Spacing::polls(1));
        let executed = (runs % 8 == 0).then_some(executed);
        for every in followed.into_iter().chain(executed) {
            let (states, built) = same_states(at, every, 5, &mut random);
            assert_eq!(built, 0, "locals are known without values");
            compared += states;
        }
    });
    assert!(compared > 300, "{compared}");
}

/// A program in C with recursion, structures, pointers, inlined code, and overwritten parameters.
const C: &str = r#"
struct node { int key; struct node *left, *right; };
static struct node nodes[64];
static int used, deepest;
static const char *last;
int apply(int (*f)(int), int x) { return f(x) + x; }
static int twice(int x) { return x + x; }
static int thrice(int x) { return twice(x) + x; }
static struct node *insert(struct node *at, int key, int depth) {
  if (depth > deepest) deepest = depth;
  if (!at) { at = &nodes[used++]; at->key = key; return at; }
  if (key < at->key) at->left = insert(at->left, key, depth + 1);
  else at->right = insert(at->right, key, depth + 1);
  return at;
}
__attribute__((noinline)) static long sum(const struct node *at, long so_far) {
  while (at) { so_far = sum(at->left, so_far) * 31 + at->key; at = at->right; }
  return so_far;
}
long run(int count) {
  struct node *root = 0;
  unsigned seed = 7;
  last = "running";
  for (int i = 0; i < count && i < 64; i++) {
    seed = seed * 1103515245u + 12345u;
    root = insert(root, (seed >> 16) % 100, 0);
    count += apply(i & 1 ? twice : thrice, i) > 1000;
  }
  double mean = used ? (double)sum(root, 1) / used : 0;
  last = "done";
  return (long)mean + deepest;
}
"#;

/// Records [`C`] at some levels of optimisation.
pub fn each_tree(count: u32, mut show: impl FnMut(&str, &Path)) {
    let Some(clang) = tools::clang() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (
        folder.path().join("tree.c"),
        folder.path().join("tree.wasm"),
    );
    fs::write(&source, C).unwrap();
    for level in ["-O0", "-O1", "-O2"] {
        let link = ["-Wl,--no-entry", "-Wl,--export=run"];
        clang.module(&["-g", level], &[&source], &link, &out);
        let at = folder.path().join("run.aft");
        let command = Command {
            name: "tree".to_owned(),
            invoke: Some("run".to_owned()),
            args: vec![count.to_string()],
            ..Command::default()
        };
        assert!(recorded(&at, &fs::read(&out).unwrap(), &command));
        show(level, &at);
    }
}

#[test]
fn variables_of_the_source_are_those_of_the_whole_execution_trace() {
    each_tree(40, |level, at| {
        let executed = Snapshotting::Executed(Spacing::polls(1));
        for every in [
            Snapshotting::Followed(20),
            Snapshotting::Followed(500),
            executed,
        ] {
            let (states, built) = same_states(at, every, 25, &mut SplitMix64(35));
            // The index of a call through a table is known only from the values.
            assert!(states == 29 && built < 10, "{level}: {built}");
        }
    });
}

#[test]
fn snapshots_are_in_memory_where_the_file_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run.aft");
    let module = wat::parse_str(HANDWRITTEN[0].1).unwrap();
    let program = Program::parse(&module).unwrap();
    let command = (0..9).find_map(|export| call(&program, export)).unwrap();
    assert!(recorded(&at, &module, &command));
    let session = Session::open(&at).unwrap();
    // Another process writes to it, so nothing can be added.
    let mut permissions = fs::metadata(&at).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&at, permissions).unwrap();
    let before = fs::read(&at).unwrap();
    assert!(session.ensure_snapshots(Snapshotting::Followed(1)).unwrap());
    session.state(&query("end")).unwrap();
    let is_root = fs::OpenOptions::new().append(true).open(&at).is_ok();
    assert!(is_root || fs::read(&at).unwrap() == before);
}

#[test]
fn a_cancelled_session_does_not_rewrite_the_file_without_the_words() {
    one_run(HANDWRITTEN[0].1, &["9"], |at| {
        let session = Session::open(at).unwrap();
        session.ensure_path().unwrap();
        let before = fs::read(at).unwrap();
        let cancel = Arc::new(Cancel::default());
        let cancelled = session.cancelled_by(Arc::clone(&cancel));
        cancel.stop();
        let error = cancelled.compact_path(&PathFilter::default()).unwrap_err();
        assert!(matches!(*error.why, Reason::Cancelled { .. }), "{error}");
        assert_eq!(fs::read(at).unwrap(), before);
        cancel.allow();
        cancelled.compact_path(&PathFilter::default()).unwrap();
        assert!(has(at, Kind::PATH_INDEX) && !has(at, Kind::PATH_WORDS));
    });
}

/// Writes the file with one of its snapshots changed.
fn forged(
    at: &Path,
    module: &[u8],
    number: usize,
    change: impl Fn(&mut Snapshot, &mut Vec<Opened>, &mut Machine<'_>),
) -> TraceFile {
    let file = TraceFile::open(at).unwrap();
    let program = Program::parse(module).unwrap();
    let snapshots = Snapshots::open(&file).unwrap().unwrap();
    let mut builder = SnapshotBuilder::new(1 << 30);
    for one in 0..snapshots.times().len() {
        let mut machine = Machine::new(&program, module, file.log().unwrap()).unwrap();
        snapshots.restore(&mut machine, one).unwrap();
        let (mut snapshot, mut opened) = snapshots.snapshot(one).unwrap();
        if one == number {
            change(&mut snapshot, &mut opened, &mut machine);
        }
        let memories = &machine.state.memories;
        let pages = (0..).zip(memories).flat_map(|(index, memory)| {
            let pages = memory.bytes.len() as u64 / SNAPSHOT_PAGE;
            (0..pages).map(move |page| (index, page))
        });
        let pages = Vec::from_iter(pages);
        assert!(builder.add((&snapshot, &opened), &pages, memories));
    }
    let copy = at.with_file_name("forged.aft");
    fs::copy(at, &copy).unwrap();
    let out = TraceWriter::append(&copy).unwrap();
    builder.write(&out).unwrap();
    out.commit().unwrap();
    drop(out);
    TraceFile::open(&copy).unwrap()
}

#[test]
fn verify_finds_snapshots_that_are_not_what_the_run_comes_to() {
    let text = r#"(module
      (memory (export "memory") 1)
      (global $g (mut i32) (i32.const 3))
      (func $inner (param i32) (result i32) (local $i i32)
        (loop $l
          (i32.store (local.get $i) (i32.add (local.get 0) (global.get $g)))
          (local.set $i (i32.add (local.get $i) (i32.const 4)))
          (br_if $l (i32.lt_u (local.get $i) (i32.const 4000))))
        (i32.load (i32.const 8)))
      (func (export "run") (result i32)
        (global.set $g (i32.add (call $inner (i32.const 5)) (call $inner (i32.const 7))))
        (global.get $g)))"#;
    let module = wat::parse_str(text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run.aft");
    let command = Command {
        name: "guest".to_owned(),
        invoke: Some("run".to_owned()),
        ..Command::default()
    };
    assert!(recorded(&at, &module, &command));
    let session = Session::open(&at).unwrap();
    let executed = Snapshotting::Executed(Spacing::polls(1));
    assert!(session.ensure_snapshots(executed).unwrap());
    let parsed = Arc::new(Module::parse(module.clone()).unwrap());
    let findings = |file: &TraceFile, at: &Path| {
        let again = || Ok(Arc::clone(&parsed));
        let report = verify(at, file, again, Execute::Again, &Silent).unwrap();
        report.findings
    };
    let sound = TraceFile::open(&at).unwrap();
    assert_eq!(findings(&sound, &at), Vec::<String>::new());
    let snapshots = Snapshots::open(&sound).unwrap().unwrap();
    let count = snapshots.times().len();
    assert!(count > 10);
    type Change = fn(&mut Snapshot, &mut Vec<Opened>, &mut Machine<'_>);
    let changes: [Change; 6] = [
        |snapshot, _, _| snapshot.registers[0] ^= 1,
        |snapshot, _, _| snapshot.globals[0].0 ^= 1,
        |snapshot, _, _| snapshot.made += 1,
        |_, opened, _| opened[0].called += 1,
        |snapshot, _, _| snapshot.frames.reverse(),
        |_, _, machine| machine.state.memories[0].bytes[5000] ^= 1,
    ];
    for change in changes {
        let file = forged(&at, &module, count / 2, change);
        let found = findings(&file, &at.with_file_name("forged.aft"));
        assert!(
            found.iter().any(|found| found.starts_with("Snapshots: ")),
            "{found:?}"
        );
    }
}

#[test]
fn damaged_snapshots_are_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run.aft");
    let module = wat::parse_str(HANDWRITTEN[0].1).unwrap();
    let program = Program::parse(&module).unwrap();
    let command = (0..9).find_map(|export| call(&program, export)).unwrap();
    assert!(recorded(&at, &module, &command));
    let out = TraceWriter::append(&at).unwrap();
    out.whole(Kind::SNAPSHOTS, None, b"no snapshots").unwrap();
    out.commit().unwrap();
    drop(out);
    let session = Session::of(Recording::open(&at).unwrap(), super::Heard::default());
    let error = session
        .state(&query("end"))
        .err()
        .expect("an error")
        .to_string();
    assert!(
        error.contains("the snapshots in the recording are damaged"),
        "{error}"
    );
}

/// Returns the last steps of a run as JSON.
fn last_steps(session: &Session, level: Level, last: u64, to: Option<String>) -> (bool, String) {
    let query = TraceQuery {
        last: Some(last),
        bounds: Bounds { from: None, to },
        ..TraceQuery::new(level)
    };
    traced(session, &query, Form::Json)
}

/// Returns a trace, and whether it needed no compacted path.
fn traced(session: &Session, query: &TraceQuery, form: Form) -> (bool, String) {
    let is_stretch = query.use_words(session, form).unwrap();
    if !is_stretch {
        session.ensure_path().unwrap();
    }
    let mut out = Vec::new();
    let shown = (&NoSources as &dyn Sources, Style::default());
    let written = query.write(session, is_stretch, form, shown, |tell| tell(&mut out));
    written.unwrap();
    (is_stretch, String::from_utf8(out).unwrap())
}

#[test]
fn last_statements_are_those_of_the_whole_path() {
    let mut stretches = 0;
    each_run(8, |at| {
        let full = Session::open(&copied(at, "full.aft")).unwrap();
        let length = full.ensure_path().unwrap().length();
        let early = copied(at, "early.aft");
        if length == 0
            || !Session::open(&early)
                .unwrap()
                .ensure_snapshots(Snapshotting::Followed(9))
                .unwrap()
        {
            return;
        }
        for (level, last, to) in [
            (Level::Statement, 5, None),
            (Level::Statement, 50, Some(format!("t={}", 1 + length / 2))),
            (Level::Memory, 7, None),
        ] {
            let session = Session::open(&early).unwrap();
            let (is_stretch, found) = last_steps(&session, level, last, to.clone());
            let (_, known) = last_steps(&full, level, last, to);
            assert_eq!(found, known, "{level:?}, {last}");
            assert!(
                is_stretch && !has(&early, Kind::PATH_INDEX),
                "a stretch is enough"
            );
            stretches += 1;
        }
    });
    assert!(stretches > 30, "{stretches}");
}

/// Nearly all statements of this program are library code.
const LIBRARY: &str = r#"
fn main() {
    let mut names = std::collections::BTreeMap::new();
    for number in 0..30u32 {
        names.insert(format!("{:04}", number.wrapping_mul(7919) % 1000), number);
    }
    let mut sum = 0;
    for (name, number) in &names {
        sum += name.len() as u32 * number;
    }
    println!("{sum}");
}
"#;

/// Returns the rows of a text, without its headings and its end.
fn rows(text: &str) -> Vec<&str> {
    let is_row = |line: &&str| {
        line.trim_start()
            .starts_with(|first: char| first.is_ascii_digit())
    };
    text.lines().filter(is_row).collect()
}

/// Text counts consecutive steps of library code as one row, so it is not known beforehand where
/// the last rows begin.
#[test]
fn last_rows_are_those_of_the_whole_folded_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("app.rs"), LIBRARY).unwrap();
    let mut rustc = tools::rustc();
    rustc.current_dir(folder.path()).args(["-g", "app.rs"]);
    assert!(rustc.status().unwrap().success());
    let module = fs::read(path("app.wasm")).unwrap();
    let at = path("run.aft");
    assert!(recorded(&at, &module, &Command::default()));
    let early = path("early.aft");
    fs::copy(&at, &early).unwrap();
    let spacing = Spacing::Polls {
        snapshots: 1,
        cuts: 1,
    };
    let how = Snapshotting::Executed(spacing);
    assert!(
        Session::open(&early)
            .unwrap()
            .ensure_snapshots(how)
            .unwrap()
    );
    let full = Session::open(&at).unwrap();
    let length = full.ensure_path().unwrap().length();
    let rest = format!("t={}", length - length / 8);
    for level in [Level::Statement, Level::Memory] {
        for to in [None, Some(rest.clone())] {
            let query = TraceQuery {
                bounds: Bounds { from: None, to },
                ..TraceQuery::new(level)
            };
            let (_, whole) = traced(&full, &query, Form::Text);
            let whole = rows(&whole);
            for count in [1, 2, 3, 17, 60, whole.len(), whole.len() + 1] {
                let session = Session::open(&early).unwrap();
                let query = TraceQuery {
                    last: Some(count as u64),
                    ..query.clone()
                };
                let (is_stretch, last) = traced(&session, &query, Form::Text);
                assert!(is_stretch && !has(&early, Kind::PATH_INDEX));
                let expected = &whole[whole.len().saturating_sub(count)..];
                assert_eq!(rows(&last), expected, "{level:?}, {count}");
            }
            assert!(whole.len() > 60, "{level:?}: {}", whole.len());
        }
    }
}
