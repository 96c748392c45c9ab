//! Checks that the tables match the run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use afterimage::Session;
use afterimage_dataset::{DYNAMIC, DatasetQuery, WHOLE};
use afterimage_ids::{FuncId, OpId};
use afterimage_profile::Scope;
use afterimage_program::Program;
use afterimage_replay::steps::{Range, Step, Steps, Value, Wanted, What};
use parquet::record::Row;
use wasmparser::ValType;

use crate::each_run;
use crate::read::{all, int, list, maybe, number, text, truth, whole};

/// Writes a data set with windows of this many blocks.
pub fn write(session: &Session, folder: &Path, window_blocks: u64) {
    let query = DatasetQuery {
        window_blocks,
        ..DatasetQuery::default()
    };
    let report = query.write(session, folder).unwrap();
    assert!(report.complete && report.missing.is_empty(), "{report}");
    assert_eq!(report.windows, report.all);
}

/// Returns the steps of the run, which another part of the library computes.
fn steps(session: &Session) -> Vec<Step> {
    let (run, log) = (session.run().unwrap(), session.file().log().unwrap());
    let mut steps = Steps::new(run, log, Wanted::ALL).unwrap();
    std::iter::from_fn(|| steps.next().unwrap()).collect()
}

/// Returns the number of an operator by its definition, which counts all operators of all
/// functions.
pub fn statement(program: &Program, function: FuncId, op: OpId) -> i64 {
    let before = program.functions.iter().take_while(|f| f.id != function);
    before.map(|f| i64::from(f.operators)).sum::<i64>() + i64::from(op.as_u32())
}

/// A row of values: the time, the statement, the integer, the number and the upper half.
pub type ValueRow = (i64, i64, Option<i64>, Option<u64>, Option<i64>);

fn shown((time, statement): (i64, i64), value: Value) -> ValueRow {
    let (low, high) = value.bits;
    let (int, number, upper) = match value.ty {
        ValType::I32 => (Some(i64::from(low as i32)), None, None),
        ValType::I64 | ValType::Ref(_) => (Some(low as i64), None, None),
        ValType::F64 => (None, Some(low), None),
        ValType::F32 => {
            let narrow = f32::from_bits(low as u32);
            let bits = match narrow.is_nan() {
                false => f64::from(narrow).to_bits(),
                // The payload stays the same, at the upper end.
                true => (low & 0x8000_0000) << 32 | 0x7ff0_0000_0000_0000 | (low & 0x7f_ffff) << 29,
            };
            (None, Some(bits), None)
        }
        ValType::V128 => (Some(low as i64), None, Some(high as i64)),
    };
    (time, statement, int, number, upper)
}

pub fn value_rows(folder: &Path) -> Vec<ValueRow> {
    let row = |row: &Row| {
        (
            int(row, "ts"),
            int(row, "statement_id"),
            maybe(row, "value"),
            number(row, "number"),
            maybe(row, "high"),
        )
    };
    all(folder, "values").iter().map(row).collect()
}

