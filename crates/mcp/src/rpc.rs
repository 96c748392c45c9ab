//! Reads and writes messages of JSON-RPC 2.0, one per line.

use std::io::{self, BufRead, Read, Write};
use std::sync::{Mutex, PoisonError};

use afterimage::present::{Content, Visible};
use serde_json::{Map, Value, json};

/// The maximum length of a message. Longer messages are refused, and not read into memory.
const LONGEST: u64 = 4 << 20;

/// The fault in a message: a JSON-RPC error code, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub code: i32,
    pub message: String,
}

impl RpcError {
    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(-32601, message)
    }

    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    fn new(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

/// A message from the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        parameters: Map<String, Value>,
    },
    Notification {
        method: String,
        parameters: Map<String, Value>,
    },
    /// A response, which needs no answer.
    Response,
}

/// Reads the next message. Returns `None` at the end of the input. If the message is faulty,
/// returns the fault with the id of the request, if known.
pub(crate) fn read(
    input: &mut dyn BufRead,
) -> io::Result<Option<Result<Message, (Value, RpcError)>>> {
    loop {
        let mut line = Vec::new();
        let read = (&mut *input)
            .take(LONGEST + 1)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 > LONGEST && !line.ends_with(b"\n") {
            skip_line(input)?;
            let why = format!("a message has at most {LONGEST} bytes");
            return Ok(Some(Err((Value::Null, RpcError::invalid(why)))));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(parse(&line)));
        }
    }
}

/// Skips the rest of a line without reading it into memory.
fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let held = input.fill_buf()?;
        let (used, over) = match held.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (held.len(), held.is_empty()),
        };
        input.consume(used);
        if over {
            return Ok(());
        }
    }
}

fn parse(line: &[u8]) -> Result<Message, (Value, RpcError)> {
    let unnamed = |error| (Value::Null, error);
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let why = if error.is_eof() {
            format!("incomplete message: {error}")
        } else {
            format!("this is not JSON: {error}")
        };
        unnamed(RpcError::parse(why))
    })?;
    let mut object = match value {
        Value::Object(object) => object,
        Value::Array(_) => {
            let why = "batches are not supported: send one message per line";
            return Err(unnamed(RpcError::invalid(why)));
        }
        _ => return Err(unnamed(RpcError::invalid("a message is a JSON object"))),
    };
    let id = object.remove("id");
    if let Some(id) = &id
        && !(id.is_string() || id.is_i64() || id.is_u64())
    {
        let why = "an id is a string or a whole number of at most 64 bits";
        return Err(unnamed(RpcError::invalid(why)));
    }
    let named = |error| (id.clone().unwrap_or(Value::Null), error);
    if object.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(named(RpcError::invalid("\"jsonrpc\" must be \"2.0\"")));
    }
    if object.contains_key("result") || object.contains_key("error") {
        return Ok(Message::Response);
    }
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        _ => return Err(named(RpcError::invalid("\"method\" must be a string"))),
    };
    let parameters = match object.remove("params") {
        None => Map::new(),
        Some(Value::Object(parameters)) => parameters,
        Some(_) => return Err(named(RpcError::invalid("\"params\" must be an object"))),
    };
    Ok(match id {
        Some(id) => Message::Request {
            id,
            method,
            parameters,
        },
        None => Message::Notification { method, parameters },
    })
}

/// The destination of answers. Two threads write to it, one line at a time.
pub(crate) struct Output(Mutex<Writer>);

struct Writer {
    to: Box<dyn Write + Send>,
    gone: bool,
}

impl Output {
    pub(crate) fn new(to: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(Writer { to, gone: false }))
    }

    /// Whether the client has stopped reading.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).gone
    }

    pub(crate) fn result(&self, id: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    pub(crate) fn error(&self, id: &Value, error: &RpcError) {
        let RpcError { code, message } = error;
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    pub(crate) fn notify(&self, method: &str, parameters: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
    }

    /// Writes a message. If writing fails, assumes that the client has stopped reading.
    fn send(&self, message: &Value) {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = Visible::new(Vec::new(), Content::Text);
        let made = write!(line, "{message}").and_then(|()| line.finish());
        let mut line = line.into_inner();
        line.push(b'\n');
        let sent = made.and_then(|()| {
            writer.to.write_all(&line)?;
            writer.to.flush()
        });
        writer.gone |= sent.is_err();
    }
}
