//! The user's own code comes first, and library code is folded.

use std::collections::BTreeMap;

use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::Sandbox;

const RUST: &str = "\
fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    names.sort();
    println!(\"{names:?}\");
}
";

fn recorded(arguments: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", RUST);
    sandbox.run(&format!("record -o app.aft app.wasm {arguments}"));
    sandbox
}

#[test]
fn annotated_source_is_the_users_own() {
    let sandbox = recorded("b a");
    let told = sandbox.ok("profile app.aft --annotate").stdout;
    assert!(told.contains("names.sort();"), "{told}");
    assert!(told.lines().count() < 20, "{told}");
    assert!(!told.contains("library/alloc"), "{told}");
    let last = told.lines().last().unwrap();
    assert!(
        last.starts_with("library code: ") && last.contains(" files with "),
        "{told}"
    );
    let all = sandbox.ok("profile app.aft --annotate --code all").stdout;
    assert!(
        all.lines().count() > 50 && !all.contains("library code"),
        "{all}"
    );
}

#[test]
fn a_glob_selects_the_files_of_a_profile_in_each_format() {
    let sandbox = recorded("b a");
    let path = "profile app.aft --path app.rs";
    for words in ["", " --by line", " --annotate"] {
        let told = sandbox.ok(&format!("{path}{words}")).stdout;
        assert!(told.contains("app"), "{told}");
        assert!(told.contains("other code: "), "{told}");
    }
    let files = |words: &str| {
        let told = sandbox.ok(words).stdout;
        let files = told.lines().filter_map(|line| line.strip_prefix("SF:"));
        Vec::from_iter(files.map(str::to_owned))
    };
    let own = files(&format!("{path} --format lcov"));
    assert!(own.len() == 1 && own[0].ends_with("app.rs"), "{own:?}");
    let page = sandbox.ok(&format!("{path} --format html")).stdout;
    assert!(
        page.contains("names.sort();") && !page.contains("alloc/src"),
        "{page}"
    );
    // Nothing is left out silently.
    for words in [
        "profile app.aft --path nowhere/**",
        "profile app.aft --path nowhere/** --format lcov",
        "calls app.aft --code nowhere/**",
        "info app.aft --code nowhere/**",
        "trace app.aft --code nowhere/**",
    ] {
        let said = "no source file matches nowhere/**; your own are ";
        sandbox.refused(words, 125, &[said, "app.rs"]);
    }
}

/// Text leaves out library code, says so, and shows it on request. JSON has all of it.
#[test]
fn library_code_is_folded_in_each_text() {
    let sandbox = recorded("b a");
    let is_library = |text: &str| text.contains(" core::") || text.contains("alloc::");
    for words in [
        "trace app.aft --limit all",
        "trace app.aft --level path --limit all",
        "trace app.aft --level call --limit all",
        "calls app.aft --limit 1000",
        "paths app.aft --limit 1000",
        "paths app.aft --hot --limit 1000",
        "redundancy app.aft --limit 1000",
        "values app.aft --loads --limit 1000",
    ] {
        let told = sandbox.ok(words).stdout;
        assert!(!is_library(&told), "{words}\n{told}");
        assert!(told.contains("app::main"), "{words}\n{told}");
        assert!(told.contains("library code"), "{words}\n{told}");
        let all = sandbox.ok(&format!("{words} --code all")).stdout;
        assert!(is_library(&all), "{words}\n{all}");
        assert!(!all.contains("library code"), "{words}\n{all}");
        let json = sandbox.ok(&format!("{words} --format json")).stdout;
        assert!(json.contains("core::"), "{words}");
    }
    // Times are grouped, and the state at the end is that of the user's own code.
    let state = sandbox.ok("state app.aft").stdout;
    let last = state.lines().find(|line| line.starts_with("none of these"));
    let last = last.unwrap_or_else(|| panic!("{state}"));
    assert!(last.contains("your code was last at app.rs:"), "{state}");
    let (_, place) = last.split_once("your code was last at ").unwrap();
    let place = place.split(',').next().unwrap();
    let line = sandbox.ok("trace app.aft --level line --last 1").stdout;
    let row = line.lines().find(|line| line.contains(place));
    let row = row.unwrap_or_else(|| panic!("{line}\n{state}"));
    let time = row.trim_start().split(' ').next().unwrap();
    assert!(time.starts_with("t=") && time.contains(','), "{line}");
}