#[test]
fn values_and_accesses_are_those_of_the_steps() {
    let (mut values, mut accesses) = (0, HashSet::new());
    each_run(5, |session, folder| {
        let out = folder.path().join("tables");
        write(session, &out, 7);
        let program = session.program();
        let (mut given, mut accessed) = (Vec::new(), Vec::new());
        for step in steps(session) {
            let time = step.time as i64;
            let at = step
                .op
                .map(|op| (time, statement(program, step.function, op)));
            let mut access = |kind: &str, range: Range| {
                let place = at.map(|(_, statement)| statement);
                let range = (range.memory, range.address, range.length);
                accessed.push((time, place, kind.to_owned(), range));
            };
            let value = match step.what {
                What::Computed(value) | What::SetGlobal(_, value) | What::Branch(value) => {
                    Some(value)
                }
                What::Grow { result, .. } => Some(result),
                What::Load(range, value) => {
                    access("load", range);
                    Some(value)
                }
                What::Store(range, value) => {
                    access("store", range);
                    Some(value)
                }
                What::Fill(to, _) => {
                    access("fill", to);
                    None
                }
                What::Init { to, .. } => {
                    access("fill", to);
                    None
                }
                What::Copy { from, to } => {
                    access("copy_from", from);
                    access("copy_to", to);
                    None
                }
                What::HostRead(_, range) => {
                    access("host_read", range);
                    None
                }
                What::HostWrite(_, range) => {
                    access("host_write", range);
                    None
                }
                _ => None,
            };
            given.extend(value.zip(at).map(|(value, at)| shown(at, value)));
        }
        assert_eq!(value_rows(&out), given);
        let row = |row: &Row| {
            let range = ["memory", "address", "bytes"].map(|column| int(row, column));
            let range = (range[0] as u32, range[1] as u64, range[2] as u64);
            let place = maybe(row, "statement_id");
            (int(row, "ts"), place, text(row, "access"), range)
        };
        let found = Vec::from_iter(all(&out, "memory").iter().map(row));
        assert_eq!(found, accessed);
        values += given.len();
        accesses.extend(found.into_iter().map(|(_, _, kind, _)| kind));
    });
    assert!(values > 3000, "{values}");
    assert_eq!(accesses.len(), 7, "{accesses:?}");
}

/// A call: its time, its number of blocks, its depth, its parent, and its function.
type Call = (i64, i64, i64, Option<i64>, i64);

#[test]
fn steps_and_calls_are_those_of_the_stack_at_each_block() {
    each_run(5, |session, folder| {
        let out = folder.path().join("tables");
        write(session, &out, 5);
        let path = session.path().unwrap();
        let program = session.program();
        let mut expected = Vec::new();
        let mut calls: BTreeMap<i64, Call> = BTreeMap::new();
        let mut cursor = path.cursor();
        let mut first_block = Vec::new();
        let mut sum = 0;
        for function in &program.functions {
            first_block.push(sum);
            sum += function.cfg.blocks.len() as i64;
        }
        for time in 1..=path.length() {
            let visit = cursor.seek(time).unwrap().unwrap();
            let node = &path.nodes()[visit.node];
            let stack = cursor.stack().unwrap();
            let mut parent = None;
            for (depth, open) in stack.iter().enumerate() {
                let entered = open.entered as i64;
                let function = i64::from(open.function.as_u32());
                let new = (entered, 0, depth as i64, parent, function);
                let call = calls.entry(entered).or_insert(new);
                call.1 = time as i64 - entered + 1;
                parent = Some(entered);
            }
            let index = node.function.as_u32() as usize - program.imports.len();
            let block = node.blocks[(time - visit.start) as usize];
            let block = first_block[index] + i64::from(block.as_u32());
            let path = i64::from(visit.node.as_u32());
            expected.push((time as i64, block, parent.unwrap(), path));
        }
        let step = |row: &Row| {
            let [ts, block, call, path] =
                ["ts", "block_id", "call_id", "path_id"].map(|column| int(row, column));
            (ts, block, call, path)
        };
        let found = Vec::from_iter(all(&out, "steps").iter().map(step));
        assert_eq!(found, expected);
        let call = |row: &Row| {
            assert_eq!(int(row, "ts"), int(row, "call_id"));
            let [ts, dur, depth, function] =
                ["ts", "dur", "depth", "function_id"].map(|column| int(row, column));
            (ts, dur, depth, maybe(row, "parent_id"), function)
        };
        let found = Vec::from_iter(all(&out, "calls").iter().map(call));
        assert_eq!(found, Vec::from_iter(calls.into_values()));
    });
}

#[test]
fn windows_of_any_size_hold_the_same_rows() {
    each_run(2, |session, folder| {
        let [one, many] = ["one", "many"].map(|name| folder.path().join(name));
        write(session, &one, 1 << 20);
        write(session, &many, 3);
        for table in DYNAMIC {
            let text = |folder: &Path| {
                let rows = all(folder, table.name);
                Vec::from_iter(rows.iter().map(ToString::to_string))
            };
            assert_eq!(text(&many), text(&one), "{}", table.name);
        }
    });
}

