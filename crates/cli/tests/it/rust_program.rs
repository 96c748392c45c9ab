//! Tests a Rust program with debug information and source: lines, annotation, and the formats of
//! other tools.

use afterimage_testkit::tools;

use crate::common::{Sandbox, ran};

const SOURCE: &str = r#"use std::fs;

#[inline(never)]
fn collatz(mut n: u64) -> u32 {
    let mut steps = 0;
    while n != 1 {
        if n % 2 == 0 {
            n /= 2;
        } else {
            n = 3 * n + 1;
        }
        steps += 1;
    }
    steps
}

#[inline(never)]
fn never() -> u32 {
    println!("never");
    7
}

fn main() {
    let mut total = 0;
    for n in 1..=27 {
        total += collatz(n);
    }
    println!("{total}");
    if std::env::args().count() > 100 {
        never();
    }
    for path in ["/etc/passwd", "../secret", "/data/../secret", "secret", "/data/public"] {
        println!("{path} {:?}", fs::read_to_string(path).map_err(|_| "refused"));
    }
}
"#;

/// Counts the steps of the Collatz sequences from 1 to 27: all steps, even steps and odd steps.
fn steps() -> (u64, u64, u64) {
    let (mut even, mut odd) = (0, 0);
    for mut n in 1..=27u64 {
        while n != 1 {
            if n % 2 == 0 {
                n /= 2;
                even += 1;
            } else {
                n = 3 * n + 1;
                odd += 1;
            }
        }
    }
    (even + odd, even, odd)
}

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    std::fs::create_dir(sandbox.path("data")).unwrap();
    sandbox.write("data/public", "public");
    sandbox.write("secret", "secret");
    let ran = sandbox.ok("record --dir data::/data app.wasm");
    let total = steps().0;
    assert_eq!(
        ran.stdout,
        format!(
            "{total}\n/etc/passwd Err(\"refused\")\n../secret Err(\"refused\")\n/data/../secret Err(\"refused\")\n\
             secret Err(\"refused\")\n/data/public Ok(\"public\")\n"
        )
    );
    sandbox
}

/// Returns the count of a line of `app.rs` in a report by line.
fn counted(csv: &str, line: u32) -> u64 {
    let mut rows = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let row = rows.find(|row| row[0].ends_with("app.rs") && row[1] == line.to_string());
    row.unwrap_or_else(|| panic!("line {line} has no row"))[2]
        .parse()
        .unwrap()
}

#[test]
fn reports_of_a_program_with_its_source_at_hand() {
    let sandbox = recorded();
    let (all, even, odd) = steps();
    let csv = sandbox.ok("profile app.aft --by line --format csv").stdout;
    assert_eq!(counted(&csv, 8), even, "n /= 2");
    assert_eq!(counted(&csv, 10), odd, "n = 3 * n + 1");
    assert_eq!(counted(&csv, 12), all, "steps += 1");
    assert_eq!(counted(&csv, 26), 27, "the call to collatz");
    assert_eq!(counted(&csv, 30), 0, "the call to never");
    sandbox.ok("profile app.aft --mode slow");

    let annotated = sandbox
        .ok("profile app.aft --annotate --function collatz")
        .stdout;
    let line = |text: &str| {
        annotated
            .lines()
            .find(|line| line.ends_with(text))
            .unwrap_or_else(|| panic!("{annotated}"))
    };
    assert!(
        line("n = 3 * n + 1;")
            .trim_start()
            .starts_with(&odd.to_string()),
        "{annotated}"
    );
    let annotated = sandbox
        .ok("profile app.aft --annotate --function never")
        .stdout;
    assert!(
        annotated.contains("#####"),
        "lines that never ran are marked: {annotated}"
    );
    let whole = sandbox.ok("profile app.aft --annotate").stdout;
    for line in SOURCE.lines() {
        assert!(whole.contains(line), "all of the file is there: {line}");
    }

    let by_function = sandbox.ok("profile app.aft").stdout;
    assert!(
        by_function.contains("app::collatz") && by_function.contains("app.rs:"),
        "{by_function}"
    );
    for name in ["app::collatz", "collatz"] {
        let cfg = sandbox
            .ok(&format!("cfg app.wasm --function {name}"))
            .stdout;
        assert!(cfg.contains("back"), "a loop has a back edge: {cfg}");
    }
}

