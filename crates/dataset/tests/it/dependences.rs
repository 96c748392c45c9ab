//! Checks that dependences equal those that are looked up one by one in the values, and name the
//! writer of each byte.

use std::collections::{HashMap, HashSet};

use afterimage::Session;
use afterimage_ids::OpId;
use afterimage_replay::values::{
    Controller, Controllers, Execution, Instance, Kind, Origin, RecordedValues, Statement,
    of_statement,
};
use parquet::record::Row;

use crate::each_run;
use crate::read::{all, int, maybe, text, whole};
use crate::tables::{statement, value_rows, write};

/// A row: the time, the statement, its role, its origin, the producer, and the host call.
type Dependence = (
    i64,
    Option<i64>,
    String,
    &'static str,
    Option<(i64, i64)>,
    Option<i64>,
);

/// Returns the time and the statement of a producer.
fn made(values: &RecordedValues<'_>, instance: Instance, op: OpId) -> (i64, i64) {
    let node = &values.path().nodes()[instance.node];
    let block = values
        .program()
        .function(node.function)
        .unwrap()
        .block_of(op);
    let at = node.blocks.iter().position(|&one| Some(one) == block);
    let time = instance.time as i64 + at.unwrap() as i64;
    (time, statement(values.program(), node.function, op))
}

/// Returns the operator that ends the block at a time.
fn ends(values: &RecordedValues<'_>, time: u64) -> (i64, i64) {
    let instance = values.at(time).unwrap().unwrap();
    let node = &values.path().nodes()[instance.node];
    let function = values.program().function(node.function).unwrap();
    let block = node.blocks[(time - instance.time) as usize];
    let op = OpId::from_u32(function.cfg.blocks[block].ops.end.as_u32() - 1);
    (time as i64, statement(values.program(), node.function, op))
}

/// Looks up each dependence of a run.
fn asked(session: &Session) -> Vec<Dependence> {
    let values = session.values().unwrap();
    let (program, path) = (session.program(), session.path().unwrap());
    let controllers = Controllers::new(program);
    let host = values.host().unwrap();
    let guest = |call: Option<u64>| Some(host.of_guest(call?)? as i64);
    let mut rows = Vec::new();
    let mut cursor = path.cursor();
    while let Some(visit) = cursor.next().unwrap() {
        let instance = values.at(visit.start).unwrap().unwrap();
        let node = &path.nodes()[visit.node];
        let stopped = values.stopped(instance).unwrap();
        let compiled = values.compiled(visit.node).unwrap();
        let mut statements = Statement::all(program, &compiled.code, &node.blocks);
        statements.sort_by_key(|(_, statement)| statement.block);
        for (block, time) in (0..node.length()).zip(visit.start..) {
            let execution = Execution {
                number: 0,
                time,
                instance,
                statement: None,
            };
            for by in controllers.of_execution(&values, &execution).unwrap() {
                let (origin, at) = match by {
                    Controller::Branch { time, .. } => ("branch", Some(time)),
                    Controller::Call { time } => ("call", Some(time)),
                    Controller::Throw { time } => ("throw", Some(time)),
                    Controller::Host => ("host", None),
                };
                let made = at.map(|at| ends(&values, at));
                rows.push((time as i64, None, "control".to_owned(), origin, made, None));
            }
            for (op, one) in statements.iter().filter(|(_, one)| one.block == block) {
                let is_done = match (one.kind, stopped) {
                    (Kind::Inst(inst), Some(count)) => (inst as u64) < count,
                    (_, stopped) => stopped.is_none(),
                };
                if !is_done {
                    continue;
                }
                let own = Some(statement(program, node.function, *op));
                for found in of_statement(&values, instance, *one).unwrap() {
                    let (origin, made, call) = match found.origin {
                        Origin::Constant => continue,
                        Origin::Operator { instance, op } => {
                            ("statement", Some(made(&values, instance, op)), None)
                        }
                        Origin::Returned { instance, .. } => {
                            let last = path.nodes()[instance.node].length() - 1;
                            let call = values.host_call(instance).unwrap();
                            let made = ends(&values, instance.time + last);
                            ("returned", Some(made), guest(call))
                        }
                        Origin::Host { call } => ("host", None, guest(Some(call))),
                        Origin::Zero => ("zero", None, None),
                        Origin::Argument { .. } => ("argument", None, None),
                        Origin::Initial => ("initial", None, None),
                    };
                    rows.push((time as i64, own, found.role.to_owned(), origin, made, call));
                }
            }
        }
    }
    rows
}

#[test]
fn dependences_are_those_that_are_asked_for_one_by_one() {
    let mut count = 0;
    each_run(8, |session, folder| {
        let [one, many] = ["one", "many"].map(|name| folder.path().join(name));
        write(session, &one, 1 << 20);
        write(session, &many, 6);
        let expected = asked(session);
        for folder in [one, many] {
            let rows = all(&folder, "dependences");
            assert_eq!(rows.len(), expected.len());
            for (row, expected) in rows.iter().zip(&expected) {
                let made = maybe(row, "def_ts").zip(maybe(row, "def_statement_id"));
                let found = (
                    int(row, "ts"),
                    maybe(row, "statement_id"),
                    text(row, "role"),
                    &*text(row, "origin"),
                    made,
                    maybe(row, "host_call_id"),
                );
                let expected = expected.clone();
                assert_eq!(found, expected);
            }
        }
        count += expected.len();
    });
    assert!(count > 5000, "{count}");
}

