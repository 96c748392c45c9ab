//! Reads other tools' formats back: with parsers written here, and with the tools themselves if
//! they are installed.

use std::collections::BTreeMap;
use std::io::Read;

use crate::common::{Ending, TEXT, with_profile};
use afterimage_ids::FuncId;
use afterimage_present::export::{callgrind, lcov, pprof};
use afterimage_present::{NoSources, calls_dot, cfg_dot};
use afterimage_profile::{Profile, Scope};
use afterimage_testkit::tools::{self, installed};

fn both_endings(check: impl Fn(&Profile<'_>)) {
    with_profile(true, Ending::Return, &check);
    with_profile(true, Ending::Trap, &check);
}

#[test]
fn lcov_holds_the_counts_of_all_lines_and_functions() {
    both_endings(|profile| {
        let mut out = Vec::new();
        lcov(&mut out, profile, &Scope::All, None, &NoSources).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (mut file, mut lines, mut entries) = ("", Vec::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(path) = line.strip_prefix("SF:") {
                file = path;
            } else if let Some(rest) = line.strip_prefix("DA:") {
                let (number, count) = rest.split_once(',').unwrap();
                lines.push((file, number.parse().unwrap(), count.parse().unwrap()));
            } else if let Some(rest) = line.strip_prefix("FNDA:") {
                let (count, name) = rest.split_once(',').unwrap();
                entries.insert(name, count.parse::<u64>().unwrap());
            }
        }
        let rows = profile.line_rows(&Scope::All).unwrap();
        let expected: Vec<_> = rows
            .iter()
            .map(|r| (profile.file(r.line.file), r.line.number, r.count))
            .collect();
        assert_eq!(lines, expected);
        for row in profile.function_rows(&Scope::All).unwrap() {
            assert_eq!(entries[profile.names().function(row.function)], row.entries);
        }
    });
}

#[test]
fn genhtml_accepts_the_tracefile() {
    if !installed("genhtml") {
        return;
    }
    with_profile(true, Ending::Return, |profile| {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        lcov(&mut out, profile, &Scope::All, None, &NoSources).unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/program.wat"), TEXT).unwrap();
        std::fs::write(folder.path().join("lcov.info"), out).unwrap();
        let html = tools::command("genhtml")
            .args([
                "--branch-coverage",
                "--output-directory",
                "html",
                "lcov.info",
            ])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&html.stdout);
        assert!(
            html.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&html.stderr)
        );
        assert!(said.contains("(11 of 14 lines)"), "{said}");
        assert!(said.contains("(2 of 3 functions)"), "{said}");
        assert!(said.contains("(3 of 6 branches)"), "{said}");
    });
}

