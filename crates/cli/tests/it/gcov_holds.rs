//! The counts of lines and of simple branches agree with gcov, on generated C and C++ without
//! optimisation.
//!
//! Branches are compared where both compilers must make one branch: at a condition without `&&`,
//! `||` and `?`. The directions of a branch have no common order.
//!
//! gcc compiles the native program, and clang the other program. [`Kind`] lists the differences by
//! definition. There must be no others. The coverage of clang itself cannot be the reference: if a
//! `goto` leads back, `llvm-cov gcov` 19 reports one call for a function that was called three
//! times.

use std::collections::BTreeMap;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools::{installed, skipped};

use crate::common::Sandbox;

/// The way in which a line is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The line has code in both programs, and must have the same count.
    Same,
    /// The line has only a jump or no statement. It must have the same count if it has code in both
    /// programs. WebAssembly has no jump to the next instruction. gcc has no code for the end of a
    /// block, but has code for a label.
    Jump,
    /// The line is the head of a loop without a condition, and has no code.
    Head,
}

/// Writes programs with each statement on a separate line, except loops that stay on their line.
pub(crate) struct Writer {
    random: SplitMix64,
    pub(crate) text: String,
    pub(crate) kinds: Vec<Kind>,
    /// The number of statements that may still be written.
    left: u64,
    labels: u64,
    loops: u64,
    cpp: bool,
}