/// Rows of library code are counted, and rows of the user's own code name lines of that code.
#[test]
fn rows_of_library_code_are_counted() {
    let sandbox = recorded("b a");
    for (by, noun) in [
        ("block", "block"),
        ("edge", "edge"),
        ("instruction", "instruction"),
    ] {
        let words = format!("profile app.aft --by {by} --sort count --limit 100000");
        let (told, all) = (
            sandbox.ok(&words).stdout,
            sandbox.ok(&format!("{words} --code all")).stdout,
        );
        let rows = |text: &str| {
            let table = text.split("\n\n").nth(1).unwrap().lines().skip(1);
            table
                .filter(|line| !line.starts_with("library code"))
                .count()
        };
        let last = told.lines().last().unwrap();
        let left_out = last
            .strip_prefix("library code: ")
            .unwrap_or_else(|| panic!("{told}"));
        assert!(left_out.contains(noun), "{last}");
        let left_out = left_out.split(' ').next().unwrap().replace(',', "");
        assert_eq!(
            rows(&told) + left_out.parse::<usize>().unwrap(),
            rows(&all),
            "{by}"
        );
        assert!(
            told.contains("app.rs:3") && !told.contains(".rs:272"),
            "{told}"
        );
        let is_own = |line: &&str| line.contains("app::main") && !line.contains("app.rs:");
        let other = told
            .lines()
            .filter(is_own)
            .filter(|line| line.contains(".rs:"));
        assert_eq!(other.count(), 0, "{told}");
        assert!(!all.contains("library code: "), "{all}");
    }
    // Misses of library code are counted, too, and formats for programs are complete.
    let words = "simulate app.aft --cache 1k,2,64 --by function --limit 100000";
    let told = sandbox.ok(words).stdout;
    assert!(
        told.contains(" app::main") && !told.contains("core::"),
        "{told}"
    );
    assert!(
        told.contains("library code: ") && told.contains(" missed ("),
        "{told}"
    );
    let all = sandbox.ok(&format!("{words} --code all")).stdout;
    assert!(
        all.contains("core::") && !all.contains("library code: "),
        "{all}"
    );
    let json = |code: &str| sandbox.ok(&format!("{words} --format json {code}")).stdout;
    assert_eq!(json(""), json("--code all"));
    assert!(json("--code mine").lines().count() < json("").lines().count());
}

/// Statements of a library are shown by the line of the user's code that called it.
#[test]
fn dependences_and_memory_name_the_users_line() {
    let sandbox = recorded("b a");
    let rows = sandbox.ok("trace app.aft --level memory --format json --limit all");
    let rows = rows.stdout.lines().skip(1);
    let rows = rows.map(|row| serde_json::from_str::<Value>(row).unwrap());
    let is_library = |row: &Value| {
        let file = row["source"]["file"].as_str();
        file.is_some_and(|file| file.contains("/library/")) && row["kind"] == "store"
    };
    let stores = Vec::from_iter(rows.filter(is_library));
    let mut named = 0;
    for store in stores.iter().rev().take(40) {
        let (time, offset) = (
            store["t"].as_u64().unwrap(),
            store["offset"].as_u64().unwrap(),
        );
        let at = format!("deps app.aft --at @0x{offset:x}#last --data");
        let told = sandbox.ok(&at).stdout;
        assert!(time > 0 && !told.contains("library/"), "{told}");
        named += usize::from(told.lines().next().unwrap().contains("app.rs:"));
        let address = store["access"]["address"].as_u64().unwrap();
        let told = sandbox
            .ok(&format!("memory app.aft --address {address}"))
            .stdout;
        let written = told.lines().find(|line| line.contains("written")).unwrap();
        assert!(!written.contains("/library/"), "{told}");
    }
    assert!(named > 0);
}

#[test]
fn lcov_names_only_files_that_are_there() {
    let sandbox = recorded("b a");
    let ran = sandbox.ok("profile app.aft --format lcov");
    let files = ran
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("SF:"));
    let files = Vec::from_iter(files);
    assert!(
        files.iter().any(|file| file.ends_with("app.rs")),
        "{files:?}"
    );
    let is_there = |file: &&&str| sandbox.path(file).exists() || file.contains("/library/");
    assert_eq!(
        files.iter().filter(is_there).count(),
        files.len(),
        "{files:?}"
    );
    let said = "left out, because their source was not found: ";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(
        ran.stderr.matches("was not found").count(),
        1,
        "{}",
        ran.stderr
    );
    // If no source is available, lcov lists all files.
    std::fs::remove_file(sandbox.path("app.rs")).unwrap();
    let all = sandbox.ok("profile app.aft --format lcov");
    assert!(all.stdout.contains("app.rs\n"), "{}", all.stdout);
    let said = "none of the source files was found: ";
    assert!(all.stderr.contains(said), "{}", all.stderr);
}