#[test]
fn the_costs_of_callgrind_add_up_to_the_total() {
    both_endings(|profile| {
        let mut out = Vec::new();
        callgrind(&mut out, profile, &Scope::All).unwrap();
        let text = String::from_utf8(out).unwrap();
        let costs = text
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        let sum: u64 = costs
            .map(|l| l.split_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum();
        let total = profile.totals().instructions;
        assert_eq!(sum, total);
        for key in ["summary", "totals"] {
            assert!(text.contains(&format!("\n{key}: {total}\n")), "{text}");
        }
    });
}

#[test]
fn callgrind_annotate_accepts_the_costs() {
    if !installed("callgrind_annotate") {
        return;
    }
    with_profile(true, Ending::Return, |profile| {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        callgrind(&mut out, profile, &Scope::All).unwrap();
        std::fs::write(folder.path().join("callgrind.out"), out).unwrap();
        let report = tools::command("callgrind_annotate")
            .args(["--threshold=100", "callgrind.out"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&report.stdout);
        assert!(
            report.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&report.stderr)
        );
        assert!(said.contains("45 (100.0%)  PROGRAM TOTALS"), "{said}");
        assert!(said.contains("42 (93.33%)  src/program.wat:sum"), "{said}");
        assert!(said.contains("3 ( 6.67%)  src/program.wat:main"), "{said}");
    });
}

#[test]
fn graphviz_accepts_the_graphs() {
    if !installed("dot") {
        return;
    }
    with_profile(true, Ending::Return, |profile| {
        let (mut cfg, mut calls) = (Vec::new(), Vec::new());
        cfg_dot(&mut cfg, profile, FuncId::from_u32(3)).unwrap();
        calls_dot(&mut calls, profile, &Scope::All).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for graph in [cfg, calls] {
            std::fs::write(folder.path().join("graph.dot"), graph).unwrap();
            let drawn = tools::command("dot")
                .arg("graph.dot")
                .current_dir(folder.path())
                .output()
                .unwrap();
            assert!(
                drawn.status.success(),
                "{}",
                String::from_utf8_lossy(&drawn.stderr)
            );
        }
    });
}

/// A field of a Protocol Buffers message.
enum Field<'b> {
    Integer(u64),
    Bytes(&'b [u8]),
}

impl<'b> Field<'b> {
    fn integer(&self) -> u64 {
        match self {
            Field::Integer(value) => *value,
            Field::Bytes(_) => panic!("bytes where an integer belongs"),
        }
    }

    fn bytes(&self) -> &'b [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Integer(_) => panic!("an integer where bytes belong"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first().expect("a varint does not end early");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Parses the fields of a message by number.
fn fields(mut bytes: &[u8]) -> BTreeMap<u64, Vec<Field<'_>>> {
    let mut fields = BTreeMap::<_, Vec<_>>::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Integer(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(tag >> 3).or_default().push(field);
    }
    fields
}

fn packed(mut bytes: &[u8]) -> Vec<u64> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(varint(&mut bytes));
    }
    values
}

#[test]
fn pprof_samples_are_the_executed_stretches() {
    with_profile(true, Ending::Return, |profile| {
        let mut out = Vec::new();
        pprof(&mut out, profile, &Scope::All).unwrap();
        let mut raw = Vec::new();
        flate2::read::GzDecoder::new(&out[..])
            .read_to_end(&mut raw)
            .unwrap();
        let message = fields(&raw);
        let strings: Vec<&str> = message[&6]
            .iter()
            .map(|s| std::str::from_utf8(s.bytes()).unwrap())
            .collect();
        assert_eq!(strings[0], "");
        let by_id = |number: u64| -> BTreeMap<u64, _> {
            let all = message[&number].iter().map(|m| fields(m.bytes()));
            all.map(|m| (m[&1][0].integer(), m)).collect()
        };
        let (locations, functions) = (by_id(4), by_id(5));
        let types: Vec<_> = message[&1]
            .iter()
            .map(|t| strings[fields(t.bytes())[&1][0].integer() as usize])
            .collect();
        assert_eq!(types, ["executions", "instructions"]);

        let mut got = Vec::new();
        for sample in &message[&2] {
            let sample = fields(sample.bytes());
            let values = packed(sample[&2][0].bytes());
            let [location] = packed(sample[&1][0].bytes())[..] else {
                panic!("one location")
            };
            let location = &locations[&location];
            let line = fields(location[&4][0].bytes());
            let function = &functions[&line[&1][0].integer()];
            let text = |field| strings[function[&field][0].integer() as usize];
            got.push((
                location[&3][0].integer(),
                text(2),
                text(4),
                line[&2][0].integer(),
                values[0],
                values[1],
            ));
        }
        let path = "src/program.wat";
        assert_eq!(
            got,
            [
                (0x3f, "main", path, 4, 1, 1),
                (0x41, "main", path, 5, 1, 1),
                (0x43, "main", path, 6, 1, 1),
                (0x4c, "sum", path, 11, 4, 16),
                (0x53, "sum", path, 12, 4, 4),
                (0x55, "sum", path, 13, 4, 12),
                (0x5a, "sum", path, 14, 4, 4),
                (0x5d, "sum", path, 15, 1, 1),
                (0x5f, "sum", path, 16, 1, 1),
                (0x67, "sum", path, 19, 1, 3),
                (0x6d, "sum", path, 21, 1, 1),
            ]
        );
        let sum: u64 = got.iter().map(|sample| sample.5).sum();
        assert_eq!(sum, profile.totals().instructions);
    });
}
