//! The counts of lines and of simple branches agree with clang's source-based coverage
//! (`llvm-cov`), on the generated C and C++ of the comparison with gcov, without optimisation.
//!
//! llvm-cov counts regions of the source, while we count the code of each line. So some lines have
//! different counts by definition, and [`Compared`] lists them. There must be no others. The other
//! coverage of clang, `llvm-cov gcov`, cannot be the reference, as the comparison with gcov says.

use afterimage_testkit::tools::{installed, skipped};

use crate::common::Sandbox;
use crate::gcov_holds::{Counted, Kind, Writer, is_simple_branch, lines_and_branches, recorded};

/// The way in which a line is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    /// Both counts must be the same.
    Same,
    /// The line has only a jump or no statement, so it may have no code. With code, it must have
    /// the same count.
    Jump,
    /// The line is the head of a loop without a condition. It has no code, while llvm-cov counts
    /// the region of the loop.
    Head,
    /// The line is the end of a `do` loop, `} while (…);`. It begins inside the region of the body,
    /// so llvm-cov counts the body's beginning if a jump at its end leaves the loop. Our count must
    /// be that of the condition, which is the sum of its two branches.
    Condition,
    /// The line is `} else {`. llvm-cov counts the second block, which begins there. Our count is
    /// that of the jump past this block, at the end of the first block.
    Else,
    /// The line ends a function. All returns lead to its code, while llvm-cov counts the region
    /// that is open there, without earlier returns. Our count must be that of the function's first
    /// line.
    End,
}

impl Compared {
    fn of(kind: Kind, text: &str) -> Self {
        match (kind, text.trim()) {
            (Kind::Head, _) => Self::Head,
            (_, "} else {") => Self::Else,
            _ if text == "}" => Self::End,
            (_, line) if line.starts_with("} while (") => Self::Condition,
            (Kind::Same, _) => Self::Same,
            (Kind::Jump, _) => Self::Jump,
        }
    }
}

/// The tools of one version of LLVM.
struct Llvm {
    clang: String,
    profdata: String,
    cov: String,
}

impl Llvm {
    /// Returns the tools if they are installed, with the library for counts.
    fn find(sandbox: &Sandbox, cpp: bool) -> Option<Self> {
        let clang = if cpp { "clang++" } else { "clang" };
        ["-19", ""].into_iter().find_map(|version| {
            let named =
                |tool: &str| Some(format!("{tool}{version}")).filter(|tool| installed(tool));
            let found = Self {
                clang: named(clang)?,
                profdata: named("llvm-profdata")?,
                cov: named("llvm-cov")?,
            };
            sandbox.write("empty.c", "int main(void) { return 0; }\n");
            let line = format!(
                "{} -w -fprofile-instr-generate empty.c -o empty",
                found.clang
            );
            (sandbox.shell(&line).code == Some(0)).then_some(found)
        })
    }

    /// Returns the counts of a program's lines and branches.
    fn counts(&self, sandbox: &Sandbox, file: &str) -> Counted {
        let Self {
            clang,
            profdata,
            cov,
        } = self;
        let line = format!(
            "{clang} -w -O0 -fprofile-instr-generate -fcoverage-mapping {file} -o native && \
             LLVM_PROFILE_FILE=native.profraw ./native && \
             {profdata} merge native.profraw -o native.profdata && \
             {cov} export --format=lcov --instr-profile=native.profdata native"
        );
        let report = sandbox.shell(&line);
        assert_eq!(report.code, Some(0), "{report:?}");
        lines_and_branches(&report.stdout, file)
    }
}

const MISSING: &str = "the comparison with llvm-cov: clang, its library for counts, llvm-profdata and \
                       llvm-cov are not all installed";