#[test]
fn counts_of_the_whole_run_are_those_of_the_profile_and_of_the_windows() {
    each_run(3, |session, folder| {
        let out = folder.path().join("tables");
        write(session, &out, 11);
        let run = &whole(&out, "run")[0];
        let steps = all(&out, "steps");
        assert_eq!(int(run, "blocks"), steps.len() as i64);
        let mut executed: HashMap<i64, i64> = HashMap::new();
        for row in &steps {
            *executed.entry(int(row, "block_id")).or_default() += 1;
        }
        for row in whole(&out, "blocks") {
            let count = executed.remove(&int(&row, "block_id")).unwrap_or(0);
            assert_eq!(int(&row, "executions"), count, "{row}");
        }
        assert_eq!(executed, HashMap::new());
        let mut calls: HashMap<i64, i64> = HashMap::new();
        for row in all(&out, "calls") {
            *calls.entry(int(&row, "function_id")).or_default() += 1;
        }
        for row in whole(&out, "functions") {
            if !truth(&row, "is_import") {
                let count = calls.remove(&int(&row, "function_id")).unwrap_or(0);
                assert_eq!(int(&row, "calls"), count, "{row}");
            }
        }
        let mut paths: HashMap<i64, i64> = HashMap::new();
        for row in whole(&out, "paths") {
            for block in list(&row, "block_ids") {
                *paths.entry(block).or_default() += int(&row, "executions");
            }
        }
        for row in whole(&out, "blocks") {
            let count = paths.get(&int(&row, "block_id")).copied().unwrap_or(0);
            assert_eq!(int(&row, "executions"), count, "{row}");
        }
        let instructions = session.profile(|profile| {
            let lines = profile.line_rows(&Scope::All)?.len();
            assert_eq!(whole(&out, "lines").len(), lines);
            assert_eq!(
                whole(&out, "edges").len(),
                profile.edge_rows(&Scope::All)?.len()
            );
            Ok(profile.totals().instructions as i64)
        });
        let statements = whole(&out, "statements");
        let sum = statements
            .iter()
            .map(|row| int(row, "executions"))
            .sum::<i64>();
        assert_eq!(sum, instructions.unwrap());
        assert_eq!(sum, int(run, "instructions"));
        let hosts = whole(&out, "host_calls");
        assert_eq!(hosts.len() as i64, int(run, "host_calls"));
        for table in WHOLE {
            assert!(out.join(format!("{}.parquet", table.name)).exists());
        }
    });
}

#[test]
fn the_page_describes_the_tables_and_the_files_have_its_columns() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/PARQUET.md");
    let page = std::fs::read_to_string(page).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&crate::forever(folder.path())).unwrap();
    let out = folder.path().join("tables");
    write(&session, &out, 100);
    let version = format!("The version is {}.", afterimage_dataset::VERSION);
    assert!(page.contains(&version), "{version}");
    for table in WHOLE.iter().chain(&DYNAMIC) {
        let begin = format!("| `{}` | ", table.name);
        let row = page.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("no row {begin}"));
        // The words between backticks, in order, and whether a question mark follows each.
        let words = Vec::from_iter(row.split('`'));
        let words = words.chunks(2).skip(1).filter_map(|two| match *two {
            [_, word] => Some(word),
            _ => None,
        });
        let described = Vec::from_iter(words);
        let columns = Vec::from_iter(table.columns.iter().map(|column| column.name));
        assert_eq!(described, columns, "{}", table.name);
        for column in table.columns {
            let marked = row.contains(&format!("`{}`?", column.name));
            assert_eq!(marked, column.optional, "{}.{}", table.name, column.name);
        }
        let rows = match out.join(format!("{}.parquet", table.name)).exists() {
            true => whole(&out, table.name),
            false => all(&out, table.name),
        };
        if let Some(first) = rows.first() {
            let found = Vec::from_iter(first.get_column_iter().map(|(name, _)| name.as_str()));
            assert_eq!(found, columns);
        }
    }
}
