//! Whatever a program does and however it ends, the path that is built of it holds: `verify` finds nothing, and exports have
//! every block.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};

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

/// For each caller (or `[host]`) and callee, the number of calls and the blocks that are executed in them.
type Calls = BTreeMap<(String, String), (u64, u64)>;

/// Reads a file in Callgrind's format: the sum of all self costs, and the calls.
fn callgrind(text: &str) -> (u64, Calls) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let (mut own, mut calls) = (0, Calls::new());
    let (mut caller, mut callee) = (String::new(), String::new());
    let mut count = None;
    for line in text.lines() {
        if let Some((key @ ("fn" | "cfn"), name)) = line.split_once('=') {
            let (id, text) = name.split_once(' ').unwrap_or((name, ""));
            let name = names.entry(id.to_owned()).or_insert(text.to_owned());
            assert!(!name.is_empty(), "{line}");
            *(if key == "fn" {
                &mut caller
            } else {
                &mut callee
            }) = name.clone();
        } else if let Some(calls) = line.strip_prefix("calls=") {
            count = Some(calls.split(' ').next().unwrap().parse::<u64>().unwrap());
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let cost: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            match count.take() {
                None => own += cost,
                Some(count) => {
                    let known = calls.insert((caller.clone(), callee.clone()), (count, cost));
                    assert_eq!(known, None, "{line}");
                }
            }
        }
    }
    (own, calls)
}

/// The stacks of a file of speedscope.
fn speedscope(text: &str) -> BTreeMap<String, u64> {
    let file: Value = serde_json::from_str(text).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profile = &file["profiles"][0];
    let samples = profile["samples"].as_array().unwrap();
    let weights = profile["weights"].as_array().unwrap();
    assert_eq!(samples.len(), weights.len());
    let mut stacks = BTreeMap::new();
    let mut all = 0;
    for (sample, weight) in samples.iter().zip(weights) {
        let name = |frame: &Value| {
            frames[frame.as_u64().unwrap() as usize]["name"]
                .as_str()
                .unwrap()
        };
        let names = sample.as_array().unwrap().iter().map(name);
        let blocks = weight.as_u64().unwrap();
        *stacks.entry(Vec::from_iter(names).join(";")).or_default() += blocks;
        all += blocks;
    }
    assert_eq!(profile["endValue"].as_u64(), Some(all));
    stacks
}

/// The fields of a message of Protocol Buffers: numbers, and bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let number = varint(&mut bytes);
        let content = match tag & 7 {
            0 => &bytes[..0],
            2 => {
                let (content, rest) = bytes.split_at(number as usize);
                bytes = rest;
                content
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, number, content));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// The stacks of `run.pb.gz`.
fn pprof(sandbox: &Sandbox) -> BTreeMap<String, u64> {
    let unpacked = sandbox
        .any("gzip")
        .args(["-dc", "run.pb.gz"])
        .output()
        .unwrap();
    let bytes = unpacked.stdout;
    let profile = fields(&bytes);
    let of = |number: u64| {
        profile
            .iter()
            .filter(move |field| field.0 == number)
            .map(|field| field.2)
    };
    let strings = Vec::from_iter(of(6).map(|text| std::str::from_utf8(text).unwrap()));
    let field = |message: &[u8], number: u64| {
        let found = fields(message).into_iter().find(|field| field.0 == number);
        found.map_or(0, |field| field.1)
    };
    let functions =
        of(5).map(|function| (field(function, 1), strings[field(function, 2) as usize]));
    let functions = BTreeMap::from_iter(functions);
    let named = |location: &[u8]| {
        let lines = fields(location)
            .into_iter()
            .find(|field| field.0 == 4)
            .unwrap()
            .2
            .to_vec();
        (field(location, 1), functions[&field(&lines, 1)])
    };
    let locations = BTreeMap::from_iter(of(4).map(named));
    let mut stacks = BTreeMap::new();
    for sample in of(2) {
        let packed = |number: u64| {
            let fields = fields(sample);
            let mut content = fields.iter().find(|field| field.0 == number).unwrap().2;
            let mut numbers = Vec::new();
            while !content.is_empty() {
                numbers.push(varint(&mut content));
            }
            numbers
        };
        // The innermost is first.
        let names = packed(1).into_iter().rev().map(|id| locations[&id]);
        *stacks.entry(Vec::from_iter(names).join(";")).or_default() += packed(2)[0];
    }
    stacks
}

/// Adds up the same calls, one by one.
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
        let (count, all) = calls.entry(pair).or_default();
        (*count, *all) = (*count + 1, *all + blocks);
        open.push(name);
    }
    calls
}

/// Every export of the recording stands for so many blocks.
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

        // The same stacks in other forms.
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
