//! Containers of the standard libraries of C++ and Rust are shown as the programs themselves print
//! them.

use std::collections::BTreeMap;

use afterimage_testkit::tools::{installed, skipped};
use serde_json::Value;

use crate::common::{Sandbox, ran};

/// A program with containers that grow and shrink. It prints them as `state` shows them, each time
/// before it calls `stop`.
const CPP: &str = r#"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct Point { int x, y; };

static std::string text(int n) { return std::to_string(n); }
static std::string text(const std::string &s) { return '"' + s + '"'; }
static std::string text(const Point &p) { return "{ x = " + text(p.x) + ", y = " + text(p.y) + " }"; }
template <class K, class V> static std::string text(const std::pair<const K, V> &p) { return text(p.first) + " = " + text(p.second); }

template <class C> static std::string all(const C &c)
{
    std::string found;
    size_t shown = 0;
    for (const auto &one : c) {
        if (shown == 32)
            return "{ " + found + ", … " + std::to_string(c.size() - 32) + " more }";
        found += (shown++ ? ", " : "") + text(one);
    }
    return shown ? "{ " + found + " }" : "{}";
}

static void say(const char *name, const std::string &text) { printf("%s: %s\n", name, text.c_str()); }
__attribute__((noinline)) static void stop() { asm volatile(""); }

int main()
{
    std::string word;
    std::vector<int> numbers;
    std::vector<std::string> words;
    std::vector<Point> points;
    std::map<std::string, int> map;
    std::multimap<int, int> multimap;
    std::set<int> set;
    std::unordered_map<int, std::string> hashed;
    std::list<int> list;
    std::deque<int> deque;
    std::optional<int> maybe;
    std::array<int, 3> array{};
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < round * round / 2; i++) {
            int n = (i * 37 + round * 11) % 101;
            word += static_cast<char>('a' + n % 26);
            numbers.push_back(n);
            words.push_back(std::string(n % 17, 'x'));
            points.push_back({n, -n});
            map[std::to_string(n % 50)] = i;
            map.erase(std::to_string(i));
            multimap.insert({n % 5, i});
            set.insert(n);
            set.erase(n / 2);
            hashed[n] = words.back();
            list.push_front(n);
            deque.push_back(n);
            if (i % 3 == 0)
                deque.pop_front();
        }
        if (round % 4 == 3) {
            word.clear();
            numbers.erase(numbers.begin(), numbers.begin() + numbers.size() / 2);
            points.clear();
            list.clear();
        }
        maybe = round % 2 ? std::optional<int>(round) : std::nullopt;
        array[round % 3] = round;
        std::string_view view = std::string_view(word).substr(word.size() / 2);
        std::unique_ptr<Point> owned = round % 3 ? std::make_unique<Point>(Point{round, 2}) : nullptr;
        std::shared_ptr<int> shared = std::make_shared<int>(round * 3);
        printf("round\n");
        say("word", word.size() > 128 ? "" : text(word));
        say("numbers", all(numbers));
        say("words", all(words));
        say("points", all(points));
        say("map", all(map));
        say("multimap", all(multimap));
        say("set", all(set));
        say("hashed", all(hashed));
        say("list", all(list));
        say("deque", all(deque));
        say("maybe", maybe ? text(*maybe) : "nullopt");
        say("array", all(array));
        say("view", view.size() > 128 ? "" : text(std::string(view)));
        char at[32];
        snprintf(at, sizeof at, "0x%lx -> ", (unsigned long)owned.get());
        say("owned", owned ? at + text(*owned) : "nullptr");
        snprintf(at, sizeof at, "0x%lx -> ", (unsigned long)shared.get());
        say("shared", at + text(*shared));
        stop(); // here
    }
    std::list<int> round{1, 2, 3};
    void **node = reinterpret_cast<void ***>(&round)[1];
    node[1] = node;
    std::vector<int> backwards{1, 2};
    reinterpret_cast<int **>(&backwards)[1] -= 3;
    std::map<int, int> cut{{1, 2}, {3, 4}};
    void **first = *reinterpret_cast<void ***>(&cut);
    first[1] = nullptr;
    stop(); // there
    fflush(stdout);
    // Nobody may free these.
    _Exit(0);
}
"#;

const RUST: &str = r#"
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::rc::Rc;

fn all(shown: impl Iterator<Item = String>, count: usize) -> String {
    let found: Vec<String> = shown.take(32).collect();
    match count {
        0 => "{}".into(),
        33.. => format!("{{ {}, … {} more }}", found.join(", "), count - 32),
        _ => format!("{{ {} }}", found.join(", ")),
    }
}

