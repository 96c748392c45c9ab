//! Whatever a program does and however it ends, its path is correct: `verify` finds no fault, and
//! exports contain every block.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::stacks::{Calls, callgrind, pprof, speedscope};

#[test]
fn paths_of_generated_programs_hold() {
    let mut compared = 0;
    each_recording(seeds(10), 4, "paths", |sandbox| {
        sandbox.ok("profile run.aft");
        let verified = sandbox.ok("verify --format json run.aft");
        let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
        let path = &verified["path"];
        assert_eq!(verified["findings"], Value::Array(vec![]));
        assert!(path["counts"] == true && path["end"] == true, "{verified}");
        let blocks = path["blocks"].as_u64().unwrap();
        if blocks > 0 {
            assert_exports_have(sandbox, blocks);
            compared += 1;
        }
    });
    assert!(
        compared > seeds(10),
        "few runs executed anything: {compared}"
    );
}

/// Adds up the calls of the trace, one by one. A call inside another call to the same function
/// costs nothing.
fn calls_of_the_trace(sandbox: &Sandbox) -> Calls {
    let words = "trace run.aft --level call --depth 1000000 --limit all --format json";
    let told = sandbox.ok(words).stdout;
    let mut open = vec!["[host]".to_owned()];
    let mut calls = Calls::new();
    for line in told.lines().skip(1) {
        let row: Value = serde_json::from_str(line).unwrap();
        let (Some(depth), Some(blocks)) = (row["depth"].as_u64(), row["blocks"].as_u64()) else {
            continue;
        };
        open.truncate(depth as usize + 1);
        let name = row["function"]["name"].as_str().unwrap().to_owned();
        let pair = (open.last().unwrap().clone(), name.clone());
        let cost = if open.contains(&name) { 0 } else { blocks };
        let (count, all) = calls.entry(pair).or_default();
        (*count, *all) = (*count + 1, *all + cost);
        open.push(name);
    }
    calls
}

/// Checks that every export of the recording represents this number of blocks.
fn assert_exports_have(sandbox: &Sandbox, blocks: u64) {
    for limits in ["", " --min 20 --depth 3", " --min 0 --depth 1000000"] {
        let export = |format| {
            sandbox
                .ok(&format!("export run.aft --format {format}{limits}"))
                .stdout
        };
        let lines = export("collapsed");
        let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(lines.lines().map(weight).sum::<u64>(), blocks);

        // Compare the same stacks in other formats.
        let mut stacks = BTreeMap::<String, u64>::new();
        for line in lines.lines() {
            let (stack, blocks) = line.rsplit_once(' ').unwrap();
            *stacks.entry(stack.to_owned()).or_default() += blocks.parse::<u64>().unwrap();
        }
        assert_eq!(speedscope(&export("speedscope")), stacks);
        sandbox.ok(&format!(
            "export run.aft --format pprof{limits} -o run.pb.gz"
        ));
        assert_eq!(pprof(sandbox), stacks);

        let (own, calls) = callgrind(&export("callgrind"));
        assert_eq!(own, blocks);
        if limits.ends_with("1000000") {
            assert_eq!(calls, calls_of_the_trace(sandbox));
        }

        let firefox: Value = serde_json::from_str(&export("firefox")).unwrap();
        let samples = &firefox["threads"][0]["samples"];
        let weights = samples["weight"].as_array().unwrap();
        assert_eq!(
            weights.iter().map(|w| w.as_u64().unwrap()).sum::<u64>(),
            blocks
        );
        let length = samples["length"].as_u64().unwrap() as usize;
        for column in ["stack", "time", "weight"] {
            assert_eq!(samples[column].as_array().unwrap().len(), length);
        }
        for (table, columns) in firefox["shared"].as_object().unwrap() {
            let Some(columns) = columns.as_object() else {
                continue;
            };
            for (column, values) in columns.iter().filter(|(column, _)| *column != "length") {
                let length = values.as_array().unwrap().len();
                assert_eq!(
                    columns["length"].as_u64(),
                    Some(length as u64),
                    "{table}.{column}"
                );
            }
        }

        let perfetto: Value = serde_json::from_str(&export("perfetto")).unwrap();
        let (mut open, mut outermost) = (Vec::new(), 0);
        for event in perfetto["traceEvents"].as_array().unwrap() {
            let at = event["ts"].as_u64();
            match event["ph"].as_str().unwrap() {
                "B" => open.push(at.unwrap()),
                "E" => {
                    let begun = open.pop().unwrap();
                    outermost += if open.is_empty() {
                        at.unwrap() - begun
                    } else {
                        0
                    };
                }
                "X" if open.is_empty() => outermost += event["args"]["blocks"].as_u64().unwrap(),
                _ => {}
            }
        }
        assert!(open.is_empty());
        assert_eq!(outermost, blocks, "{limits}");
    }
}
