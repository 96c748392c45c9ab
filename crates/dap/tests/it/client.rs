//! A client that speaks the protocol over two pipes with a server in a thread.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::thread::{self, JoinHandle};

use anyhow::Result;
use serde_json::{Value, json};

use crate::programs::Here;

pub struct Client {
    to: Option<PipeWriter>,
    from: BufReader<PipeReader>,
    seq: u64,
    /// The events before the awaited message.
    pub events: Vec<Value>,
    pub server: Option<JoinHandle<Result<()>>>,
}

impl Client {
    pub fn new() -> Self {
        let (input, to) = pipe().unwrap();
        let (from, output) = pipe().unwrap();
        let server =
            thread::spawn(move || afterimage_dap::serve(BufReader::new(input), output, &Here));
        Self {
            to: Some(to),
            from: BufReader::new(from),
            seq: 0,
            events: Vec::new(),
            server: Some(server),
        }
    }

    /// Creates a client that is ready for `launch` or `attach`.
    pub fn initialized() -> Self {
        let mut client = Self::new();
        client.done("initialize", json!({ "adapterID": "afterimage" }));
        client
    }

    /// Creates a client at the beginning of a recording.
    pub fn at(recording: &Path) -> Self {
        let mut client = Self::initialized();
        client.done(
            "attach",
            json!({ "recording": recording, "stopOnEntry": true }),
        );
        client.done("configurationDone", json!({}));
        assert_eq!(client.stopped()["reason"], "entry");
        client
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.to.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Ends the input of the server.
    pub fn leave(&mut self) {
        self.to = None;
    }

    pub fn send(&mut self, command: &str, arguments: Value) -> u64 {
        self.seq += 1;
        let message = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        let text = message.to_string();
        let whole = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.raw(whole.as_bytes());
        self.seq
    }

    /// Returns the next message, or `None` if the server has left.
    pub fn read(&mut self) -> Option<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim() {
                "" => break,
                line => {
                    length = line
                        .strip_prefix("Content-Length: ")
                        .unwrap()
                        .parse()
                        .unwrap()
                }
            }
        }
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).unwrap();
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    /// Returns the response to a request.
    pub fn response(&mut self, seq: u64) -> Value {
        loop {
            let message = self.read().expect("a response");
            if message["type"] == "response" && message["request_seq"] == seq {
                return message;
            }
            self.events.push(message);
        }
    }

    pub fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let seq = self.send(command, arguments);
        self.response(seq)
    }

    /// Makes a request that succeeds. Returns the body.
    #[track_caller]
    pub fn done(&mut self, command: &str, arguments: Value) -> Value {
        let response = self.ask(command, arguments);
        assert_eq!(response["success"], true, "{response}");
        response["body"].clone()
    }

    /// Makes a request that fails. Returns the reason.
    #[track_caller]
    pub fn refused(&mut self, command: &str, arguments: Value) -> String {
        let response = self.ask(command, arguments);
        assert_eq!(response["success"], false, "{response}");
        let message = response["message"].as_str().unwrap().to_owned();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    /// Waits for an event, and returns its body.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            let found = self.events.iter().position(|event| event["event"] == name);
            if let Some(found) = found {
                return self.events.remove(found)["body"].clone();
            }
            let message = self.read().expect("an event");
            self.events.push(message);
        }
    }

    pub fn stopped(&mut self) -> Value {
        self.event("stopped")
    }

    /// Resumes the program and waits until it stops.
    #[track_caller]
    pub fn go(&mut self, command: &str) -> Value {
        self.done(command, json!({ "threadId": 1 }));
        self.stopped()
    }

    /// Returns the frames of the stack.
    pub fn frames(&mut self) -> Vec<Value> {
        let body = self.done("stackTrace", json!({ "threadId": 1 }));
        body["stackFrames"].as_array().unwrap().clone()
    }

    /// Returns the line and the function of the current position.
    pub fn here(&mut self) -> (i64, String) {
        let frame = self.frames().remove(0);
        let name = frame["name"].as_str().unwrap().to_owned();
        (frame["line"].as_i64().unwrap(), name)
    }

    /// Returns the variables of a reference.
    pub fn variables(&mut self, reference: u64) -> Vec<Value> {
        let body = self.done("variables", json!({ "variablesReference": reference }));
        body["variables"].as_array().unwrap().clone()
    }

    /// Returns the local variables of a frame.
    pub fn locals(&mut self, frame: u64) -> Vec<Value> {
        let scopes = self.done("scopes", json!({ "frameId": frame }));
        let reference = scopes["scopes"][0]["variablesReference"].as_u64().unwrap();
        self.variables(reference)
    }

    pub fn console(&mut self, text: &str) -> String {
        let arguments = json!({ "expression": text, "context": "repl" });
        let body = self.done("evaluate", arguments);
        body["result"].as_str().unwrap().to_owned()
    }

    /// Returns the output so far.
    pub fn said(&mut self) -> String {
        let outputs = self
            .events
            .iter()
            .filter(|event| event["event"] == "output");
        outputs
            .map(|event| event["body"]["output"].as_str().unwrap())
            .collect()
    }
}
