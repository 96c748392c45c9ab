//! Lists the twelve tasks, with their commands for each program.
//!
//! Each task takes at most two commands, and the first screen of each names a line of the program's
//! own source.

/// A program in `xtask/screens`.
pub struct Program {
    /// The name of the page.
    pub name: &'static str,
    pub title: &'static str,
    /// The program's purpose, and its bug.
    pub about: &'static str,
    pub source: &'static str,
    pub compile: &'static [&'static str],
    pub record: &'static [&'static str],
    pub tasks: &'static [Task],
}

impl Program {
    /// Returns the beginning of the names of the program's files and recordings.
    pub fn stem(&self) -> &'static str {
        self.source.split('.').next().unwrap_or(self.source)
    }
}

/// A user's task, such as finding the store that wrote a value.
pub struct Task {
    pub title: &'static str,
    pub commands: &'static [&'static str],
    /// The programs that the task needs.
    pub tools: &'static [&'static str],
}

const fn task(title: &'static str, commands: &'static [&'static str]) -> Task {
    Task {
        title,
        commands,
        tools: &[],
    }
}

const fn with(tools: &'static [&'static str], task: Task) -> Task {
    Task { tools, ..task }
}

pub const PROGRAMS: &[Program] = &[
    Program {
        name: "c",
        title: "C: a shop's till",
        about: "`xtask/screens/orders.c` reads orders, takes them from the stock and prints a bill. It sells five cheeses where there are three, and it divides by zero if it knows none of the goods.\n",
        source: "orders.c",
        compile: &[
            "clang-19 --target=wasm32-wasi -g -ffile-compilation-dir=. -c orders.c -o orders.o",
            "clang-19 --target=wasm32-wasi orders.o -o orders.wasm",
        ],
        record: &[
            "afterimage record -o orders-good.aft --stdin orders-good.txt orders.wasm",
            "afterimage record -o orders-bad.aft --stdin orders-bad.txt orders.wasm",
            "afterimage record -o orders-crash.aft --stdin orders-crash.txt orders.wasm",
        ],
        tasks: &[
            task(
                "1. The hottest lines",
                &["afterimage profile --by line --limit 10 orders-good.aft"],
            ),
            task(
                "2. What a test run covers",
                &[
                    "afterimage profile --annotate --function take --function discount orders-good.aft",
                ],
            ),
            task(
                "3. Why is this output wrong?",
                &["afterimage why orders-bad.aft --stdout 'cheese     5'"],
            ),
            task(
                "4. Who wrote this variable last?",
                &["afterimage memory orders-bad.aft --var 'items[2].stock'"],
            ),
            task(
                "5. When does it become negative?",
                &["afterimage values orders-bad.aft --at orders.c:34 --where 'left < 0'"],
            ),
            task(
                "6. Why was this branch not taken?",
                &["afterimage why-not orders-bad.aft --at orders.c:35"],
            ),
            task(
                "7. The good run against the bad one",
                &["afterimage diff orders-good.aft orders-bad.aft"],
            ),
            task(
                "8. The stack at the crash",
                &[
                    "afterimage state orders-crash.aft",
                    "afterimage why orders-crash.aft --trap",
                ],
            ),
            task(
                "9. Step through a function, both ways",
                &[
                    "afterimage trace orders-bad.aft --level line --from take#2 --over --limit 10",
                    "afterimage trace orders-bad.aft --level line --from orders.c:38#2 --reverse --over --limit 10",
                ],
            ),
            with(
                &["callgrind_annotate"],
                task(
                    "10. Other tools",
                    &[
                        "afterimage export orders-good.aft --format callgrind --code mine -o callgrind.out",
                        "callgrind_annotate callgrind.out | tail -n +13",
                    ],
                ),
            ),
            task(
                "11. Share a recording, with its source",
                &[
                    "afterimage record --sources . -o share.aft --stdin orders-bad.txt orders.wasm",
                    "afterimage info share.aft",
                ],
            ),
            task(
                "11. Share a recording, without the input of the program",
                &[
                    "afterimage strip --inputs orders-good.aft -o shared.aft",
                    "afterimage profile --by line --limit 3 shared.aft",
                ],
            ),
        ],
    },
    Program {
        name: "cpp",
        title: "C++: a calculator",
        about: "`xtask/screens/calc.cc` computes lines in Polish notation. It takes the operands of `-` the wrong way round, it does not know `=x` for an assignment, its balance of values becomes negative at an empty line, and an operator without operands ends it.\n",
        source: "calc.cc",
        compile: &[
            "clang++-19 --target=wasm32-wasi -fno-exceptions -g -ffile-compilation-dir=. -c calc.cc -o calc.o",
            "clang++-19 --target=wasm32-wasi -fno-exceptions calc.o -o calc.wasm",
        ],
        record: &[
            "afterimage record -o calc-good.aft --stdin calc-good.txt calc.wasm",
            "afterimage record -o calc-bad.aft --stdin calc-bad.txt calc.wasm",
            "afterimage record -o calc-crash.aft --stdin calc-crash.txt calc.wasm",
        ],
        tasks: &[
            task(
                "1. The hottest lines",
                &["afterimage profile --by line --limit 10 calc-good.aft"],
            ),
            task(
                "2. What a test run covers",
                &["afterimage profile --annotate --function Calculator::apply calc-good.aft"],
            ),
            task(
                "3. Why is this output wrong?",
                &["afterimage why calc-bad.aft --stdout -5"],
            ),
            task(
                "4. Who wrote this variable last?",
                &["afterimage memory calc-bad.aft --var calculator.balance --at calc.cc:84#last"],
            ),
            task(
                "5. When does it become negative?",
                &[
                    "afterimage values calc-bad.aft --at calc.cc:84 --where 'calculator.balance < 0'",
                ],
            ),
            task(
                "6. Why was this branch not taken?",
                &["afterimage why-not calc-bad.aft --at calc.cc:51"],
            ),
            task(
                "7. The good run against the bad one",
                &["afterimage diff calc-good.aft calc-bad.aft"],
            ),
            task(
                "8. The stack at the crash",
                &[
                    "afterimage state calc-crash.aft",
                    "afterimage why calc-crash.aft --trap",
                ],
            ),
            task(
                "9. Step through a function, both ways",
                &[
                    "afterimage trace calc-bad.aft --level line --from Calculator::apply#2 --over --limit 10",
                    "afterimage trace calc-bad.aft --level line --from calc.cc:37 --reverse --over --limit 10",
                ],
            ),
            with(
                &["callgrind_annotate"],
                task(
                    "10. Other tools",
                    &[
                        "afterimage export calc-good.aft --format callgrind --code mine -o callgrind.out",
                        "callgrind_annotate callgrind.out | tail -n +13",
                    ],
                ),
            ),
            task(
                "11. Share a recording, with its source",
                &[
                    "afterimage record --sources . -o share.aft --stdin calc-bad.txt calc.wasm",
                    "afterimage info share.aft",
                ],
            ),
        ],
    },
    Program {
        name: "rust",
        title: "Rust: marks of pupils",
        about: "`xtask/screens/marks.rs` prints each pupil's mean and how many have which grade. It leaves the first mark out, nobody gets the best grade, and a pupil without marks makes it panic.\n",
        source: "marks.rs",
        compile: &[
            "rustc --edition=2024 --target wasm32-wasip1 -g --remap-path-prefix=\"$PWD=.\" marks.rs -o marks.wasm",
        ],
        record: &[
            "afterimage record -o marks-good.aft --stdin marks-good.txt marks.wasm",
            "afterimage record -o marks-bad.aft --stdin marks-bad.txt marks.wasm",
            "afterimage record -o marks-crash.aft --stdin marks-crash.txt marks.wasm",
        ],
        tasks: &[
            task(
                "1. The hottest lines",
                &["afterimage profile --by line --limit 10 marks-good.aft"],
            ),
            task(
                "2. What a test run covers",
                &["afterimage profile --annotate --function marks::grade marks-good.aft"],
            ),
            task(
                "3. Why is this output wrong?",
                &["afterimage why marks-bad.aft --stdout '9.6'"],
            ),
            task(
                "4. Who wrote this variable last?",
                &["afterimage memory marks-bad.aft --var change --at marks.rs:39#last"],
            ),
            task(
                "5. When does it become negative?",
                &["afterimage values marks-bad.aft --at marks.rs:37 --where 'change < 0'"],
            ),
            task(
                "6. Why was this branch not taken?",
                &["afterimage why-not marks-bad.aft --at marks.rs:45"],
            ),
            task(
                "7. The good run against the bad one",
                &["afterimage diff marks-good.aft marks-bad.aft"],
            ),
            task(
                "8. The stack at the crash",
                &[
                    "afterimage state marks-crash.aft",
                    "afterimage why marks-crash.aft --trap",
                ],
            ),
            task(
                "9. Step through a function, both ways",
                &[
                    "afterimage trace marks-bad.aft --level line --from Pupil::mean#3 --over --limit 10",
                    "afterimage trace marks-bad.aft --level line --from marks.rs:30#3 --reverse --over --limit 10",
                ],
            ),
            with(
                &["callgrind_annotate"],
                task(
                    "10. Other tools",
                    &[
                        "afterimage export marks-good.aft --format callgrind --code mine -o callgrind.out",
                        "callgrind_annotate callgrind.out | tail -n +13",
                    ],
                ),
            ),
            task(
                "11. Share a recording, with its source",
                &[
                    "afterimage record --sources . -o share.aft --stdin marks-bad.txt marks.wasm",
                    "afterimage info share.aft",
                ],
            ),
            task(
                "12. The same as 3, from Rust",
                &["cargo run -q -p afterimage --example printed_byte -- marks-bad.aft 9.6"],
            ),
        ],
    },
];
