//! Containers of the standard libraries of C++ and Rust are shown as what the programs themselves print of them.

use std::collections::BTreeMap;

use afterimage_testkit::tools::{installed, skipped};
use serde_json::Value;

use crate::common::{Sandbox, ran};

/// Shows containers that grow and shrink, as `state` shows them, each time before it calls `stop`.
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

/// What a program printed, round by round: names and texts.
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

/// The recording `run.aft` of a program whose source is `source`: at the line that says `here`, variables are what was printed.
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
    // In two steps, so that nothing is done to the module after the link.
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
    // Before they are made, and damaged, they say so, or are empty.
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
        "round     = { 1, <damaged, or not yet made: its links lead round in a circle> }",
        "backwards = { <damaged, or not yet made: its end is before its beginning> }",
        "cut       = { 1 = 2, <damaged, or not yet made: a link leads to nothing> }",
    ] {
        assert!(damaged.contains(text), "{damaged}");
    }
}

#[test]
fn containers_of_rust_are_what_the_program_prints() {
    let sandbox = Sandbox::new();
    sandbox.rust("run", RUST);
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert!(compare(&sandbox, "run.rs", &printed) > 80);
}
