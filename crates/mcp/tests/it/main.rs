//! Tests the server from outside: the protocol, and its reaction to bad input. The tests of the
//! command line compare the tools' answers with its JSON.

mod bad_input;
mod files;
mod protocol;

use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use afterimage_mcp::{Roots, serve};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Makes a recording of a program without lines that was stopped after 383 blocks.
pub fn recording(at: &Path) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/freeze/forever.aft");
    fs::copy(kept, at).unwrap();
}

/// Makes a folder with this recording as `forever.aft`.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    recording(&folder.path().join("forever.aft"));
    folder
}

/// Returns roots with one folder.
pub fn roots(folder: &Path) -> Roots {
    Roots::new(&[PathBuf::from(folder)]).unwrap()
}

/// Collects the written bytes.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<u8>>>);

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns all answers to this input.
pub fn answers(folder: &Path, input: &[u8]) -> Vec<Value> {
    let collected = Collected::default();
    serve(&roots(folder), &mut &*input, collected.clone()).unwrap();
    let bytes = collected.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The first message of a client.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

/// Returns the answers to some lines after the initialisation, without the answer to the
/// initialisation.
pub fn after_initialize(folder: &Path, lines: &[&str]) -> Vec<Value> {
    let mut input = format!("{INITIALIZE}\n");
    for line in lines {
        input += line;
        input.push('\n');
    }
    let mut all = answers(folder, input.as_bytes());
    let first = all.remove(0);
    assert_eq!(first["id"], "first");
    all
}

/// A connection on which calls follow one another.
pub struct Connection {
    to: PipeWriter,
    from: BufReader<PipeReader>,
    server: JoinHandle<io::Result<()>>,
    id: u64,
}

impl Connection {
    /// Starts a server that may read a folder.
    pub fn open(folder: &Path) -> Self {
        let (input, to) = io::pipe().unwrap();
        let (from, output) = io::pipe().unwrap();
        let roots = roots(folder);
        let server = thread::spawn(move || serve(&roots, &mut BufReader::new(input), output));
        let mut connection = Self {
            to,
            from: BufReader::new(from),
            server,
            id: 0,
        };
        connection.send(INITIALIZE);
        connection.receive();
        connection
    }

    fn send(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Calls a tool, and returns its result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        let parameters = json!({ "name": tool, "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters });
        self.send(&message.to_string());
        let mut answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].take()
    }

    /// Ends the input, and waits for the server.
    pub fn close(self) {
        drop(self.to);
        self.server.join().unwrap().unwrap();
    }
}

/// Returns the text of a result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
