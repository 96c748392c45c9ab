//! Stepping by lines visits the same lines as gdb in the native program, in order, with the
//! variables that gdb prints.

use std::collections::HashMap;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools::{self, installed, skipped};
use serde_json::Value;

use crate::common::{Sandbox, ran};

/// Writes a function `run` in C. Its statements assign variables and then show all of them, each on
/// a separate line, with control flow between them.
struct Writer {
    random: SplitMix64,
    lines: Vec<String>,
    /// The number of statements that may still be written.
    left: usize,
    loops: usize,
    /// The number of blocks with a variable of their own.
    blocks: usize,
}

/// Three locals, and a global variable that callees also change.
const VARIABLES: [&str; 4] = ["a", "b", "c", "total"];

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn line(&mut self, depth: usize, text: impl Into<String>) {
        self.lines.push("    ".repeat(depth) + &text.into());
    }

    fn assign(&mut self, depth: usize) {
        let to = VARIABLES[self.below(4)];
        let n = self.below(9) + 1;
        let value = match self.below(5) {
            0 => format!("{to} = a * 3 + {n};"),
            1 => format!("{to} += twice(b % {n} + c % 7);"),
            2 => format!("{to} ^= b >> {};", n % 4),
            3 => format!("{to} = c - a / {n};"),
            _ => format!("{to}--;"),
        };
        self.line(depth, format!("{value} show(a, b, c, total);"));
    }

    fn condition(&mut self) -> String {
        let n = self.below(5);
        match self.below(3) {
            0 => format!("a % 3 == {n}"),
            1 => format!("(b & {}) != 0", n + 1),
            _ => format!("c > {n} && a != b"),
        }
    }

    fn statement(&mut self, depth: usize, in_loop: bool) {
        if self.left == 0 {
            return self.assign(depth);
        }
        self.left -= 1;
        if depth > 3 {
            return self.assign(depth);
        }
        match self.below(7) {
            0 => {
                let condition = self.condition();
                self.line(depth, format!("if ({condition}) {{"));
                self.block(depth + 1, in_loop);
                self.line(depth, "} else {");
                self.block(depth + 1, in_loop);
                self.line(depth, "}");
            }
            1 => {
                let i = format!("i{}", self.loops);
                self.loops += 1;
                let n = self.below(4) + 1;
                self.line(depth, format!("for (int {i} = 0; {i} < {n}; {i}++) {{"));
                self.block(depth + 1, true);
                self.line(depth, "}");
            }
            2 => {
                let i = format!("i{}", self.loops);
                self.loops += 1;
                let n = self.below(3) + 1;
                self.line(depth, format!("int {i} = {n};"));
                self.line(depth, format!("while ({i}-- > 0) {{"));
                self.block(depth + 1, true);
                self.line(depth, "}");
            }
            3 => {
                self.line(depth, "switch (a & 3) {");
                for case in 0..3 {
                    self.line(depth, format!("case {case}:"));
                    self.assign(depth + 1);
                    self.line(depth + 1, "break;");
                }
                self.line(depth, "default:");
                self.assign(depth + 1);
                self.line(depth, "}");
            }
            4 if in_loop => {
                let condition = self.condition();
                self.line(depth, format!("if ({condition})"));
                let leave = ["break;", "continue;"][self.below(2)];
                self.line(depth + 1, leave);
            }
            _ => self.assign(depth),
        }
    }

    /// Writes a block. Half of the blocks have a variable, which the last line of the block
    /// changes. Its first value may be what its place in memory already holds.
    fn block(&mut self, depth: usize, in_loop: bool) {
        let own = (self.below(2) == 0).then_some(self.blocks);
        self.blocks += 1;
        let before = own.is_some() && self.below(2) == 0;
        if before {
            self.assign(depth);
        }
        if let Some(own) = own {
            let value = ["0", "4", "a", "b % 3"][self.below(4)];
            self.line(depth, format!("int k{own} = {value}; local(k{own});"));
        }
        for _ in 0..self.below(3) + 1 {
            self.statement(depth, in_loop);
        }
        if let Some(own) = own {
            let n = self.below(3) + 1;
            self.line(depth, format!("k{own} += {n}; local(k{own});"));
        }
    }

    fn program(seed: u64) -> Vec<String> {
        let mut writer = Self {
            random: SplitMix64(seed),
            lines: Vec::new(),
            left: 30,
            loops: 0,
            blocks: 0,
        };
        for line in [
            "void show(int, int, int, int);",
            "void local(int);",
            "static int total = 3;",
            "static int twice(int x)",
            "{",
            "    total += x & 1;",
            "    int y = x + x;",
            "    return y;",
            "}",
            "int run(void)",
            "{",
            "    int a = 5, b = 7, c = 11;",
        ] {
            writer.line(0, line);
        }
        for _ in 0..6 {
            writer.statement(1, false);
        }
        writer.line(1, "return a + b + c + total;");
        writer.line(0, "}");
        writer.lines
    }
}