fn compare(cpp: bool, seeds: u64) {
    let sandbox = Sandbox::new();
    let Some(llvm) = Llvm::find(&sandbox, cpp) else {
        return skipped(MISSING);
    };
    let file = if cpp { "app.cpp" } else { "app.c" };
    let (mut compared, mut wrong) = ([0; 6], Vec::new());
    let mut branches = 0;
    for seed in 0..seeds {
        let program = Writer::program(seed, cpp);
        sandbox.write(file, &program.text);
        let (expected, expected_ways) = llvm.counts(&sandbox, file);
        let (found, found_ways) = recorded(&sandbox, &llvm.clang, "-O0", file);
        let mut beginning = None;
        for (at, (kind, text)) in (1..).zip(program.kinds.iter().zip(program.text.lines())) {
            let (own, other) = (found.get(&at), expected.get(&at));
            if !text.starts_with([' ', '}']) {
                beginning = other;
            }
            let how = Compared::of(*kind, text);
            let condition = || {
                let ways = expected_ways.get(&at).into_iter().flatten();
                ways.take(2).map(|way| way.unwrap_or(0)).sum()
            };
            let agree = match how {
                Compared::Same => own == other,
                Compared::Jump => own.is_none() || own == other,
                Compared::Head => own.is_none(),
                Compared::Condition => own == Some(&condition()),
                Compared::Else => true,
                Compared::End => own.is_none() || own == beginning,
            };
            if !agree {
                wrong.push(format!(
                    "seed {seed}, line {at}: {own:?}, llvm-cov {other:?}: {text}"
                ));
            }
            if is_simple_branch(text) {
                let [own, other] = [&found_ways, &expected_ways].map(|ways| {
                    let mut ways = ways.get(&at).cloned().unwrap_or_default();
                    ways.sort();
                    ways
                });
                if own != other || own.len() != 2 {
                    wrong.push(format!(
                        "seed {seed}, branch of line {at}: {own:?}, llvm-cov {other:?}: {text}"
                    ));
                }
                branches += u64::from(own.iter().any(Option::is_some));
            }
            compared[how as usize] += u64::from(own.is_some_and(|own| *own > 0));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let [same, jumps, _, conditions, _, ends] = compared;
    assert!(
        same > 20 * seeds && jumps > seeds && conditions > seeds / 2 && ends > seeds,
        "{compared:?}"
    );
    assert!(branches > 5 * seeds, "{branches}");
}

#[test]
fn lines_of_generated_c_are_counted_as_llvm_cov_counts_them() {
    compare(false, 25);
}

#[test]
fn lines_of_generated_cpp_are_counted_as_llvm_cov_counts_them() {
    compare(true, 10);
}

/// clang makes a `select` of a choice between constants, even without optimisation. llvm-cov counts
/// the two ways of every `?`. We count blocks, which do not say what a `select` chose.
#[test]
fn a_select_has_no_branch_record() {
    let sandbox = Sandbox::new();
    let Some(llvm) = Llvm::find(&sandbox, false) else {
        return skipped(MISSING);
    };
    sandbox.write(
        "app.c",
        "static int g, h = 3;\nint main(int argc, char **argv) {\n    for (int n = 0; n < 7; n++) {\n        \
         g += n % 3 ? h : 4;\n        g += n % 3 ? 5 : 4;\n    }\n    return 0;\n}\n",
    );
    let (_, expected) = llvm.counts(&sandbox, "app.c");
    let (_, found) = recorded(&sandbox, &llvm.clang, "-O0", "app.c");
    let ways = Some(&vec![Some(4), Some(3)]);
    assert_eq!([4, 5].map(|line| expected.get(&line)), [ways, ways]);
    assert_eq!([4, 5].map(|line| found.get(&line)), [ways, None]);
    // The values answer instead.
    let told = sandbox.ok("values app.aft --at app.c:5 --histogram").stdout;
    let (_, chosen) = told.split_once(" select ").unwrap();
    let rows = chosen.lines().skip(1).take(2).map(str::trim);
    assert_eq!(Vec::from_iter(rows), ["4 times  5", "3 times  4"], "{told}");
}
