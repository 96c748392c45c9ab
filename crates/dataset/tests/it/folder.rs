//! Tests the folder: several writers, killed writers, and refusals.

use std::fs;
use std::path::Path;
use std::thread;

use afterimage::Session;
use afterimage_dataset::{DatasetQuery, DatasetReport};

use crate::{MIXED, forever, recording};

fn query(window_blocks: u64, windows: Option<&str>) -> DatasetQuery {
    DatasetQuery {
        window_blocks,
        windows: windows.map(|text| text.parse().unwrap()),
        ..DatasetQuery::default()
    }
}

/// Returns every file under a folder, with its bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut work = vec![folder.to_owned()];
    while let Some(at) = work.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let at = entry.unwrap().path();
            match at.is_dir() {
                true => work.push(at),
                false => {
                    let name = at.strip_prefix(folder).unwrap().display().to_string();
                    found.push((name, fs::read(at).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

fn refused(query: &DatasetQuery, session: &Session, folder: &Path) -> String {
    let error = query.write(session, folder).unwrap_err();
    let text = format!("{error:#}");
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn several_writers_make_the_data_set_that_one_makes() {
    let folder = tempfile::tempdir().unwrap();
    let at = forever(folder.path());
    let [alone, shared] = ["alone", "shared"].map(|name| folder.path().join(name));
    let session = Session::open(&at).unwrap();
    query(20, None).write(&session, &alone).unwrap();
    let parts = ["0..7", "7..13", "13..20"];
    thread::scope(|scope| {
        for part in parts {
            let (at, shared) = (&at, &shared);
            scope.spawn(move || {
                let session = Session::open(at).unwrap();
                query(20, Some(part)).write(&session, shared).unwrap();
            });
        }
    });
    assert_eq!(contents(&shared), contents(&alone));
    assert!(!shared.join("INCOMPLETE").exists());
}

#[test]
fn writers_that_are_asked_for_everything_share_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let at = forever(folder.path());
    let [alone, shared] = ["alone", "shared"].map(|name| folder.path().join(name));
    query(10, None)
        .write(&Session::open(&at).unwrap(), &alone)
        .unwrap();
    let reports: Vec<DatasetReport> = thread::scope(|scope| {
        let writers = Vec::from_iter((0..3).map(|_| {
            scope.spawn(|| {
                let session = Session::open(&at).unwrap();
                query(10, None).write(&session, &shared).unwrap()
            })
        }));
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    // Each window was written once.
    let windows = reports.iter().map(|report| report.windows).sum::<u64>();
    assert_eq!(windows, 39);
    let rows = |name: &str| {
        let tables = reports.iter().filter_map(|report| report.tables.get(name));
        tables.map(|table| table.rows).sum::<u64>()
    };
    assert_eq!(rows("steps"), 383);
    assert_eq!(rows("run"), 1);
    assert_eq!(contents(&shared), contents(&alone));
}

#[test]
fn what_was_killed_is_marked_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&forever(folder.path())).unwrap();
    let [whole, cut] = ["whole", "cut"].map(|name| folder.path().join(name));
    query(50, None).write(&session, &whole).unwrap();
    let report = query(50, Some("0..3")).write(&session, &cut).unwrap();
    assert_eq!(
        (report.complete, report.missing),
        (false, vec![3, 4, 5, 6, 7])
    );
    assert!(cut.join("INCOMPLETE").exists());
    // Make the folder look as if a writer had been killed in the middle of a window and of the
    // tables about the run.
    let half = cut.join(".part-window-000003");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("steps.parquet"), "PAR1 and no more").unwrap();
    fs::write(cut.join(".lock-window-000003"), "").unwrap();
    for table in ["run", "functions"] {
        fs::remove_file(cut.join(format!("{table}.parquet"))).unwrap();
    }
    let report = query(50, None).write(&session, &cut).unwrap();
    assert_eq!((report.complete, report.windows), (true, 5));
    assert_eq!(contents(&cut), contents(&whole));
    // All parts exist, so nothing is written.
    let report = query(50, None).write(&session, &cut).unwrap();
    assert_eq!((report.complete, report.windows), (true, 0));
    let windows = report.all;
    assert_eq!(
        report.to_string(),
        format!("already complete: {windows} windows")
    );
    assert_eq!(contents(&cut), contents(&whole));
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&forever(folder.path())).unwrap();
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter.txt"), "Dear").unwrap();
    let said = refused(&query(50, None), &session, &foreign);
    assert!(
        said.contains("foreign: the folder contains letter.txt"),
        "{said}"
    );
    assert_eq!(contents(&foreign).len(), 1);
    fs::write(foreign.join("afterimage.json"), "{}").unwrap();
    let said = refused(&query(50, None), &session, &foreign);
    assert!(said.contains("does not describe a data set"), "{said}");

    let own = folder.path().join("own");
    query(50, None).write(&session, &own).unwrap();
    let said = refused(&query(60, None), &session, &own);
    assert!(said.contains("different tables or windows"), "{said}");
    assert!(said.ends_with("--window-blocks 50"), "{said}");
    let fewer = DatasetQuery {
        tables: vec!["steps".to_owned()],
        ..query(50, None)
    };
    let said = refused(&fewer, &session, &own);
    assert!(said.contains("different tables or windows"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let other = Session::open(&recording(other.path(), MIXED)).unwrap();
    let said = refused(&query(50, None), &other, &own);
    assert!(said.contains("a different recording"), "{said}");

    let file = folder.path().join("forever.aft");
    let said = refused(&query(50, None), &session, &file);
    assert!(said.contains("forever.aft"), "{said}");
    let said = refused(&query(50, Some("8")), &session, &own);
    assert!(
        said.contains("no window 8: the run has 8 windows"),
        "{said}"
    );
    let unknown = DatasetQuery {
        tables: vec!["step".to_owned()],
        ..query(50, None)
    };
    let said = refused(&unknown, &session, &own);
    assert!(said.contains("no table \"step\""), "{said}");
    for text in [
        "",
        "x",
        "3..2",
        "3..3",
        "-1",
        "1..x",
        "18446744073709551615",
    ] {
        let parsed = text.parse::<afterimage_dataset::Selected>();
        assert!(parsed.is_err(), "{text}");
    }
}
