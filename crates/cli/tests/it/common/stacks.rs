//! Reads the formats with stacks and calls.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Sandbox;

/// For each caller (or `[host]`) and callee, the number of calls, and the number of blocks executed
/// in these calls.
pub type Calls = BTreeMap<(String, String), (u64, u64)>;

/// Reads a file in Callgrind's format: the sum of all self costs, and the calls.
pub fn callgrind(text: &str) -> (u64, Calls) {
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
                    // An inlined function and a called function with the same name are different.
                    let pair = (caller.clone(), callee.clone());
                    let (calls, blocks) = calls.entry(pair).or_default();
                    (*calls, *blocks) = (*calls + count, *blocks + cost);
                }
            }
        }
    }
    (own, calls)
}

/// Reads, from a file in Callgrind's format, the blocks that each function executes itself, by file
/// and line.
pub fn callgrind_lines(text: &str) -> BTreeMap<(String, String, u64), u64> {
    let mut names: [BTreeMap<String, String>; 2] = Default::default();
    let mut named = |kind: usize, name: &str| {
        let (id, text) = name.split_once(' ').unwrap_or((name, ""));
        let name = names[kind].entry(id.to_owned()).or_insert(text.to_owned());
        name.clone()
    };
    let (mut function, mut file) = (String::new(), String::new());
    let (mut is_call, mut lines) = (false, BTreeMap::new());
    for line in text.lines() {
        match line.split_once('=') {
            Some(("fn", name)) => function = named(0, name),
            Some(("cfn", name)) => drop(named(0, name)),
            Some(("fl" | "fi" | "fe", name)) => file = named(1, name),
            Some(("cfi", name)) => drop(named(1, name)),
            Some(("calls", _)) => is_call = true,
            _ if line.starts_with(|c: char| c.is_ascii_digit()) && !is_call => {
                let (line, cost) = line.split_once(' ').unwrap();
                let place = (function.clone(), file.clone(), line.parse().unwrap());
                let sum: &mut u64 = lines.entry(place).or_default();
                *sum += cost.parse::<u64>().unwrap();
            }
            _ => is_call = false,
        }
    }
    lines
}

/// Reads the stacks from a file for speedscope.
pub fn speedscope(text: &str) -> BTreeMap<String, u64> {
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
        let names = names.map(|name| name.replace(';', ":"));
        let blocks = weight.as_u64().unwrap();
        *stacks.entry(Vec::from_iter(names).join(";")).or_default() += blocks;
        all += blocks;
    }
    assert_eq!(profile["endValue"].as_u64(), Some(all));
    stacks
}

/// Parses the fields of a Protocol Buffers message: numbers, and bytes.
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

/// Reads the stacks from `run.pb.gz`.
pub fn pprof(sandbox: &Sandbox) -> BTreeMap<String, u64> {
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
    // Inlined functions are lines of a location, the innermost first.
    let named = |location: &[u8]| {
        let lines = fields(location).into_iter().filter(|field| field.0 == 4);
        let names = lines.map(|line| functions[&field(line.2, 1)].replace(';', ":"));
        let mut names = Vec::from_iter(names);
        names.reverse();
        (field(location, 1), names.join(";"))
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
        // The innermost frame comes first.
        let names = packed(1).into_iter().rev().map(|id| &*locations[&id]);
        *stacks.entry(Vec::from_iter(names).join(";")).or_default() += packed(2)[0];
    }
    stacks
}