/// The code of the native program that shows the variables.
const NATIVE: &str = r#"
#include <stdio.h>
void show(int a, int b, int c, int d) { printf("%d %d %d %d\n", a, b, c, d); fflush(stdout); }
void local(int k) { printf("%d\n", k); fflush(stdout); }
int run(void);
int main(void) { run(); return 0; }
"#;

/// Commands for gdb that step over calls from the beginning of `run`, and show the lines.
const GDB: &str = r#"
set pagination off
set debuginfod enabled off
break run
run > shown
python
lines = []
try:
    while gdb.selected_frame().name() == 'run':
        lines.append(gdb.selected_frame().find_sal().line)
        gdb.execute('next', to_string=True)
except gdb.error:
    pass
print('LINES', *lines)
end
"#;

/// Returns the lines that gdb visits in the native program, and the program's output. Reports why
/// and returns `None` if the program cannot be compiled or debugged here.
fn native(sandbox: &Sandbox) -> Option<(Vec<usize>, Vec<String>)> {
    let Some(clang) = ["clang-19", "clang"]
        .into_iter()
        .find(|name| installed(name))
    else {
        skipped("lines against gdb: no clang");
        return None;
    };
    if !installed("gdb") {
        skipped("lines against gdb: gdb is not installed");
        return None;
    }
    sandbox.write("native.c", NATIVE);
    sandbox.write("steps.gdb", GDB);
    for options in [
        "-g0 -c native.c -o native.o",
        "-g -O0 run.c native.o -o native",
    ] {
        let made = ran(sandbox.any(clang).args(options.split(' ')));
        if made.code != Some(0) {
            skipped("lines against gdb: clang makes no native programs here");
            return None;
        }
    }
    let followed = ran(sandbox
        .any("gdb")
        .args(["-batch", "-nx", "-x", "steps.gdb", "./native"]));
    let lines = followed.stdout.lines();
    let mut lines = lines.filter_map(|line| line.strip_prefix("LINES"));
    let Some(lines) = lines.next_back().filter(|lines| !lines.trim().is_empty()) else {
        skipped("lines against gdb: gdb follows no programs here");
        return None;
    };
    let lines = lines.split_whitespace().map(|line| line.parse().unwrap());
    let shown = String::from_utf8(sandbox.read("shown")).unwrap();
    Some((lines.collect(), shown.lines().map(str::to_owned).collect()))
}