#[test]
fn other_tools_read_the_reports() {
    let sandbox = recorded();
    let (_, _, odd) = steps();
    sandbox.ok("profile app.aft --format lcov -o app.info");
    for (format, file) in [("callgrind", "callgrind.out"), ("pprof", "app.pb.gz")] {
        let told = sandbox.ok(&format!("profile app.aft --format {format} -o {file}"));
        let other = format!("export app.aft --format {format}");
        assert!(
            told.stderr
                .contains(&format!("with calls: afterimage {other}")),
            "{told:?}"
        );
        sandbox.ok(&format!("{other} -o calls"));
    }
    let lcov = String::from_utf8(sandbox.read("app.info")).unwrap();
    assert!(
        lcov.contains("app.rs\n") && lcov.contains(&format!("\nDA:10,{odd}\n")),
        "{lcov}"
    );
    assert_eq!(sandbox.read("app.pb.gz")[..2], [0x1f, 0x8b], "gzip");
    if tools::installed("callgrind_annotate") {
        let ran = ran(sandbox.any("callgrind_annotate").arg("callgrind.out"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("app::collatz"), "{ran:?}");
    }
    if tools::installed("genhtml") {
        let only = sandbox
            .ok("profile app.aft --format lcov --function collatz")
            .stdout;
        sandbox.write("only.info", only);
        let ran = ran(sandbox.any("genhtml").args(["only.info", "-o", "html"]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn large_reports_end_quietly_when_their_reader_leaves() {
    let sandbox = recorded();
    sandbox.ok("profile app.aft");
    for report in [
        "--by instruction --limit 100000",
        "--annotate",
        "--by instruction --format json",
        "--by edge --format csv",
        "--format lcov",
        "--format callgrind",
        "--format pprof",
        "--format dot",
    ] {
        let line = format!("($AFTERIMAGE profile app.aft {report}; echo $? >code) | head -c 1");
        let ran = sandbox.shell(&line);
        // lcov names the files that it leaves out. callgrind and pprof report that they leave out
        // calls.
        let remarks = ["afterimage: left out, ", "afterimage: without calls, "];
        let is_remark = |line: &&str| remarks.iter().any(|remark| line.starts_with(remark));
        let mut said = ran.stderr.lines().filter(|line| !is_remark(line));
        assert_eq!((ran.stdout.len(), said.next()), (1, None), "{report}");
        assert_eq!(sandbox.read("code"), b"0\n", "{report}");
        let ran = sandbox.shell(&format!("$AFTERIMAGE profile app.aft {report} >/dev/full"));
        ran.is_refusal(
            report,
            125,
            &["cannot write to standard output: No space left"],
        );
    }
}

#[test]
fn a_panic_is_a_trap_with_the_place_where_it_began() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", "fn main() {\n    let v: Vec<u32> = std::env::args().map(|_| 1).collect();\n    println!(\"{}\", v[7]);\n}\n");
    let ran = sandbox.run("record app.wasm");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    assert!(
        ran.stderr.contains("index out of bounds"),
        "the guest's own message comes through: {ran:?}"
    );
    let info = sandbox.ok("info app.aft").stdout;
    assert!(
        info.contains("app::main") && info.contains("app.rs:3"),
        "{info}"
    );
    sandbox.ok("profile app.aft --mode slow");
    sandbox.ok("verify app.aft");
}

#[test]
fn stacks_of_the_users_own_functions_count_what_libraries_execute_for_them() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.run("record --lens paths -o app.aft app.wasm");
    let stacks = |code: &str| {
        let told = sandbox.ok(&format!(
            "export app.aft --format collapsed --min 0 --code {code}"
        ));
        let mut stacks = std::collections::BTreeMap::<String, u64>::new();
        for line in told.stdout.lines() {
            let (stack, blocks) = line.rsplit_once(' ').unwrap();
            *stacks.entry(stack.to_owned()).or_default() += blocks.parse::<u64>().unwrap();
        }
        stacks
    };
    let mut folded = std::collections::BTreeMap::<String, u64>::new();
    for (stack, blocks) in stacks("all") {
        // The outermost function represents all code outside the user's own code.
        let mut names = stack.split(';');
        let first = names.next();
        let own = names.filter(|name| name.starts_with("app::"));
        let own = Vec::from_iter(first.into_iter().chain(own));
        *folded.entry(own.join(";")).or_default() += blocks;
    }
    let mine = stacks("mine");
    assert_eq!(mine, folded);
    assert!(
        mine.contains_key("_start;app::main;app::collatz"),
        "{mine:?}"
    );
}