/// The surroundings of a statement.
#[derive(Clone, Copy)]
struct Around {
    depth: usize,
    in_loop: bool,
    /// Whether the function returns nothing.
    void: bool,
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n as usize) as u64
    }

    fn line(&mut self, kind: Kind, depth: usize, text: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str(text);
        self.text.push('\n');
        self.kinds.push(kind);
    }

    fn condition(&mut self) -> String {
        let n = self.below(7);
        match self.below(5) {
            0 => format!("x % 7 == {n}"),
            1 => format!("(x & {}) != 0 && y < x", n + 1),
            2 => format!("y % 3 == 1 || x % 5 == {}", n % 5),
            3 => "!(x & 1)".into(),
            _ => format!("(y ? x : {n}) > 3"),
        }
    }

    fn simple(&mut self, depth: usize) {
        let n = self.below(90) + 1;
        let text = match self.below(9) {
            0 => format!("x = x * 5 + {n};"),
            1 => format!("y ^= x >> {};", n % 5),
            2 => format!("x += x % 3 ? y : {n};"),
            3 => format!("y = mix(x, {n}) + mix(y, 2);"),
            4 => format!("for (unsigned k = 0; k < {}; k++) x += k;", n % 4 + 1),
            5 => format!(
                "for (unsigned k = 0; k < {}; k++) if (x % 2) y += k; else x++;",
                n % 4 + 1
            ),
            6 => "while (y % 4) y++;".into(),
            7 if self.cpp => format!("x += Point{{x, {n}}}.sum();"),
            _ => format!("if (x % 2) y += {n};"),
        };
        self.line(Kind::Same, depth, &text);
    }

    fn block(&mut self, around: Around) {
        for _ in 0..1 + self.below(4) {
            self.statement(around);
        }
    }

    fn statement(&mut self, around: Around) {
        let Around { depth, .. } = around;
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > 5 {
            return self.simple(depth);
        }
        let inner = Around {
            depth: depth + 1,
            ..around
        };
        let in_loop = Around {
            in_loop: true,
            ..inner
        };
        let condition = self.condition();
        match self.below(16) {
            0 | 1 => {
                self.line(Kind::Same, depth, &format!("if ({condition}) {{"));
                self.block(inner);
                if self.below(2) == 0 {
                    self.line(Kind::Jump, depth, "} else {");
                    self.block(inner);
                }
                self.line(Kind::Jump, depth, "}");
            }
            2 => {
                self.line(
                    Kind::Same,
                    depth,
                    &format!("while (fuel-- > 0 && ({condition})) {{"),
                );
                self.block(in_loop);
                self.line(Kind::Jump, depth, "}");
            }
            3 => {
                let (i, n) = (self.loops, self.below(5));
                self.loops += 1;
                let head = format!("for (int i{i} = 0; i{i} < {n} && fuel-- > 0; i{i}++) {{");
                self.line(Kind::Same, depth, &head);
                self.block(in_loop);
                self.line(Kind::Jump, depth, "}");
            }
            4 => {
                let (i, n) = (self.loops, self.below(5));
                self.loops += 1;
                let head = format!("for (int i{i} = 0; i{i} < {n}; i{i}++)");
                self.line(Kind::Same, depth, &head);
                self.simple(depth + 1);
            }
            5 => {
                self.line(Kind::Jump, depth, "do {");
                self.block(in_loop);
                let end = format!("}} while (fuel-- > 0 && ({condition}));");
                self.line(Kind::Same, depth, &end);
            }
            6 | 7 => {
                let head = ["while (1) {", "for (;;) {"][self.below(2) as usize];
                self.line(Kind::Head, depth, head);
                self.line(Kind::Same, depth + 1, "if (fuel-- <= 0)");
                self.line(Kind::Jump, depth + 2, "break;");
                self.block(in_loop);
                self.line(Kind::Jump, depth, "}");
            }
            8 => {
                self.line(Kind::Same, depth, "switch (x % 5) {");
                for case in 0..1 + self.below(4) {
                    self.line(Kind::Jump, depth, &format!("case {case}:"));
                    self.block(inner);
                    if self.below(3) > 0 {
                        self.line(Kind::Jump, depth + 1, "break;");
                    }
                }
                if self.below(2) == 0 {
                    self.line(Kind::Jump, depth, "default:");
                    self.block(inner);
                }
                self.line(Kind::Jump, depth, "}");
            }
            9 | 10 if around.in_loop => {
                self.line(Kind::Same, depth, &format!("if ({condition})"));
                let jump = ["break;", "continue;"][self.below(2) as usize];
                self.line(Kind::Jump, depth + 1, jump);
            }
            11 => {
                // Jump forward over some statements.
                let label = self.labels;
                self.labels += 1;
                self.line(Kind::Same, depth, &format!("if ({condition})"));
                self.line(Kind::Jump, depth + 1, &format!("goto on{label};"));
                self.simple(depth);
                self.simple(depth);
                self.line(Kind::Jump, depth, &format!("on{label}:"));
                self.simple(depth);
            }
            12 => {
                let label = self.labels;
                self.labels += 1;
                self.line(Kind::Jump, depth, &format!("again{label}:"));
                self.simple(depth);
                self.line(
                    Kind::Same,
                    depth,
                    &format!("if (fuel-- > 0 && ({condition}))"),
                );
                self.line(Kind::Jump, depth + 1, &format!("goto again{label};"));
                self.simple(depth);
            }
            13 => {
                self.line(Kind::Same, depth, &format!("if (fuel < 4 && {condition})"));
                if around.void {
                    self.line(Kind::Jump, depth + 1, "return;")
                } else {
                    self.line(Kind::Same, depth + 1, "return x;")
                }
            }
            _ => self.simple(depth),
        }
    }

    pub(crate) fn program(seed: u64, cpp: bool) -> Self {
        let mut writer = Self {
            random: SplitMix64(seed),
            text: String::new(),
            kinds: Vec::new(),
            left: 60,
            labels: 0,
            loops: 0,
            cpp,
        };
        let w = &mut writer;
        w.line(Kind::Same, 0, "static int fuel; static unsigned x, y;");
        if cpp {
            w.line(
                Kind::Same,
                0,
                "struct Point { unsigned a, b; unsigned sum() const { return a + b; } };",
            );
            w.line(
                Kind::Same,
                0,
                "template <typename T> static T mix(T a, T b) { return a * 7 + b; }",
            );
            w.line(
                Kind::Same,
                0,
                "static unsigned mix(unsigned a, int b) { return mix<unsigned>(a, (unsigned)b); }",
            );
        } else {
            w.line(
                Kind::Same,
                0,
                "static unsigned mix(unsigned a, unsigned b) { return a * 7 + b; }",
            );
        }
        for function in 0..2 {
            let void = function == 0;
            let kind = if void { "void" } else { "unsigned" };
            w.line(
                Kind::Same,
                0,
                &format!("static {kind} work{function}(void) {{"),
            );
            // In gcc, a loop at the beginning of a function belongs to the function's own line.
            w.line(Kind::Same, 1, "x += 1;");
            w.left = 40;
            let around = Around {
                depth: 1,
                in_loop: false,
                void,
            };
            for _ in 0..5 {
                w.statement(around);
            }
            if void {
                w.simple(1)
            } else {
                w.line(Kind::Same, 1, "return x + y;")
            }
            w.line(Kind::Jump, 0, "}");
        }
        w.line(Kind::Same, 0, "int main(void) {");
        w.line(Kind::Same, 1, "for (int round = 0; round < 3; round++) {");
        w.line(Kind::Same, 2, "fuel = 40;");
        w.line(Kind::Same, 2, "work0();");
        w.line(Kind::Same, 2, "fuel = 25;");
        w.line(Kind::Same, 2, "x += work1();");
        w.line(Kind::Jump, 1, "}");
        w.line(Kind::Same, 1, "return 0;");
        w.line(Kind::Jump, 0, "}");
        writer
    }
}