fn pairs<'a, K: Debug + 'a, V: Debug + 'a>(all: impl Iterator<Item = (&'a K, &'a V)>) -> impl Iterator<Item = String> {
    all.map(|(key, value)| format!("{key:?} = {value:?}"))
}

fn keys<'a, K: Debug + 'a>(all: impl Iterator<Item = &'a K>) -> impl Iterator<Item = String> {
    all.map(|key| format!("{key:?}"))
}

#[inline(never)]
fn stop() {}

fn main() {
    let mut hash_map: HashMap<String, i32> = HashMap::new();
    let mut hash_set: HashSet<u64> = HashSet::new();
    let mut tree_map: BTreeMap<u16, String> = BTreeMap::new();
    let mut tree_set: BTreeSet<i8> = BTreeSet::new();
    let mut vector: Vec<i32> = Vec::new();
    let mut ring: VecDeque<i32> = VecDeque::new();
    for round in 0..12i32 {
        for i in 0..round * round * 2 {
            let n = (i * 37 + round * 11) % 1009;
            hash_map.insert((n % 50).to_string(), i);
            hash_map.remove(&i.to_string());
            hash_set.insert(n as u64 % 40);
            tree_map.insert(n as u16, "v".repeat(n as usize % 5));
            tree_map.remove(&(i as u16 * 3));
            tree_set.insert(n as i8);
            vector.push(n);
            ring.push_back(n);
            if i % 3 == 0 {
                ring.pop_front();
            }
        }
        let shared = Rc::new(round);
        println!("round");
        println!("hash_map: {}", all(pairs(hash_map.iter()), hash_map.len()));
        println!("hash_set: {}", all(keys(hash_set.iter()), hash_set.len()));
        println!("tree_map: {}", all(pairs(tree_map.iter()), tree_map.len()));
        println!("tree_set: {}", all(keys(tree_set.iter()), tree_set.len()));
        println!("vector: {}", all(keys(vector.iter()), vector.len()));
        println!("ring: {}", all(keys(ring.iter()), ring.len()));
        println!("shared: 0x{:x} -> {shared}", Rc::as_ptr(&shared) as usize);
        stop(); // here
    }
}
"#;

/// Parses a program's output, round by round: names and texts.
fn rounds(printed: &str) -> Vec<BTreeMap<String, String>> {
    let mut rounds: Vec<BTreeMap<_, _>> = Vec::new();
    for line in printed.lines() {
        match (line.split_once(": "), rounds.last_mut()) {
            (Some((name, text)), Some(round)) => {
                round.insert(name.to_owned(), text.to_owned());
            }
            _ => rounds.push(BTreeMap::new()),
        }
    }
    rounds
}

