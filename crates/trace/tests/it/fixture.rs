//! Checks that a file of every format version stays readable for ever.

use std::path::Path;

use afterimage_trace::TraceFile;

use crate::sample;

/// A file written by the version of this crate that defined format version 1. It must never be
/// written again, even if a new compressor would write other bytes.
const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/v1.aft");

#[test]
fn version_1_is_readable() {
    let file = TraceFile::open(Path::new(V1)).unwrap();
    assert_eq!(sample::assert_never_wrong(&file), 5);
    assert_eq!((file.state(), file.ignored_bytes()), (Some(2), 0));
    assert_eq!(file.verify().findings, []);
}

/// Makes the file, with `cargo test -p afterimage-trace make_the_fixture -- --ignored`. It does not
/// overwrite an existing file.
#[test]
#[ignore = "creates the fixture that the tests above read; run by hand, once for each version of the format"]
fn make_the_fixture() {
    let path = Path::new(V1);
    sample::record(path);
    sample::append(path).unwrap();
}