/// Returns the compilers if they are installed: the native compiler and clang.
fn compilers(cpp: bool) -> Option<(&'static str, &'static str)> {
    let runs = |name: &&str| installed(name);
    let [native, other] = if cpp {
        ["g++", "clang++-19 clang++"]
    } else {
        ["gcc", "clang-19 clang"]
    };
    let other = other.split(' ').find(runs)?;
    ["gcov", native].iter().all(runs).then_some((native, other))
}

/// The counts of the directions of each line's branches; `None` for a branch that was never
/// reached.
type Branches = BTreeMap<u32, Vec<Option<u64>>>;

/// The counts of a file's lines, and of their branches.
pub(crate) type Counted = (BTreeMap<u32, u64>, Branches);

/// Whether a line has one branch with two directions under every compiler.
pub(crate) fn is_simple_branch(text: &str) -> bool {
    let text = text.trim();
    let heads = ["if (", "while (y", "for (unsigned", "for (int"];
    let branches = text.matches("if (").count() + text.matches("for (").count();
    heads.iter().any(|head| text.starts_with(head))
        && branches <= 1
        && !["&&", "||", "?"]
            .iter()
            .any(|operator| text.contains(operator))
}

/// Returns the counts of a program's lines and branches according to gcov.
fn gcov(sandbox: &Sandbox, gcc: &str, file: &str) -> Counted {
    let line = format!(
        "rm -f native*; {gcc} -w -O0 --coverage -c {file} -o native.o && {gcc} --coverage native.o -o native && ./native && gcov -b -c -t native.gcda"
    );
    let report = sandbox.shell(&line);
    assert_eq!(report.code, Some(0), "{report:?}");
    let (mut counts, mut branches) = (BTreeMap::new(), Branches::new());
    let mut last = 0;
    for row in report.stdout.lines() {
        if let Some(branch) = row.strip_prefix("branch ") {
            // `0 taken 5 (fallthrough)`, `1 never executed`
            let taken = branch.split_whitespace().nth(2);
            let taken = taken.and_then(|taken| taken.parse().ok());
            branches.entry(last).or_default().push(taken);
            continue;
        }
        let mut parts = row.split(':').map(str::trim);
        let (Some(count), Some(Ok(line))) = (parts.next(), parts.next().map(str::parse)) else {
            continue;
        };
        last = line;
        let count = match count {
            "#####" => Some(0),
            count => count.trim_end_matches('*').parse().ok(),
        };
        counts.extend(count.filter(|_| line > 0).map(|count| (line, count)));
    }
    (counts, branches)
}

/// Returns the same counts according to a recording.
pub(crate) fn recorded(sandbox: &Sandbox, clang: &str, level: &str, file: &str) -> Counted {
    // Link without a level of optimisation, so that wasm-opt does not rewrite the module.
    let line = format!(
        "{clang} --target=wasm32-wasi -w -g {level} -c {file} -o app.o && {clang} --target=wasm32-wasi app.o -o app.wasm"
    );
    let built = sandbox.shell(&line);
    assert_eq!(built.code, Some(0), "{built:?}");
    sandbox.ok("record --force -o app.aft app.wasm");
    lines_and_branches(&sandbox.ok("profile app.aft --format lcov").stdout, file)
}

/// Reads the counts of a file's lines and branches from an lcov report.
pub(crate) fn lines_and_branches(report: &str, file: &str) -> Counted {
    let (mut counts, mut branches) = (BTreeMap::new(), Branches::new());
    let mut is_own = false;
    for row in report.lines() {
        if let Some(path) = row.strip_prefix("SF:") {
            is_own = path.ends_with(file);
        }
        if let (true, Some((line, count))) = (
            is_own,
            row.strip_prefix("DA:").and_then(|row| row.split_once(',')),
        ) {
            counts.insert(line.parse().unwrap(), count.parse().unwrap());
        }
        if let (true, Some(branch)) = (is_own, row.strip_prefix("BRDA:")) {
            let fields = Vec::from_iter(branch.split(','));
            let ways = branches.entry(fields[0].parse().unwrap()).or_default();
            ways.push(fields[3].parse().ok());
        }
    }
    (counts, branches)
}