/// The sums at the top of the page are the sums of its table.
#[test]
fn percentages_of_the_page_agree() {
    let sandbox = Sandbox::new();
    // The program has a function without lines, which belongs to no file, and one with lines.
    sandbox.rust("app", RUST);
    sandbox.ok("record -o app.aft app.wasm");
    let page = sandbox.ok("profile app.aft --format html").stdout;
    let mut sums = BTreeMap::<&str, u64>::new();
    let tile = page.split("class=\"name\">Functions").nth(1).unwrap();
    let tile = tile.split("class=\"of\">").nth(1).unwrap();
    let tile = tile.split('<').next().unwrap();
    let rows = page.split("<table class=\"list files\">").nth(1).unwrap();
    let rows = rows.split("</table>").next().unwrap();
    for row in rows.split("<tr>").skip(2) {
        let cells = Vec::from_iter(row.split("<td class=\"n soft\">").skip(1));
        let functions = cells[1].split('<').next().unwrap();
        if let Some((ran, all)) = functions.split_once('/') {
            *sums.entry("ran").or_default() += ran.parse::<u64>().unwrap();
            *sums.entry("all").or_default() += all.parse::<u64>().unwrap();
        }
    }
    assert_eq!(format!("{} of {}", sums["ran"], sums["all"]), tile);
}

/// The function that the linker makes around `_start` is not the user's.
#[test]
fn the_linkers_start_is_not_the_users() {
    let sandbox = recorded("b a");
    let told = sandbox
        .ok("profile app.aft --code mine --format json")
        .stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let names = told["rows"].as_array().unwrap().iter();
    let names = Vec::from_iter(names.map(|row| row["function"]["name"].as_str().unwrap()));
    assert!(names.contains(&"app::main"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("_start")),
        "{names:?}"
    );
}

/// The call that `why` names for a step in a library is the innermost frame of the user's own code
/// that `state` shows there.
#[test]
fn a_step_in_a_library_names_the_users_call() {
    let sandbox = recorded("b a");
    let json = |words: &str| -> Vec<Value> {
        let printed = sandbox.ok(&format!("{words} --format json")).stdout;
        let rows = serde_json::Deserializer::from_str(&printed).into_iter();
        rows.map(|row| row.unwrap()).collect()
    };
    let mut compared = 0;
    for row in json("why app.aft --stdout 0") {
        let moves = row["moves"].as_array().cloned().unwrap_or_default();
        let places = moves.iter().map(|one| &one["place"]);
        for place in places.chain([&row["place"]]) {
            let Some(at) = place["at"].as_str() else {
                continue;
            };
            let state = json(&format!("state app.aft --at {at} --depth 100"));
            let mut frames = state[0]["frames"].as_array().unwrap().iter();
            let own = frames.find(|frame| frame["library"] != true);
            if place["library"] == true {
                let own = own.map_or(Value::Null, |own| own["function"].clone());
                assert_eq!(place["called_from"]["function"], own, "{place}");
                compared += 1;
            } else {
                assert_eq!(place["called_from"], Value::Null, "{place}");
            }
        }
    }
    assert!(compared > 0);
}

/// The arguments differ in library code.
#[test]
fn a_difference_in_library_code_is_told_by_the_users_line() {
    let sandbox = recorded("b a");
    sandbox.ok("record -o more.aft app.wasm b a c");
    let told = sandbox.ok("diff app.aft more.aft").stdout;
    let first = told.lines().next().unwrap();
    assert!(
        first.contains(", in library code called at app.rs:2 in app::main: "),
        "{told}"
    );
    // No operator of a library is listed, and the lines are the user's own.
    let (before, _) = told.split_once("questions to ask next").unwrap();
    assert!(!before.contains("@0x"), "{told}");
    assert!(before.contains("standard output differs"), "{told}");
    assert!(before.contains("library code: "), "{told}");
    let all = sandbox.ok("diff app.aft more.aft --code all").stdout;
    assert!(
        all.split("questions to ask next")
            .next()
            .unwrap()
            .contains("@0x"),
        "{all}"
    );
}