/// An executed statement: the time and the statement.
type Executed = (i64, i64);

/// The writers of the data that each executed statement reads. `None` stands for the module.
type Writers = HashMap<Executed, HashSet<Option<Executed>>>;

/// Finds the last writer of each byte of memory from the table of accesses alone. `None` stands for
/// the module.
fn writers(rows: &[Row]) -> Writers {
    let mut bytes: HashMap<(i64, i64), (i64, i64)> = HashMap::new();
    let mut found: Writers = HashMap::new();
    for row in rows {
        let [ts, memory, address, length] =
            ["ts", "memory", "address", "bytes"].map(|column| int(row, column));
        let own = maybe(row, "statement_id").map(|statement| (ts, statement));
        let range = (address..address + length).map(|at| (memory, at));
        match (text(row, "access").as_str(), own) {
            ("load" | "copy_from", Some(own)) => {
                let read = range.map(|at| bytes.get(&at).copied());
                found.entry(own).or_default().extend(read);
            }
            ("store" | "fill" | "copy_to" | "host_write", Some(own)) => {
                bytes.extend(range.map(|at| (at, own)));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn dependences_name_who_wrote_and_who_made() {
    let (mut by_memory, mut by_operand, mut by_branch) = (0, 0, 0);
    each_run(5, |session, folder| {
        let out = folder.path().join("tables");
        write(session, &out, 9);
        let memory = all(&out, "memory");
        let steps = all(&out, "steps");
        let blocks = Vec::from_iter(steps.iter().map(|row| int(row, "block_id")));
        let call_of = |time: i64| int(&steps[time as usize - 1], "call_id");
        let hosts = whole(&out, "host_calls");
        let host = |call: i64| {
            let row = &hosts[call as usize - 1];
            (int(row, "ts"), int(row, "statement_id"))
        };
        let statements = whole(&out, "statements");
        let block_of: HashMap<i64, Option<i64>> = statements
            .iter()
            .map(|row| (int(row, "statement_id"), maybe(row, "block_id")))
            .collect();
        let throw = |row: &&Row| text(row, "name").starts_with("throw");
        let throws = statements.iter().filter(throw);
        let throws: HashSet<i64> = throws.map(|row| int(row, "statement_id")).collect();
        let given: HashSet<(i64, i64)> =
            value_rows(&out).iter().map(|row| (row.0, row.1)).collect();
        let mut lengths: HashMap<(i64, i64), i64> = HashMap::new();
        let mut read: Writers = HashMap::new();
        for row in all(&out, "dependences") {
            let (time, role, origin) = (int(&row, "ts"), text(&row, "role"), text(&row, "origin"));
            let made = maybe(&row, "def_ts").zip(maybe(&row, "def_statement_id"));
            if let Some((at, statement)) = made {
                assert!(at <= time, "made later: {row}");
                // The statement is in the block that was executed at that time.
                let block = blocks[at as usize - 1];
                assert_eq!(block_of[&statement], Some(block), "{row}");
            }
            let own = maybe(&row, "statement_id").map(|statement| (time, statement));
            match (role.as_str(), own) {
                ("memory", Some(own)) => {
                    let writer = match origin.as_str() {
                        "host" => Some(host(int(&row, "host_call_id"))),
                        "initial" => None,
                        _ => Some(made.unwrap()),
                    };
                    read.entry(own).or_default().insert(writer);
                    *lengths.entry(own).or_default() += int(&row, "bytes");
                    by_memory += 1;
                }
                ("control", None) if origin == "branch" => {
                    // The origin must be a branch of the same activation.
                    let (at, _) = made.unwrap();
                    assert_eq!(call_of(at), call_of(time), "{row}");
                    by_branch += 1;
                }
                ("control", None) => {}
                ("global" | "element" | "size", Some(_)) => {}
                (_, Some(_)) if origin == "statement" => {
                    let made = made.unwrap();
                    // A handler gets thrown values, and a throw has no value.
                    let is_given = given.contains(&made) || throws.contains(&made.1);
                    assert!(is_given, "{row} has no value");
                    by_operand += 1;
                }
                (_, Some(_)) => {}
                (_, None) => panic!("{row}"),
            }
        }
        let mut expected = writers(&memory);
        expected.retain(|_, writers| !writers.is_empty());
        assert_eq!(read, expected);
        for row in &memory {
            let own = maybe(row, "statement_id").map(|statement| (int(row, "ts"), statement));
            if let Some(length) = own.and_then(|own| lengths.get(&own))
                && ["load", "copy_from"].contains(&text(row, "access").as_str())
            {
                assert_eq!(int(row, "bytes"), *length, "{row}");
            }
        }
    });
    let counts = (by_memory, by_operand, by_branch);
    assert!(
        by_memory > 40 && by_operand > 1000 && by_branch > 200,
        "{counts:?}"
    );
}
