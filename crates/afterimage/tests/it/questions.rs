//! Tests questions whose answers the tests can compute themselves: `forever.wat` generates numbers
//! and writes them to memory.

use std::fmt::Debug;

use afterimage::analyses::simulate::MissesBy;
use afterimage::present::RedundancyOf;
use afterimage::profile::{By, CodeFilter, Sort};
use afterimage::{
    AddressesQuery, CallsQuery, CurrencyQuery, DataflowQuery, DiffQuery, Level, MatchQuery,
    PathsAbout, PathsQuery, ProfileQuery, RankQuery, RedundancyQuery, Session, SimulateQuery,
    TraceQuery,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{BLOCKS, recording};

/// The number of steps of the generator. Each step makes a store.
const STEPS: usize = 127;

/// Returns the numbers that the program stores, and the times.
fn stores() -> Vec<(u64, u64)> {
    let mut number = 12345_u32;
    let steps = (0..STEPS as u64).map(|step| {
        number = (number << 1) ^ (number >> 3);
        (4 + 3 * step, u64::from(number & 0xfffc))
    });
    steps.collect()
}

/// Writes a question as JSON and reads it again.
pub fn sent<Q: Serialize + DeserializeOwned + PartialEq + Debug>(query: Q) -> Q {
    let text = serde_json::to_string(&query).unwrap();
    let read: Q = serde_json::from_str(&text).unwrap();
    assert_eq!(read, query, "{text}");
    read
}

fn json<R: Serialize>(report: &R) -> Value {
    serde_json::to_value(report).unwrap()
}

#[test]
fn a_trace_has_every_block_and_every_store() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let blocks = session.trace(&sent(TraceQuery::new(Level::Block))).unwrap();
    let times = blocks.rows.iter().map(|row| json(row)["t"].as_u64());
    assert!(times.eq((1..=BLOCKS).map(Some)));
    assert_eq!(blocks.head.length, BLOCKS);
    let accesses = session.trace(&TraceQuery::new(Level::Memory)).unwrap();
    let accesses = accesses.rows.iter().map(json);
    let found = accesses.map(|row| {
        let address = &row["access"]["address"];
        (row["t"].as_u64().unwrap(), address.as_u64().unwrap())
    });
    assert_eq!(Vec::from_iter(found), stores());
    let few = TraceQuery {
        last: Some(2),
        reverse: true,
        ..TraceQuery::new(Level::Block)
    };
    let few = session.trace(&sent(few)).unwrap();
    let times = few.rows.iter().map(|row| json(row)["t"].as_u64());
    assert!(times.eq([Some(BLOCKS), Some(BLOCKS - 1)]));
}

#[test]
fn addresses_are_those_of_the_generator() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let query = AddressesQuery {
        at: "@0x66".to_owned(),
        instances: None,
        limit: None,
    };
    let found = session.addresses(&sent(query)).unwrap();
    let found = found.rows.iter();
    let found = Vec::from_iter(found.map(|row| (row.t, row.range.address)));
    assert_eq!(found, stores());
    let summed = session.address_stats(None).unwrap();
    let smallest = stores().into_iter().map(|store| store.1).min();
    assert_eq!(summed.rows[0].accesses, STEPS as u64);
    assert_eq!(Some(summed.rows[0].smallest), smallest);
    let refused = session.address_stats(Some("@0x66#1")).unwrap_err();
    assert!(refused.to_string().contains("one execution"), "{refused}");
}

#[test]
fn paths_have_all_blocks_and_facts_are_about_all_executions() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let query = PathsQuery {
        about: PathsAbout::Traces(Default::default()),
        function: None,
        top: None,
        blocks: None,
        code: CodeFilter::All,
    };
    let paths = json(&session.paths(&sent(query)).unwrap());
    let rows = paths["rows"].as_array().unwrap().iter();
    let blocks = rows.map(|row| row["blocks"].as_u64().unwrap());
    assert_eq!(blocks.sum::<u64>(), BLOCKS);
    let query = PathsQuery {
        about: PathsAbout::Traces(Default::default()),
        function: Some("_start".to_owned()),
        top: None,
        blocks: Some(1),
        code: CodeFilter::All,
    };
    let paths = json(&session.paths(&sent(query)).unwrap());
    let row = &paths["rows"][0];
    assert_eq!(row["blocks"].as_array().unwrap().len(), 1, "{row}");
    assert!(row["length"].as_u64() > Some(1), "{row}");
    // The store comes after the operator, and the assignment of the global is between them.
    for (fact, holds) in [
        ("gen=@0x66 at=@0x63", STEPS - 1),
        ("gen=@0x66 kill=@0x6e at=@0x63", 0),
    ] {
        let query = DataflowQuery {
            fact: fact.to_owned(),
            paths: 0,
            instances: 3,
        };
        let answer = json(&session.dataflow(&sent(query)).unwrap());
        assert_eq!(answer["answers"][0]["executions"], json!(STEPS), "{answer}");
        assert_eq!(answer["answers"][0]["holds"], json!(holds), "{answer}");
    }
}