/// A difference outside the user's own code is reported in one line, after the other parts.
#[test]
fn a_difference_before_main_comes_last() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let sandbox = Sandbox::new();
    let library = sandbox.path("wasi-libc");
    std::fs::create_dir(&library).unwrap();
    let source = "int args_sizes_get(int *, int *) __attribute__((import_module(\"wasi_snapshot_preview1\"), import_name(\"args_sizes_get\")));\n\
        int own(int);\nint count, bytes, sum;\n\
        void _start(void) {\n    args_sizes_get(&count, &bytes);\n    own(count);\n}\n";
    std::fs::write(library.join("start.c"), source).unwrap();
    let own = "extern int sum;\nint own(int n) {\n    for (int i = 0; i < n; i++)\n        sum += i;\n    return sum;\n}\n";
    let own = sandbox.write("own.c", own);
    let start = library.join("start.c");
    clang.module(
        &["-g", "-O0"],
        &[&start, &own],
        &[],
        &sandbox.path("app.wasm"),
    );
    for (name, arguments) in [("a", ""), ("b", "x y")] {
        sandbox.ok(&format!("record -o {name}.aft app.wasm {arguments}"));
    }
    let told = sandbox.ok("diff a.aft b.aft").stdout;
    let (own, outside) = told.split_once("outside your own code: at t=").unwrap();
    assert!(
        !own.contains("start.c") && own.contains("own.c:4"),
        "{told}"
    );
    assert!(
        outside.contains("args_sizes_get wrote different bytes"),
        "{told}"
    );
    let all = sandbox.ok("diff a.aft b.aft --code all").stdout;
    assert!(all.lines().next().unwrap().contains("start.c"), "{all}");
}

const PANICS: &str = "\
#[inline(never)]
fn third(numbers: &[u32]) -> u32 {
    numbers[2]
}
fn main() {
    let mut numbers = vec![4, 5];
    numbers.truncate(std::env::args().count() + 1);
    println!(\"{}\", third(&numbers));
}
";

#[test]
fn a_crash_begins_with_the_users_frame() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", PANICS);
    sandbox.run("record -o app.aft app.wasm");
    let why = sandbox.ok("why app.aft --trap").stdout;
    let lines = Vec::from_iter(why.lines());
    assert!(
        lines[0].contains(", at app.rs:3 in app::third, called from app.rs:8"),
        "{why}"
    );
    let second = "the run trapped: unreachable executed in library code called at app.rs:3 in ";
    assert!(lines[1].starts_with(second), "{why}");
    assert!(!lines[1].contains("SliceIndex"), "{why}");
    assert!(lines[3].starts_with("  ended in library code ("), "{why}");
    let called = lines
        .iter()
        .position(|line| line.starts_with("  called at "));
    assert!(
        lines[called.unwrap()].contains("app.rs:3 in app::third"),
        "{why}"
    );
    let state = sandbox.ok("state app.aft").stdout;
    let lines = Vec::from_iter(state.lines());
    assert!(
        lines[0].starts_with("in library code called at app.rs:3, before "),
        "{state}"
    );
    assert!(lines[1].contains(" library frames above: "), "{state}");
    assert!(lines[1].ends_with("; --code all shows them)"), "{state}");
    assert!(
        lines[2].starts_with('#') && lines[2].contains("app::third("),
        "{state}"
    );
    // With all code, all frames are shown.
    let all = sandbox.ok("state app.aft --code all").stdout;
    assert!(all.lines().nth(1).unwrap().starts_with("#0 "), "{all}");
}

