//! For C and C++ programs that abort, `why --trap` reports the printed message and the line of the
//! user's own code.

use crate::common::Sandbox;
use crate::containers_hold::compiled;

const SOURCE: &str = r#"#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

static int price(const std::vector<int> &prices, int which) {
    return prices.at(which);
}

static void check(int number) {
    if (number > 2) {
        fprintf(stderr, "first\nbad number %d\n", number);
        abort();
    }
}

int main(int argc, char **argv) {
    fprintf(stderr, "begun\n");
    std::map<std::string, int> names = {{"mug", 3}, {"pot", 5}};
    std::vector<int> prices = {3, 5, 8};
    int sum = 0;
    switch (argv[1][0]) {
    case 'v':
        for (int i = 0; i <= 3; i++)
            sum += price(prices, i);
        break;
    case 'm':
        sum += names.at("cup");
        break;
    case 's':
        sum += std::stoi(argv[1]);
        break;
    case 'p':
        for (int i = 0; i < 5; i++)
            check(i);
        break;
    }
    printf("%d\n", sum);
}
"#;

/// Returns the line of the source with this text.
fn line(text: &str) -> usize {
    1 + SOURCE.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn what_was_printed_before_an_abort_is_its_message() {
    let sandbox = Sandbox::new();
    sandbox.write("run.cc", SOURCE);
    let compile = "-std=c++20 -g -O0 -fno-exceptions -c run.cc -o run.o";
    let compilers = ["clang++-19", "clang++"];
    if !compiled(&sandbox, compilers, compile, "run.o -o run.wasm") {
        return;
    }
    let thrown = |what: &str, message: &str| {
        format!("aborted: {what} was thrown in -fno-exceptions mode with message \"{message}\", at")
    };
    let (at, called) = (line("prices.at"), line("sum += price("));
    let (key, number) = (line("names.at"), line("std::stoi"));
    let (aborts, checks) = (line("abort();"), line("check(i)"));
    for (argument, expected) in [
        (
            "v",
            format!(
                "{} run.cc:{at} in price, called from run.cc:{called}\n",
                thrown("out_of_range", "vector")
            ),
        ),
        (
            "m",
            format!(
                "{} run.cc:{key} in main\n",
                thrown("out_of_range", "map::at:  key not found")
            ),
        ),
        (
            "s",
            format!(
                "{} run.cc:{number} in main\n",
                thrown("invalid_argument", "stoi: no conversion")
            ),
        ),
        (
            "p",
            format!(
                "aborted after printing: bad number 3, at run.cc:{aborts} in check, \
                 called from run.cc:{checks}\n"
            ),
        ),
    ] {
        sandbox.run(&format!(
            "record --lens full -o {argument}.aft run.wasm {argument}"
        ));
        let told = sandbox.ok(&format!("why {argument}.aft --trap")).stdout;
        assert!(told.starts_with(&expected), "{told}{expected}");
    }

    // An origin in a library is reported at the line that called the library.
    let told = sandbox.ok("why m.aft --trap").stdout;
    let made = line("names = ");
    let origin = format!("\ncomes from the constant 0 at run.cc:{made} (__tree:");
    assert!(told.contains(&origin), "{told}");
    let last = told.lines().last().unwrap();
    let place = format!(" run.cc:{made} in main (__tree:");
    assert!(last.contains(&place) || told.contains(&place), "{told}");
    let all = sandbox.ok("why m.aft --trap --code all").stdout;
    assert!(all.contains(" at __tree:"), "{all}");
}

#[test]
fn a_message_of_the_library_that_was_not_printed_is_said_to_be_missing() {
    let sandbox = Sandbox::new();
    let source = "#include <cstdio>\n#include <vector>\n\
        int main(int argc, char **) {\n\
        std::vector<int> prices = {3, 5, 8};\n\
        fprintf(stderr, \"begun\\n\");\n\
        fclose(stderr);\n\
        return prices.at(2 + argc);\n}\n";
    sandbox.write("run.cc", source);
    let compile = "-std=c++20 -g -O0 -fno-exceptions -c run.cc -o run.o";
    let compilers = ["clang++-19", "clang++"];
    if !compiled(&sandbox, compilers, compile, "run.o -o run.wasm") {
        return;
    }
    sandbox.run("record -o run.aft run.wasm");
    let told = sandbox.ok("why run.aft").stdout;
    let expected = "aborted by libc++, which could not print its message, at run.cc:7 in main\n";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn an_abort_without_output_has_no_message() {
    let sandbox = Sandbox::new();
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        static void check(int n) { if (n > 2) abort(); }\n\
        int main(void) { fprintf(stderr, \"begun\\n\"); for (int n = 0; n < 5; n++) check(n); }\n";
    sandbox.write("run.c", source);
    let compilers = ["clang-19", "clang"];
    if !compiled(
        &sandbox,
        compilers,
        "-g -c run.c -o run.o",
        "run.o -o run.wasm",
    ) {
        return;
    }
    sandbox.run("record -o run.aft run.wasm");
    let told = sandbox.ok("why run.aft --trap").stdout;
    let expected = "aborted, at run.c:3 in check, called from run.c:4\n";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_panic_in_an_inlined_function_names_it_and_its_caller() {
    let sandbox = Sandbox::new();
    let source = "\
struct Inventory(Vec<u32>);

impl Inventory {
    #[inline(always)]
    fn value(&self, index: usize) -> u32 {
        self.0[index]
    }
}

fn main() {
    let all = Inventory(vec![7, 8]);
    let index = std::env::args().count() + 1;
    println!(\"{}\", all.value(index));
}
";
    sandbox.rust("app", source);
    sandbox.run("record -o app.aft app.wasm");
    let told = sandbox.ok("why app.aft").stdout;
    let first = told.lines().next().unwrap();
    let expected = "at app.rs:6 in app::Inventory::value, called from app.rs:13";
    assert!(first.contains(expected), "{told}");
}
