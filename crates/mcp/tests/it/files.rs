//! Tests which files are opened, and what happens to open files.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::{Connection, folder, recording, text};

#[test]
fn nothing_outside_of_the_roots_is_opened() {
    let (inside, outside) = (folder(), folder());
    let other = outside.path().join("forever.aft");
    symlink(&other, inside.path().join("link.aft")).unwrap();
    symlink(outside.path(), inside.path().join("linked")).unwrap();
    symlink("forever.aft", inside.path().join("own.aft")).unwrap();
    let beside = format!(
        "../{}/forever.aft",
        outside.path().file_name().unwrap().to_str().unwrap()
    );
    let mut connection = Connection::open(inside.path());
    for path in [
        "link.aft",
        "linked/forever.aft",
        other.to_str().unwrap(),
        &beside,
        "/etc/passwd",
        "/nowhere",
    ] {
        let result = connection.call("overview", &json!({ "recording": path }));
        assert_eq!(result["isError"], true, "{path}: {result}");
        let said = text(&result);
        assert!(said.contains("outside of the roots"), "{path}: {said}");
    }
    // Links that stay inside the roots are followed, and absolute paths are accepted.
    let whole = inside.path().canonicalize().unwrap().join("forever.aft");
    for path in [
        "forever.aft",
        "own.aft",
        "./forever.aft",
        whole.to_str().unwrap(),
    ] {
        let result = connection.call("overview", &json!({ "recording": path }));
        assert_eq!(result["isError"], false, "{path}: {result}");
    }
    connection.close();
}

#[test]
fn what_is_no_recording_is_refused_and_recordings_are_named() {
    let folder = folder();
    fs::write(folder.path().join("text.aft"), "no recording").unwrap();
    fs::write(folder.path().join("empty.aft"), "").unwrap();
    let mut connection = Connection::open(folder.path());
    for (path, expected) in [
        ("text.aft", "not a recording"),
        ("empty.aft", "empty"),
        (".", "folder"),
        ("missing.aft", "forever.aft"),
    ] {
        let result = connection.call("overview", &json!({ "recording": path }));
        assert_eq!(result["isError"], true, "{path}: {result}");
        let said = text(&result);
        assert!(said.contains(expected), "{path}: {said}");
        assert_eq!(said.lines().next().unwrap().matches('\n').count(), 0);
    }
    connection.close();
}

#[test]
fn a_recording_that_is_replaced_or_cut_is_noticed() {
    let folder = folder();
    let at = folder.path().join("forever.aft");
    let mut connection = Connection::open(folder.path());
    let question = json!({ "recording": "forever.aft", "at": "@0x6e#2" });
    let first = connection.call("why", &question);
    assert_eq!(first["isError"], false, "{first}");
    assert_eq!(first["structuredContent"]["notes"], json!([]), "{first}");
    // Only the question's own additions changed it.
    let again = connection.call("why", &question);
    assert_eq!(again, first);
    // Another file replaces the recording.
    let other = folder.path().join("other.aft");
    recording(&other);
    fs::rename(&other, &at).unwrap();
    let replaced = connection.call("why", &question);
    let notes = replaced["structuredContent"]["notes"].to_string();
    assert!(notes.contains("has been replaced"), "{replaced}");
    assert!(text(&replaced).contains("note: forever.aft has been replaced"));
    // The file is cut off.
    let length = fs::metadata(&at).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&at).unwrap();
    file.set_len(length / 2).unwrap();
    let cut = connection.call("overview", &json!({ "recording": "forever.aft" }));
    let said = cut.to_string();
    assert!(cut["isError"] == true || said.contains("shorter"), "{said}");
    // The file was removed.
    fs::remove_file(&at).unwrap();
    let gone = connection.call("why", &question);
    assert!(text(&gone).contains("not found"), "{gone}");
    connection.close();
}

#[test]
fn many_recordings_are_asked_in_turn() {
    let folder = folder();
    let names = Vec::from_iter((0..7).map(|number| format!("{number}.aft")));
    for name in &names {
        recording(&folder.path().join(name));
    }
    let mut connection = Connection::open(folder.path());
    for name in names.iter().chain(&names) {
        let question = json!({ "recording": name, "at": "@0x6e#3" });
        let result = connection.call("why", &question);
        assert_eq!(result["isError"], false, "{name}: {result}");
    }
    connection.close();
}