/// Checks the recording `run.aft` of a program with this `source`: at the line containing `here`,
/// variables have the printed values.
fn compare(sandbox: &Sandbox, source: &str, printed: &str) -> usize {
    let text = String::from_utf8(sandbox.read(source)).unwrap();
    let here = text
        .lines()
        .position(|line| line.contains("// here"))
        .unwrap()
        + 1;
    let mut compared = 0;
    for (number, round) in (1..).zip(rounds(printed)) {
        let told = sandbox.ok(&format!(
            "state run.aft --at {source}:{here}#{number} --depth 1 --format json"
        ));
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        let variables = told["frames"][0]["variables"].as_array().unwrap();
        for (name, expected) in round.iter().filter(|(_, text)| !text.is_empty()) {
            let found = variables.iter().find(|one| one["name"] == **name);
            let found = found.unwrap_or_else(|| panic!("{name}: {told:#}"));
            assert_eq!(
                found["value"].as_str(),
                Some(&**expected),
                "{name}, round {number}: {found:#}"
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn containers_of_cpp_are_what_the_program_prints() {
    let sandbox = Sandbox::new();
    let Some(clang) = ["clang++-19", "clang++"]
        .into_iter()
        .find(|name| installed(name))
    else {
        return skipped("containers of C++: no clang++");
    };
    sandbox.write("run.cpp", CPP);
    // Compile and link in two steps, so that no tool changes the module after linking.
    for options in [
        "-std=c++20 -g -O0 -fno-exceptions -c run.cpp -o run.o",
        "run.o -o run.wasm",
    ] {
        let made = ran(sandbox
            .any(clang)
            .arg("--target=wasm32-wasi")
            .args(options.split(' ')));
        if made.code != Some(0) {
            return skipped(
                "containers of C++: clang++ has no C++ library for WebAssembly here (libc++-19-dev-wasm32)",
            );
        }
    }
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert!(compare(&sandbox, "run.cpp", &printed) > 150);
    // Before the containers are made, and when they are damaged, they are empty or reported as
    // damaged.
    let early = sandbox.ok("state run.aft --at main+0 --depth 1").stdout;
    assert!(early.contains(" numbers "), "{early}");
    let here = CPP
        .lines()
        .position(|line| line.contains("// here"))
        .unwrap()
        + 1;
    let at = format!("values run.aft --at run.cpp:{here}#6 --var numbers[1]");
    let numbers = &rounds(&printed)[5]["numbers"];
    let second = numbers.split(", ").nth(1).unwrap();
    let told = sandbox.ok(&at).stdout;
    assert!(
        told.trim_end().ends_with(&format!(" {second}")),
        "{told}{numbers}"
    );
    let there = CPP
        .lines()
        .position(|line| line.contains("// there"))
        .unwrap()
        + 1;
    let damaged = sandbox
        .ok(&format!("state run.aft --at run.cpp:{there} --depth 1"))
        .stdout;
    for text in [
        "round     = { 1, <damaged, or not yet initialised: its links form a cycle> }",
        "backwards = { <damaged, or not yet initialised: its end is before its beginning> }",
        "cut       = { 1 = 2, <damaged, or not yet initialised: a link is invalid> }",
    ] {
        assert!(damaged.contains(text), "{damaged}");
    }
}

/// Compiles a C or C++ program to `run.wasm`. Without a compiler or its library, reports that and
/// returns `false`.
pub fn compiled(sandbox: &Sandbox, compilers: [&str; 2], compile: &str, link: &str) -> bool {
    let Some(clang) = compilers.into_iter().find(|name| installed(name)) else {
        skipped(&format!("containers: no {}", compilers[1]));
        return false;
    };
    // Compile and link in two steps, so that no tool changes the module after linking.
    [compile, link].into_iter().all(|options| {
        let made = ran(sandbox
            .any(clang)
            .arg("--target=wasm32-wasi")
            .args(options.split(' ')));
        if made.code != Some(0) {
            skipped(&format!("containers: {clang} {options}: {}", made.stderr));
        }
        made.code == Some(0)
    })
}

/// Checks what `state` reports about damaged variables, at the line containing `there`.
fn damaged(sandbox: &Sandbox, source: &str, expected: &[&str]) {
    let text = String::from_utf8(sandbox.read(source)).unwrap();
    let there = text.lines().position(|line| line.contains("// there"));
    let there = there.unwrap() + 1;
    let shown = sandbox
        .ok(&format!("state run.aft --at {source}:{there} --depth 1"))
        .stdout;
    let shown = Vec::from_iter(shown.lines().map(str::trim));
    for text in expected {
        let (name, value) = text.split_once(" = ").unwrap();
        let is_it = |line: &&str| {
            let found = line.split_once('=');
            found.is_some_and(|(own, found)| {
                let (first, last) = value.split_once('…').unwrap_or((value, ""));
                own.trim() == name
                    && found.trim_start().starts_with(first)
                    && (last.is_empty() || found.contains(last))
            })
        };
        assert!(shown.iter().any(is_it), "{text}\n{shown:#?}");
    }
}

#[test]
fn what_else_libcxx_has_is_what_the_program_prints() {
    let sandbox = Sandbox::new();
    sandbox.write("run.cpp", include_str!("containers_hold/held.cpp"));
    let compile = "-std=c++20 -g -O0 -fno-exceptions -c run.cpp -o run.o";
    if !compiled(
        &sandbox,
        ["clang++-19", "clang++"],
        compile,
        "run.o -o run.wasm",
    ) {
        return;
    }
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert!(compare(&sandbox, "run.cpp", &printed) > 200);
    damaged(
        &sandbox,
        "run.cpp",
        &[
            "lost_bits = { <damaged, or not yet initialised: its elements are outside memory> }",
            "no_alternative = { <damaged, or not yet initialised: its index selects no alternative> }",
            "valueless = valueless",
            "round = { 1, <damaged, or not yet initialised: its links form a cycle> }",
            "cut = { 3, <damaged, or not yet initialised: a link is invalid> }",
            "lost_text = { <damaged, or not yet initialised: its text is outside memory> }",
            "lost_owner = { <damaged, or not yet initialised: it has no count of its owners> }",
            "lost_function = { <damaged, or not yet initialised: its flag is neither true nor false> }",
            "lost_span = { <damaged, or not yet initialised: its elements are outside memory> }",
        ],
    );
}

#[test]
fn what_else_rust_has_is_what_the_program_prints() {
    let sandbox = Sandbox::new();
    sandbox.rust("run", include_str!("containers_hold/held.rs"));
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert!(compare(&sandbox, "run.rs", &printed) > 300);
    damaged(
        &sandbox,
        "run.rs",
        &[
            "endless = { 1, <damaged, or not yet initialised: its links form a cycle> }",
            "unowned = { <damaged, or not yet initialised: it has no owner> }",
            "odd = { <damaged, or not yet initialised: it has more nanoseconds than a second> }",
            "neither = { <damaged, or not yet initialised: it is neither true nor false> }",
            "lost = { <damaged, or not yet initialised: its elements are outside memory> }",
            // This is a function item, which the debug information describes as a pointer.
            "mapped = { iter = { … f = <it has no bytes> }",
            // There is no table of methods at this address.
            "headless = { pointer = 0x10, vtable = 0x10",
        ],
    );
}

#[test]
fn numbers_of_seldom_types_are_what_the_program_prints() {
    let sandbox = Sandbox::new();
    sandbox.write("run.c", include_str!("containers_hold/numbers.c"));
    let link = "run.o -lc-printscan-long-double -o run.wasm";
    if !compiled(
        &sandbox,
        ["clang-19", "clang"],
        "-g -O0 -c run.c -o run.o",
        link,
    ) {
        return;
    }
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert!(compare(&sandbox, "run.c", &printed) > 80);
}

/// A condition's counts must agree with the program's output.
#[test]
fn conditions_look_into_containers() {
    let sandbox = Sandbox::new();
    sandbox.write("run.cpp", CPP);
    let compile = "-std=c++20 -g -O0 -fno-exceptions -c run.cpp -o run.o";
    if !compiled(
        &sandbox,
        ["clang++-19", "clang++"],
        compile,
        "run.o -o run.wasm",
    ) {
        return;
    }
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    let rounds = rounds(&printed);
    let here = CPP.lines().position(|line| line.contains("// here"));
    let here = here.unwrap() + 1;
    let inside = |round: &BTreeMap<String, String>, name: &str| -> Vec<String> {
        let text = round[name].trim_matches(['{', '}', ' ']).to_owned();
        let all = text.split(", ").filter(|one| !one.is_empty());
        all.map(str::to_owned).collect()
    };
    let entry = |round: &BTreeMap<String, String>, name: &str, key: &str| -> Option<i64> {
        let pairs = inside(round, name).into_iter();
        let mut pairs = pairs.filter_map(|one| {
            Some(one.split_once(" = ")?.1.parse().ok())
                .filter(|_| one.starts_with(&format!("{key} = ")))
        });
        pairs.next().flatten()
    };
    type Expected<'e> = Box<dyn Fn(&BTreeMap<String, String>) -> bool + 'e>;
    let conditions: [(&str, Expected<'_>); 11] = [
        (
            "numbers.size > 9",
            Box::new(|round| inside(round, "numbers").len() > 9),
        ),
        (
            "numbers[1] > 50",
            Box::new(|round| {
                inside(round, "numbers")
                    .get(1)
                    .is_some_and(|one| one.parse::<i64>().unwrap() > 50)
            }),
        ),
        (
            "list[0] > 50",
            Box::new(|round| {
                inside(round, "list")
                    .first()
                    .is_some_and(|one| one.parse::<i64>().unwrap() > 50)
            }),
        ),
        (
            "set.size == 6",
            Box::new(|round| inside(round, "set").len() == 6),
        ),
        (
            "map[\"15\"] > 2",
            Box::new(|round| entry(round, "map", "\"15\"").is_some_and(|one| one > 2)),
        ),
        ("*maybe == 3", Box::new(|round| round["maybe"] == "3")),
        ("maybe == 5", Box::new(|round| round["maybe"] == "5")),
        (
            "*shared > 9",
            Box::new(|round| {
                round["shared"]
                    .split_once("-> ")
                    .unwrap()
                    .1
                    .parse::<i64>()
                    .unwrap()
                    > 9
            }),
        ),
        (
            "owned->x == 4",
            Box::new(|round| round["owned"].contains("x = 4,")),
        ),
        (
            "array[1] == 4",
            Box::new(|round| inside(round, "array")[1] == "4"),
        ),
        (
            "word == \"sdrcnbma\"",
            Box::new(|round| round["word"] == "\"sdrcnbma\""),
        ),
    ];
    for (condition, expected) in conditions {
        let told = sandbox.ok(&format!(
            "values run.aft --at run.cpp:{here} --where {} --format json --limit 99",
            condition.replace(' ', "")
        ));
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        let held = rounds.iter().filter(|round| expected(round)).count();
        assert_eq!(told["holds"], held, "{condition}: {told:#}");
        assert!(held > 0, "{condition}");
    }
}

#[test]
fn containers_of_rust_are_what_the_program_prints() {
    let sandbox = Sandbox::new();
    sandbox.rust("run", RUST);
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert!(compare(&sandbox, "run.rs", &printed) > 80);
}
