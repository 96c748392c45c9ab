//! Tests the server with clients other than the page.

mod client;
mod files;
mod guarded;
mod many;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use afterimage_explorer::{Explorer, Options};
use client::Client;

/// Makes a recording that was stopped after 383 blocks, in a separate folder.
fn recording(folder: &tempfile::TempDir) -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/freeze/forever.aft");
    let at = folder.path().join("forever.aft");
    fs::copy(kept, &at).unwrap();
    at
}

/// Serves a recording until the test ends.
fn serve(at: &Path, options: Options) -> Client {
    let explorer = Explorer::open(at, options).unwrap();
    let client = Client::of(&explorer.url());
    thread::spawn(move || explorer.serve());
    client
}

/// Serves the recording. The folder is removed when it is dropped.
fn served() -> (tempfile::TempDir, Client) {
    let folder = tempfile::tempdir().unwrap();
    let client = serve(&recording(&folder), Options::default());
    (folder, client)
}