/// Returns the rows of `run`, stepping over calls.
fn stepped(sandbox: &Sandbox, options: &str) -> Vec<Value> {
    let told = sandbox.ok(&format!(
        "trace run.aft --level line --limit all --format json {options}"
    ));
    let rows = told.stdout.lines().skip(1);
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

fn line(row: &Value) -> usize {
    row["source"]["line"].as_u64().unwrap() as usize
}

#[test]
fn lines_are_those_of_gdb_and_variables_those_that_are_printed() {
    let (mut visited, mut compared, mut locals) = (0, 0, 0);
    for seed in 0..12 {
        println!("seed {seed}");
        let sandbox = Sandbox::new();
        let Some(clang) = tools::clang() else {
            return;
        };
        let text = Writer::program(seed);
        let source = sandbox.write("run.c", text.join("\n") + "\n");
        let Some((lines, shown)) = native(&sandbox) else {
            return;
        };
        let show = sandbox.write(
            "show.c",
            "void show(int a, int b, int c, int d) {} void local(int k) {}",
        );
        let (run, none) = (sandbox.path("run.o"), sandbox.path("show.o"));
        clang.object(&["-g", "-O0"], &source, &run).unwrap();
        clang.object(&["-g0", "-O0"], &show, &none).unwrap();
        let link = ["-Wl,--no-entry", "-Wl,--export=run"];
        clang
            .link(&[run, none], &link, &sandbox.path("run.wasm"))
            .unwrap();
        sandbox.ok("record --invoke run -o run.aft run.wasm");
        let rows = stepped(&sandbox, "--over --from run");

        // gdb begins after the prologue. On these two lines, only one of the programs has a jump.
        let is_code = |line: &usize| {
            !matches!(
                text[*line - 1].trim(),
                "{" | "}" | "int run(void)" | "default:"
            )
        };
        let own = rows.iter().map(line).filter(is_code);
        let native = lines.into_iter().filter(is_code);
        assert_eq!(
            Vec::from_iter(own),
            Vec::from_iter(native),
            "{}",
            text.join("\n")
        );
        visited += rows.len();

        let mut held = HashMap::from([("total".to_owned(), "3".to_owned())]);
        let mut shown = shown.iter();
        let (mut showed, mut finished, mut local) = (None, None::<&str>, None::<&String>);
        for row in &rows {
            let Some(all) = row["changed"].as_array() else {
                panic!("{row}");
            };
            for changed in all {
                let text = |field: &str| changed[field].as_str().map(str::to_owned);
                let (name, value) = (text("name").unwrap(), text("value").unwrap());
                // A callee may change the global variable.
                let is_there = finished.is_some_and(|finished| finished.contains(&name));
                assert!(is_there || name == "total", "{name} after {finished:?}");
                let before = held.insert(name.clone(), value.clone());
                // Other variables are not always in scope.
                if before.is_some() && VARIABLES.contains(&&*name) {
                    assert_ne!(before.as_ref(), Some(&value), "{name} did not change");
                    assert_eq!(text("before"), before, "{name}");
                }
            }
            // A block's own variable is declared or changed on each line that shows it.
            if let Some((shown, finished)) = local.take().zip(finished) {
                let own = |one: &&Value| one["name"].as_str().unwrap().starts_with('k');
                let own = Vec::from_iter(all.iter().filter(own));
                let [own] = own[..] else {
                    panic!("{finished}: {all:?}\n{}", text.join("\n"));
                };
                assert_eq!(own["value"], **shown, "{finished}");
                locals += 1;
            }
            // Each of the variables was assigned by then.
            if let Some(shown) = showed.take() {
                let found = VARIABLES.map(|name| held[name].clone()).join(" ");
                assert_eq!(&found, shown, "at line {}", line(row));
                compared += 1;
            }
            if text[line(row) - 1].contains("show(") {
                showed = Some(shown.next().unwrap());
            }
            if text[line(row) - 1].contains("local(") {
                local = Some(shown.next().unwrap());
            }
            finished = Some(&text[line(row) - 1]);
        }
        assert_eq!(shown.next(), None);

        let mut bare = rows.clone();
        for row in &mut bare {
            row.as_object_mut().unwrap().remove("changed");
        }
        assert_eq!(stepped(&sandbox, "--over --from run --no-variables"), bare);

        let mut backwards = stepped(&sandbox, "--over --to run --reverse");
        backwards.reverse();
        let inside = stepped(&sandbox, "--from run");
        let own = |row: &&Value| row["entered_t"] == rows[0]["entered_t"];
        assert_eq!(
            Vec::from_iter(inside.iter().filter(own)),
            Vec::from_iter(&rows)
        );
        let own = backwards.iter().filter(own);
        assert_eq!(Vec::from_iter(own), Vec::from_iter(&rows));
        // Any part must be reported as in the whole run.
        let middle = inside.len() / 2;
        let from = format!(
            "--from @0x{:x}#last",
            inside[middle]["offset"].as_u64().unwrap()
        );
        let part = stepped(&sandbox, &from);
        assert!(inside.ends_with(&part));
        // If `--from` names a line, this line is the first row. With `--over`, a stretch begins
        // with its first line.
        let named = line(&inside[middle]);
        let at = stepped(&sandbox, &format!("--from run.c:{named}"));
        assert_eq!(at.first().map(line), Some(named));
        assert_eq!(stepped(&sandbox, "--over"), rows);
        let last = stepped(&sandbox, "--last 5");
        assert!(inside.ends_with(&last));
    }
    assert!(
        visited > 400 && compared > 150 && locals > 50,
        "{visited} lines, {compared} times, {locals} times in a block"
    );
}
