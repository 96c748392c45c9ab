//! Tests changes to the recording while it is explored.

use std::fs::{self, OpenOptions};

use afterimage_explorer::Options;

use crate::{recording, serve};

#[test]
fn a_file_that_was_replaced_removed_or_cut_is_named_and_the_server_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let aside = folder.path().join("aside.aft");
    let client = serve(&at, Options::default());
    assert_eq!(client.get("api/state?at=1").status, 200);

    fs::rename(&at, &aside).unwrap();
    client.get("api/state?at=2").refusal(409, "was removed");
    fs::copy(&aside, &at).unwrap();
    client.get("api/state?at=2").refusal(409, "was replaced");
    // Earlier answers are about another file.
    client.get("api/state?at=1").refusal(409, "was replaced");
    fs::rename(&aside, &at).unwrap();
    assert_eq!(client.get("api/state?at=1").status, 200);
    assert_eq!(client.get("api/state?at=2").status, 200);

    let whole = fs::read(&at).unwrap();
    let file = OpenOptions::new().write(true).open(&at).unwrap();
    file.set_len(100).unwrap();
    client.get("api/state?at=3").refusal(409, "was cut from");
    fs::write(&at, &whole).unwrap();
    assert_eq!(client.get("api/state?at=3").status, 200);
    assert_eq!(client.get("").status, 200);
}

#[test]
fn what_another_process_adds_is_no_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder);
    let client = serve(&at, Options::default());
    let session = afterimage::Session::open(&at).unwrap();
    session.ensure_path().unwrap();
    assert_eq!(client.get("api/state?at=50%25").status, 200);
    assert!(client.get("api/info").body.contains("\"paths\""));
}

#[test]
fn a_position_that_is_none_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let explorer = afterimage_explorer::Explorer::open(&recording(&folder), Options::default());
    let explorer = explorer.unwrap();
    for (position, part) in [
        ("nope.c:1", "nope.c"),
        ("nothing#3", "nothing"),
        ("x%", "x%"),
    ] {
        let refused = explorer.url_at(position).unwrap_err();
        assert!(format!("{refused:#}").contains(part), "{refused:#}");
    }
    for position in ["50%", "t=1234", "end", "func[0]#last"] {
        assert!(explorer.url_at(position).is_ok(), "{position}");
    }
}

#[test]
fn what_is_no_recording_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("none.aft");
    let refused = |part: &str| {
        let error = afterimage_explorer::Explorer::open(&at, Options::default());
        let error = error.err().unwrap().to_string();
        assert!(
            error.contains("none.aft") && error.contains(part),
            "{error}"
        );
    };
    refused("none.aft");
    fs::write(&at, "no recording").unwrap();
    refused("record");
}
