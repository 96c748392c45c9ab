//! Tests matches of versions whose correspondence is known by construction.

use std::collections::HashSet;

use afterimage_analyses::matching::{Sketched, match_runs, version};
use afterimage_ids::EntityRef;
use afterimage_testkit::versions::{Transformations, Version, versions};

use crate::common::Sandbox;
use crate::common::recorded::Recorded;

/// Records a version. Returns the recording and the exit code.
fn recording(version: &Version) -> (Recorded, Option<i32>) {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", &version.text);
    let ran = sandbox.run("record --lens paths -o run.aft a.wasm");
    (Recorded::open(&sandbox), ran.code)
}

/// Counts over statements of the second version whose operation the first version also performed.
#[derive(Default)]
struct Counted {
    all: usize,
    /// The number of statements whose match performs the operation.
    right: usize,
    /// The number of statements with a correct statement among their matches.
    found: usize,
    /// The total number of matches.
    matches: usize,
}

/// Matches two versions, and counts the results.
fn matched(seed: u64, transformations: Transformations) -> Counted {
    let both = versions(seed, transformations);
    let [(a, code_a), (b, code_b)] = [recording(&both[0]), recording(&both[1])];
    assert_eq!(
        code_a, code_b,
        "seed {seed}: the versions do not do the same"
    );
    let sketched = |of: &Recorded| version(of.run_from(None), of.file().log().unwrap()).unwrap();
    let (of_a, of_b) = (sketched(&a), sketched(&b));
    let logs = (|| a.file().log(), || b.file().log());
    let runs = [
        (a.run_from(None), &logs.0 as _),
        (b.run_from(None), &logs.1 as _),
    ];
    let found = match_runs([&of_a, &of_b], None, runs).unwrap().matching;
    let operation = |version: &Version, sketched: &Sketched, at: usize| {
        let place = sketched.places[at];
        let key = (place.function.as_u32(), place.op.index() as u32);
        version.operations.get(&key).copied()
    };
    let done: Vec<_> = (0..of_a.places.len())
        .map(|at| operation(&both[0], &of_a, at))
        .collect();
    let mut counted = Counted::default();
    for (at, own) in found.of_b.iter().enumerate() {
        let matches = Vec::from_iter(found.matches(at as u32));
        assert_eq!(own.map(|own| own.a), matches.first().map(|(a, _)| *a));
        assert!(
            matches
                .iter()
                .all(|(_, likely)| (0.0..=1.001).contains(likely))
        );
        let different: HashSet<u32> = matches.iter().map(|(a, _)| *a).collect();
        assert_eq!(different.len(), matches.len());
        assert!(matches.iter().skip(1).is_sorted_by(|x, y| x.1 >= y.1));
        let Some(id) = operation(&both[1], &of_b, at) else {
            continue;
        };
        if done.contains(&Some(id)) {
            let is_right = |(a, _): &(u32, f32)| done[*a as usize] == Some(id);
            counted.all += 1;
            counted.right += usize::from(matches.first().is_some_and(is_right));
            counted.found += usize::from(matches.iter().any(is_right));
            counted.matches += matches.len();
        }
    }
    counted
}

/// Returns the shares of correct and of found matches in per cent, and the number of matches per
/// statement, over some programs.
fn share(transformations: Transformations) -> (f64, f64, f64) {
    let seeds = std::env::var("AFTERIMAGE_TEST_SEEDS");
    let seeds = seeds.ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut sum = Counted::default();
    for seed in 0..seeds {
        let of_seed = matched(seed, transformations);
        assert!(
            of_seed.all > 20,
            "seed {seed}: only {} statements correspond",
            of_seed.all
        );
        sum.all += of_seed.all;
        sum.right += of_seed.right;
        sum.found += of_seed.found;
        sum.matches += of_seed.matches;
    }
    let share = |part: usize| 100.0 * part as f64 / sum.all as f64;
    let each = sum.matches as f64 / sum.all as f64;
    (share(sum.right), share(sum.found), each)
}

/// The maximum mean number of matches per statement.
const MATCHES: f64 = 1.4;

/// The limits are the measured values minus one per cent. A change to the matcher that loses more
/// is not an improvement.
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
        let (share, found, each) = share(transformations);
        println!("{name}: {share:.1} % right, {found:.1} % found with {each:.2} matches each");
        if share < least {
            failed.push(format!("{name}: {share:.1} %, not {least} %"));
        }
        // For half of the wrong matches, the correct statement is among the few other matches.
        if found < (100.0 + least) / 2.0 || each > MATCHES {
            failed.push(format!(
                "{name}: {found:.1} % found with {each:.2} matches each"
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("; "));
}
