//! Matches are right where it is known by construction what corresponds.

mod common;
#[path = "common/recorded.rs"]
mod recorded;

use afterimage_ids::EntityRef;
use afterimage_query::matching::{Sketched, match_runs, version};
use afterimage_testkit::versions::{Transformations, Version, versions};
use common::Sandbox;
use recorded::Recorded;

/// A version, recorded; and how it ended.
fn recording(version: &Version) -> (Recorded, Option<i32>) {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", &version.text);
    let ran = sandbox.run("record --lens paths -o run.aft a.wasm");
    (Recorded::open(&sandbox), ran.code)
}

/// How many statements of the second version do an operation that the first did, too, and how many are matched with one that does it.
fn matched(seed: u64, transformations: Transformations) -> (usize, usize) {
    let both = versions(seed, transformations);
    let [(a, code_a), (b, code_b)] = [recording(&both[0]), recording(&both[1])];
    assert_eq!(
        code_a, code_b,
        "seed {seed}: the versions do not do the same"
    );
    let sketched = |of: &Recorded| version(of.run(None), of.file.log().unwrap()).unwrap();
    let (of_a, of_b) = (sketched(&a), sketched(&b));
    let logs = (|| a.file.log(), || b.file.log());
    let runs = [(a.run(None), &logs.0 as _), (b.run(None), &logs.1 as _)];
    let found = match_runs([&of_a, &of_b], None, runs).unwrap().matching;
    let operation = |version: &Version, sketched: &Sketched, at: usize| {
        let place = sketched.places[at];
        let key = (place.function.as_u32(), place.op.index() as u32);
        version.operations.get(&key).copied()
    };
    let done: Vec<_> = (0..of_a.places.len())
        .map(|at| operation(&both[0], &of_a, at))
        .collect();
    let (mut all, mut right) = (0, 0);
    for (at, found) in found.of_b.iter().enumerate() {
        let Some(id) = operation(&both[1], &of_b, at) else {
            continue;
        };
        if done.contains(&Some(id)) {
            all += 1;
            right += usize::from(
                found
                    .as_ref()
                    .is_some_and(|m| done[m.a as usize] == Some(id)),
            );
        }
    }
    (all, right)
}

/// The share of what is right, in hundredths, of some programs.
fn share(transformations: Transformations) -> f64 {
    let seeds = std::env::var("AFTERIMAGE_TEST_SEEDS");
    let seeds = seeds.ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let (mut all, mut right) = (0, 0);
    for seed in 0..seeds {
        let (of_seed, right_of_seed) = matched(seed, transformations);
        assert!(
            of_seed > 20,
            "seed {seed}: only {of_seed} statements correspond"
        );
        all += of_seed;
        right += right_of_seed;
    }
    100.0 * right as f64 / all as f64
}

/// What was measured, less one in a hundred: a change of the matcher that loses more than that is no improvement.
#[test]
fn each_transformation_is_seen_through() {
    let none = Transformations::default();
    let cases = [
        ("variables in locals", none, 98.7),
        (
            "inlining",
            Transformations {
                inline: true,
                ..none
            },
            98.7,
        ),
        (
            "unrolling",
            Transformations {
                unroll: true,
                ..none
            },
            92.5,
        ),
        (
            "constant propagation",
            Transformations {
                propagate: true,
                ..none
            },
            98.6,
        ),
        (
            "strength reduction",
            Transformations {
                reduce: true,
                ..none
            },
            98.7,
        ),
        ("dead code", Transformations { dead: true, ..none }, 98.7),
        (
            "reordering",
            Transformations {
                reorder: true,
                ..none
            },
            98.7,
        ),
        ("all", Transformations::ALL, 88.8),
    ];
    let mut failed = Vec::new();
    for (name, transformations, least) in cases {
        let share = share(transformations);
        println!("{name}: {share:.1} % right");
        if share < least {
            failed.push(format!("{name}: {share:.1} %, not {least} %"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("; "));
}