#[test]
fn what_is_redundant_and_what_is_missed_is_counted_over_all_steps() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let query = RedundancyQuery {
        of: RedundancyOf::Expressions,
        function: Some("step".to_owned()),
        top: None,
        ways: 0,
        own: false,
        by_path: false,
    };
    let found = session.redundancy(&sent(query)).unwrap();
    let operators = found.entries.iter();
    let operators = operators.map(|entry| (entry.executions, entry.redundant));
    assert_eq!(Vec::from_iter(operators), [(STEPS as u64, 0); 3]);
    let query = SimulateQuery {
        specs: vec!["--cache 1k,full,64".parse().unwrap()],
        by: Some(MissesBy::Function),
        top: None,
        save: false,
    };
    let [cache] = session.simulate(&sent(query)).unwrap().try_into().unwrap();
    // The cache has 16 lines, the least recently used first.
    let (mut lines, mut missed) = (Vec::new(), 0);
    for (_, address) in stores() {
        let line = address / 64;
        let known = lines.iter().position(|&known| known == line);
        missed += u64::from(known.is_none());
        known.map(|known| lines.remove(known));
        lines.push(line);
        lines.drain(..lines.len().saturating_sub(16));
    }
    assert_eq!(cache.head.missed.executions, STEPS as u64);
    assert_eq!(cache.head.missed.missed, missed);
    let function = cache.rows[0].function.as_ref().unwrap();
    assert_eq!(function.name, "_start");
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [a, b] = folders
        .each_ref()
        .map(|folder| Session::open(&recording(folder)).unwrap());
    let query = DiffQuery {
        lines: true,
        top: None,
    };
    assert_eq!(json(&a.diff(&b, sent(query)).unwrap())["same"], json!(true));
    let query = MatchQuery {
        names: false,
        all: false,
        check: false,
        top: None,
    };
    let found = json(&a.matching(&b, sent(query)).unwrap());
    let statements = found["statements"].as_array().unwrap();
    assert!(!statements.is_empty());
    for statement in statements {
        let counterpart = &statement["match"]["a"];
        assert_eq!(statement["offset"], counterpart["offset"], "{statement}");
    }
    let query = CurrencyQuery {
        at: "a.c:1".to_owned(),
        variable: None,
        matching: false,
        limit: 1,
    };
    let refused = a.currency(&b, &sent(query)).unwrap_err().to_string();
    assert!(refused.contains("of the same program"), "{refused}");
}

#[test]
fn counts_add_up_and_compare() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder)).unwrap();
    let query = sent(ProfileQuery {
        by: By::Block,
        sort: Some(Sort::Count),
        top: Some(3),
        ..ProfileQuery::default()
    });
    let one = json(&session.execution_counts(&[], &query).unwrap());
    let three = json(
        &session
            .execution_counts(&[&session, &session], &query)
            .unwrap(),
    );
    assert_eq!(one["totals"]["blocks"], BLOCKS);
    assert_eq!(three["totals"]["blocks"], 3 * BLOCKS);
    assert_eq!(three["totals"]["runs"], 3);
    let counts = |document: &Value| {
        let rows = document["rows"].as_array().unwrap().iter();
        Vec::from_iter(rows.map(|row| row["count"].as_u64().unwrap()))
    };
    let tripled = Vec::from_iter(counts(&one).iter().map(|count| 3 * count));
    assert_eq!(counts(&three), tripled);

    let refused = session.compare_counts(&session, &query).unwrap_err();
    assert!(refused.to_string().contains("--by function"), "{refused}");
    let functions = ProfileQuery::default();
    let compared = json(&session.compare_counts(&session, &functions).unwrap());
    let rows = compared["rows"].as_array().unwrap();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row["ratio"] == 1.0),
        "{compared}"
    );
}

#[test]
fn the_only_call_lasts_the_whole_run_and_nothing_separates_equal_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let session = Session::open(&at).unwrap();
    let query = sent(CallsQuery {
        function: Some("_start".to_owned()),
    });
    let calls = json(&session.calls(&query).unwrap());
    assert_eq!(calls["blocks"], BLOCKS);
    let row = &calls["functions"][0];
    assert_eq!(
        (&row["calls"], &row["inclusive"]),
        (&json!(1), &json!(BLOCKS))
    );
    assert_eq!(calls["edges"][0]["caller"], Value::Null);
    let unknown = CallsQuery {
        function: Some("nowhere".to_owned()),
    };
    let refused = session.calls(&unknown).unwrap_err().to_string();
    assert!(refused.contains("nowhere"), "{refused}");

    let query = sent(RankQuery {
        values: true,
        top: None,
    });
    let runs = [Session::open(&at).unwrap()];
    let ranked = json(&Session::rank(&runs, &[session], query).unwrap());
    assert_eq!(ranked["values"], json!([]));
    let refused = Session::rank(&runs, &[], query).unwrap_err().to_string();
    assert!(refused.contains("--fail names no recording"), "{refused}");
}