fn compare(cpp: bool, seeds: u64) {
    let Some((gcc, clang)) = compilers(cpp) else {
        return skipped("the comparison with gcov: gcc, gcov and clang are not all installed");
    };
    let sandbox = Sandbox::new();
    let file = if cpp { "app.cpp" } else { "app.c" };
    let (mut compared, mut wrong) = ([0, 0, 0], Vec::new());
    for seed in 0..seeds {
        let program = Writer::program(seed, cpp);
        sandbox.write(file, &program.text);
        let (expected, expected_ways) = gcov(&sandbox, gcc, file);
        let (found, found_ways) = recorded(&sandbox, clang, "-O0", file);
        for (at, (kind, text)) in (1..).zip(program.kinds.iter().zip(program.text.lines())) {
            let (own, other) = (found.get(&at), expected.get(&at));
            let agree = match kind {
                Kind::Same => own == other,
                Kind::Jump => own.is_none() || other.is_none() || own == other,
                Kind::Head => own.is_none(),
            };
            if !agree {
                wrong.push(format!(
                    "seed {seed}, line {at}: {own:?}, gcov {other:?}: {text}"
                ));
            }
            // Instances of a template have their own rows in gcov's report.
            if !cpp && is_simple_branch(text) {
                let sorted = |ways: &Branches| {
                    let mut ways = ways.get(&at).cloned().unwrap_or_default();
                    ways.sort();
                    ways
                };
                let (own, other) = (sorted(&found_ways), sorted(&expected_ways));
                if own != other || own.len() != 2 {
                    wrong.push(format!(
                        "seed {seed}, branch of line {at}: {own:?}, gcov {other:?}: {text}"
                    ));
                }
                compared[2] += u64::from(own.iter().any(Option::is_some));
            }
            let both = own.is_some_and(|own| *own > 0) && other.is_some();
            compared[usize::from(*kind == Kind::Jump)] += u64::from(both);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        compared[0] > 20 * seeds && compared[1] > seeds && (cpp || compared[2] > 5 * seeds),
        "{compared:?}"
    );
}

#[test]
fn lines_of_generated_c_are_counted_as_gcov_counts_them() {
    compare(false, 25);
}

#[test]
fn lines_of_generated_cpp_are_counted_as_gcov_counts_them() {
    compare(true, 10);
}

const REMOVED: &str = "int used(int n) {
    return n * 2;
}
int dropped(int n) {
    if (n > 3)
        return 1;
    return n * 3;
}
int main(int argc, char **argv) {
    return used(argc) - 2;
}
";

#[test]
fn functions_that_the_linker_removed_are_not_executed() {
    let Some((gcc, clang)) = compilers(false) else {
        return skipped("the comparison with gcov: gcc, gcov and clang are not all installed");
    };
    let sandbox = Sandbox::new();
    sandbox.write("app.c", REMOVED);
    let (expected, _) = gcov(&sandbox, gcc, "app.c");
    let (found, _) = recorded(&sandbox, clang, "-O0", "app.c");
    for line in [1, 2, 4, 5, 6, 7, 9, 10] {
        assert_eq!(
            found.get(&line),
            expected.get(&line),
            "line {line}: {found:?}"
        );
    }
    // Every report about lines must contain these counts.
    let rows = sandbox.ok("profile app.aft --by line --format csv").stdout;
    let annotated = sandbox.ok("profile app.aft --annotate").stdout;
    for line in [4, 5] {
        assert!(rows.contains(&format!("app.c,{line},0,0,\r\n")), "{rows}");
        let number = format!(" {line}  ");
        let row = annotated.lines().find(|row| row.contains(&number));
        assert!(row.unwrap().contains("#####"), "{annotated}");
    }
    let at = ["app.c:4: the linker removed its function"];
    sandbox.refused("values app.aft --at app.c:4", 125, &at);
    // Inlined code must not count as unexecuted just because its uncalled copy was removed.
    let (found, _) = recorded(&sandbox, clang, "-O2", "app.c");
    assert!(
        [1, 2].iter().all(|line| found.get(line) != Some(&0)),
        "{found:?}"
    );
    assert_eq!([4, 5].map(|line| found.get(&line).copied()), [Some(0); 2]);
}
