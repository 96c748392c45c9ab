//! Connects the server to its client: reads requests, and sends messages.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use afterimage::{Monitor, Note};
use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::{Value, json};

use crate::protocol::Request;
use crate::wire::{self, Incoming};

/// The destination of text that a client shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Text of the debugger itself.
    Console,
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
}

impl Category {
    fn name(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The outgoing messages, which any thread may send.
struct Out<W> {
    to: W,
    seq: u64,
    /// Whether the client has stopped reading.
    is_gone: bool,
}

impl<W: Write> Out<W> {
    fn send(&mut self, mut message: Value) {
        self.seq += 1;
        message["seq"] = self.seq.into();
        if !self.is_gone && wire::write(&mut self.to, &message).is_err() {
            self.is_gone = true;
        }
    }
}

/// The client: its requests, and the messages to it.
pub(crate) struct Client<W> {
    out: Arc<Mutex<Out<W>>>,
    incoming: Receiver<Incoming>,
    waiting: Cell<VecDeque<Request>>,
    /// Whether the current operation should end.
    pub cancelled: Arc<AtomicBool>,
}

/// Requests that end the current operation.
const INTERRUPT: [&str; 4] = ["pause", "disconnect", "terminate", "cancel"];

impl<W: Write + Send + 'static> Client<W> {
    /// Reads requests on another thread, so that they can interrupt an operation.
    pub(crate) fn new(input: impl BufRead + Send + 'static, output: W) -> Self {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (sender, incoming) = channel();
        let flag = Arc::clone(&cancelled);
        thread::spawn(move || listen(input, &sender, &flag));
        Self {
            out: Arc::new(Mutex::new(Out {
                to: output,
                seq: 0,
                is_gone: false,
            })),
            incoming,
            waiting: Cell::default(),
            cancelled,
        }
    }

    fn send(&self, message: Value) {
        self.out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(message);
    }

    /// Returns the next request, or `None` if the client has left. Skips responses. Answers every
    /// other message that is not a request with an error. If such a message has no sequence number,
    /// reports the error as output.
    pub(crate) fn next(&self) -> Option<Request> {
        loop {
            let mut waiting = self.waiting.take();
            let next = waiting.pop_front();
            self.waiting.set(waiting);
            if next.is_some() {
                return next;
            }
            match self.incoming.recv() {
                Ok(Incoming::Message(bytes)) => {
                    if let Some(request) = self.parsed(&bytes) {
                        return Some(request);
                    }
                }
                Ok(Incoming::Broken(why)) => {
                    self.output(Category::Stderr, &format!("afterimage: {why}\n"));
                    return None;
                }
                Ok(Incoming::End) | Err(_) => return None,
            }
        }
    }

    fn parsed(&self, bytes: &[u8]) -> Option<Request> {
        let message: Value = match serde_json::from_slice(bytes) {
            Ok(message) => message,
            Err(error) => {
                let text = format!("afterimage: a message is not JSON: {error}\n");
                self.output(Category::Stderr, &text);
                return None;
            }
        };
        // Clients may send a response although this server sends no requests. Skip it.
        if message["type"] == "response" {
            return None;
        }
        match serde_json::from_value::<Request>(message.clone()) {
            Ok(request) if request.kind == "request" => Some(request),
            other => {
                let why = match other {
                    Ok(request) => format!("a message of type {:?} is not a request", request.kind),
                    Err(error) => format!("a message is not a request: {error}"),
                };
                match message["seq"].as_u64() {
                    Some(seq) => {
                        let command = message["command"].as_str().unwrap_or_default().to_owned();
                        self.fail(&Request::answered(seq, command), &why);
                    }
                    None => self.output(Category::Stderr, &format!("afterimage: {why}\n")),
                }
                None
            }
        }
    }

    /// Answers a request.
    pub(crate) fn succeed(&self, request: &Request, body: impl Serialize) {
        let body = serde_json::to_value(body).unwrap_or_default();
        let mut message = json!({
            "type": "response",
            "request_seq": request.seq,
            "success": true,
            "command": request.command,
        });
        if !body.is_null() {
            message["body"] = body;
        }
        self.send(message);
    }

    /// Refuses a request.
    pub(crate) fn fail(&self, request: &Request, why: &str) {
        self.send(json!({
            "type": "response",
            "request_seq": request.seq,
            "success": false,
            "command": request.command,
            "message": why,
            "body": { "error": { "id": 1, "format": escaped(why), "showUser": true } },
        }));
    }

    /// Sends an event.
    pub(crate) fn event(&self, event: &str, body: impl Serialize) {
        let body = serde_json::to_value(body).unwrap_or_default();
        let mut message = json!({ "type": "event", "event": event });
        if !body.is_null() {
            message["body"] = body;
        }
        self.send(message);
    }

    /// Shows text to the user.
    pub(crate) fn output(&self, category: Category, text: &str) {
        self.event(
            "output",
            json!({ "category": category.name(), "output": text }),
        );
    }

    /// Returns whether the client interrupted the operation that has just ended, and clears the
    /// flag.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.cancelled.swap(false, Ordering::Relaxed)
    }

    /// Returns a monitor that sends a session's notes to the client.
    pub(crate) fn monitor(&self) -> Telling<W> {
        Telling(Arc::clone(&self.out))
    }

    /// Reads the arguments of a request, and refuses arguments of the wrong form.
    pub(crate) fn arguments<T: for<'d> serde::Deserialize<'d>>(request: &Request) -> Result<T> {
        let arguments = match &request.arguments {
            Value::Null => json!({}),
            arguments => arguments.clone(),
        };
        match serde_json::from_value(arguments) {
            Ok(found) => Ok(found),
            Err(error) => bail!("invalid arguments of {}: {error}", request.command),
        }
    }
}

/// Replaces braces in the text of an error, because clients treat it as a format in which braces
/// enclose variables.
fn escaped(text: &str) -> String {
    text.replace(['{', '}'], "'")
}

fn listen(mut input: impl BufRead, to: &Sender<Incoming>, cancelled: &AtomicBool) {
    loop {
        let incoming = wire::read(&mut input);
        let ends = !matches!(incoming, Incoming::Message(_));
        let interrupts = match &incoming {
            Incoming::Message(bytes) => {
                let message: Option<Value> = serde_json::from_slice(bytes).ok();
                let command = message
                    .as_ref()
                    .and_then(|message| message["command"].as_str());
                command.is_some_and(|command| INTERRUPT.contains(&command))
            }
            _ => true,
        };
        if interrupts {
            cancelled.store(true, Ordering::Relaxed);
        }
        if to.send(incoming).is_err() || ends {
            return;
        }
    }
}

/// Sends a session's notes to a client.
pub(crate) struct Telling<W>(Arc<Mutex<Out<W>>>);

impl<W: Write + Send> Monitor for Telling<W> {
    fn note(&self, at: &Path, note: &Note) {
        let text = format!("{}\n", note.about(at));
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.send(json!({
            "type": "event",
            "event": "output",
            "body": { "category": "console", "output": text },
        }));
    }
}