/// Each change is on the line that made it, in both directions.
#[test]
fn a_line_shows_what_it_changed() {
    let sandbox = Sandbox::new();
    let source = "\
#[inline(never)]
fn step(n: u32) -> u32 {
    let mut a = n + 1;
    a = twice(a);
    let b = a + 5;
    a += b;
    a
}
#[inline(never)]
fn twice(x: u32) -> u32 {
    let y = x * 2;
    y
}
fn main() {
    println!(\"{}\", step(std::env::args().count() as u32));
}
";
    sandbox.rust("app", source);
    sandbox.ok("record -o app.aft app.wasm");
    for options in ["--from step", "--to step --reverse"] {
        let words = format!("trace app.aft --level line --limit all {options}");
        let told = sandbox.ok(&words).stdout;
        for (line, changed) in [(3, "a = 2"), (4, "a = 4"), (5, "b = 9"), (6, "a = 13")] {
            let of = format!("app.rs:{line} ");
            let row = told.lines().find(|row| row.contains(&of)).unwrap();
            let end = row.split("  ").last().unwrap().trim();
            assert_eq!(end, changed, "{words}\n{told}");
        }
    }
}

#[test]
fn help_suggests_commands() {
    let ran = Sandbox::new().run("help whyy");
    assert!(
        ran.stderr.contains("similar") && ran.stderr.contains("'why'"),
        "{ran:?}"
    );
}

#[test]
fn a_place_without_its_option_is_pointed_out() {
    for (words, tip) in [
        ("why-not app.aft app.rs:3", "use '--at app.rs:3'"),
        ("state app.aft main", "use '--at main'"),
        ("calls app.aft main", "use '--function main'"),
        ("trace app.aft app.rs:3", "use '--from app.rs:3'"),
    ] {
        let ran = Sandbox::new().run(words);
        assert!(ran.stderr.contains(tip), "{ran:?}");
    }
    let ran = Sandbox::new().run("info app.aft app.rs:3");
    assert!(!ran.stderr.contains("--at"), "{ran:?}");
}

#[test]
fn an_option_of_another_command_names_the_command() {
    let ran = Sandbox::new().run("slice app.aft --stdout 3");
    let tip = "tip: '--stdout' is an option of why\n";
    assert!(ran.stderr.contains(tip), "{ran:?}");
    // A misspelt option of the command itself comes first.
    let ran = Sandbox::new().run("slice app.aft --opperand left");
    assert!(ran.stderr.contains("'--operand'"), "{ran:?}");
    assert!(!ran.stderr.contains("is an option of"), "{ran:?}");
}

#[test]
fn a_misspelt_option_leads_to_the_nearest() {
    for (words, option) in [
        ("profile app.aft --bby line", "--by"),
        ("record --sed 1 app.wasm", "--seed"),
        ("record --lns full app.wasm", "--lens"),
        ("why app.aft --stp 3", "--steps"),
    ] {
        let ran = Sandbox::new().run(words);
        let tip = format!("tip: a similar argument exists: '{option}'\n");
        assert!(ran.stderr.contains(&tip), "{ran:?}");
    }
    let ran = Sandbox::new().run("profile app.aft --xyzzy");
    assert!(!ran.stderr.contains("similar"), "{ran:?}");
}

#[test]
fn a_format_of_another_name_leads_to_the_nearest() {
    for (words, tip) in [
        (
            "export app.aft --format flamegraph",
            "'afterimage export FILE.aft --format collapsed' writes stacks",
        ),
        (
            "export app.aft --format Chrome",
            "'afterimage export FILE.aft --format perfetto' writes calls over time",
        ),
        (
            "export app.aft --format lcov",
            "'afterimage profile FILE.aft --format lcov' writes coverage",
        ),
        (
            "profile app.aft --format cobertura",
            "'afterimage profile FILE.aft --format lcov' writes coverage",
        ),
        (
            "profile app.aft --format folded",
            "'afterimage export FILE.aft --format collapsed' writes stacks",
        ),
        (
            "cfg app.wasm --function f --format graphviz",
            "'afterimage cfg FILE.aft --format dot' writes a graph",
        ),
    ] {
        let ran = Sandbox::new().run(words);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.stderr.contains(tip), "{ran:?}");
    }
    let ran = Sandbox::new().run("export app.aft --format nonsense");
    assert!(!ran.stderr.contains(" writes "), "{ran:?}");
    // The value of another option is not a format.
    let ran = Sandbox::new().run("profile app.aft --by folded");
    assert!(!ran.stderr.contains(" writes "), "{ran:?}");
}

#[test]
fn missing_arguments_are_named_with_the_nearest_example() {
    for (words, expected) in [
        (
            "values app.aft",
            "values needs --at PLACE or --loads; for example: afterimage values app.aft --at parser.c:42",
        ),
        (
            "values app.aft --var depth",
            "values needs --at PLACE or --loads; for example: afterimage values app.aft --at parser.c:42 --var depth",
        ),
        (
            "values app.aft --where n>3 --first",
            "values needs --at PLACE or --loads; for example: afterimage values app.aft --at bank.c:52 --where 'fee < 0 && n > 3' --first",
        ),
        (
            "memory app.aft",
            "memory needs --address A[..B] or --var NAME; for example: afterimage memory app.aft ",
        ),
        (
            "why-not app.aft",
            "why-not needs --at PLACE; for example: afterimage why-not app.aft ",
        ),
        (
            "trace",
            "trace needs FILE.aft; for example: afterimage trace app.aft",
        ),
    ] {
        let ran = Sandbox::new().run(words);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(
            ran.stderr.starts_with(&format!("error: {expected}")),
            "{ran:?}"
        );
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{ran:?}");
    }
}

/// The blocks of library code count for the calls that enclose it.
#[test]
fn timelines_and_hot_paths_leave_out_library_code() {
    let sandbox = recorded("b a");
    let read = |words: &str| -> Value {
        let told = sandbox.ok(words).stdout;
        serde_json::from_str(&told).unwrap()
    };
    let begun = |code: &str| {
        let told = read(&format!("export app.aft --format perfetto {code}"));
        let events = told["traceEvents"].as_array().unwrap().iter();
        let begun = events.filter(|event| event["ph"] == "B");
        Vec::from_iter(begun.map(|event| event["name"].as_str().unwrap().to_owned()))
    };
    assert!(begun("").len() > 100, "{:?}", begun(""));
    assert_eq!(begun("--code mine"), ["app::main"]);
    let hot = |code: &str| {
        let told = read(&format!("paths app.aft --hot --format json {code}"));
        let rows = told["rows"].as_array().unwrap().iter();
        Vec::from_iter(rows.map(|row| row["function"]["name"].as_str().unwrap().to_owned()))
    };
    let mine = hot("--code mine");
    assert!(hot("").len() > mine.len(), "{mine:?}");
    assert!(
        mine.iter().all(|name| name == "app::main") && !mine.is_empty(),
        "{mine:?}"
    );
}

/// The report on a call through a null table entry says so, and names the type that the call
/// expects.
#[test]
fn a_call_of_no_function_is_explained() {
    const CALL: &str = "\
#[inline(never)]
fn call(entry: usize) -> i32 {
    let function: extern \"C\" fn(i32) -> i32 = unsafe { std::mem::transmute(entry) };
    function(3)
}

fn main() {
    println!(\"{}\", call(std::env::args().count() - 1));
}
";
    let sandbox = Sandbox::new();
    sandbox.rust("app", CALL);
    let ran = sandbox.run("record --lens full -o app.aft app.wasm");
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let told = sandbox.ok("why app.aft --trap").stdout;
    let expected = "indirect call to no function: entry 0 of the table is null; the call wants \
                    (i32) -> i32, at app.rs:4 in app::call, called from app.rs:8\n";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn steps_of_long_library_code_are_left_out() {
    let sandbox = Sandbox::new();
    let source = "\
fn main() {
    let mut text = \"the quick brown fox \".repeat(1500).into_bytes();
    text.sort();
    println!(\"{}\", text[29_000]);
}
";
    sandbox.rust("app", source);
    sandbox.run("record --lens paths -o app.aft app.wasm");
    let folded = sandbox
        .ok("trace app.aft --level statement --limit 400")
        .stdout;
    let rows = Vec::from_iter(folded.lines());
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let is_long = |row: &&str| row.contains(" blocks of library code");
    let at = rows.iter().position(is_long).expect(&folded);
    let time = |row: &str| number(row.split_whitespace().next().unwrap());
    let (_, rest) = rows[at].split_once("… ").unwrap();
    let blocks = number(rest.split_once(" blocks").unwrap().0);
    assert!(blocks > 1 << 16, "{folded}");
    // The user's code continues right after these blocks.
    let after = time(rows[at]) + blocks;
    assert_eq!(time(rows[at + 1]), after, "{folded}");
    // The other ways to ask leave out the same blocks.
    let is_row = |row: &&str| row.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let rows = |words: &str| {
        let text = sandbox.ok(&format!("trace app.aft --level statement {words}"));
        Vec::from_iter(text.stdout.lines().filter(is_row).map(str::to_owned))
    };
    let forward = rows("--limit all");
    let from_long = forward.iter().rev().position(|row| is_long(&row.as_str()));
    for count in [1, from_long.unwrap() + 1, from_long.unwrap() + 20] {
        let expected = &forward[forward.len().saturating_sub(count)..];
        assert_eq!(rows(&format!("--last {count}")), expected, "{count}");
    }
    let lengths = |rows: &[String]| {
        let long = rows.iter().filter_map(|row| {
            let (amount, _) = row.split_once(" blocks of library code")?;
            Some(number(amount.split_once("… ")?.1))
        });
        Vec::from_iter(long)
    };
    let reversed = rows("--limit all --reverse");
    assert_eq!(reversed.len(), forward.len());
    let mut back = lengths(&reversed);
    back.reverse();
    assert_eq!(back, lengths(&forward));
}
