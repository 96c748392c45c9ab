//! Implements a client of `afterimage mcp` with the features that the policy needs.

use crate::tool;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that an answer may take. A planted bug can cause a run of billions of steps,
/// which would keep a server busy for an hour.
const LONGEST: Duration = Duration::from_secs(120);

/// A server and the streams to it.
pub struct Client {
    server: Child,
    to: ChildStdin,
    /// The lines that the server writes. A thread reads them, so that waiting for a line can time
    /// out.
    from: Receiver<std::io::Result<String>>,
    id: u64,
}

/// An answer of a tool.
pub struct Answer {
    pub text: String,
    /// The structured answer; `null` for a refusal.
    pub document: Value,
    pub took: Duration,
}

impl Client {
    /// Starts a server that may read a folder.
    ///
    /// # Errors
    /// Returns an error if the server does not start, or does not speak the protocol.
    pub fn start(program: &Path, root: &Path) -> Result<Self> {
        let mut command = tool::start(program);
        command.arg("mcp").arg("--root").arg(root);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server = started.with_context(|| format!("cannot run {}", program.display()))?;
        let to = server.stdin.take().context("no way to the server")?;
        let out = server.stdout.take().context("no way from the server")?;
        let (lines, from) = mpsc::channel();
        thread::spawn(move || {
            // Nobody reads after the client has been dropped.
            let _ = BufReader::new(out)
                .lines()
                .try_for_each(|line| lines.send(line));
        });
        let mut client = Self {
            server,
            to,
            from,
            id: 0,
        };
        client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "xtask", "version": "1" },
            }),
        )?;
        Ok(client)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Returns an error if the server fails, or does not answer in time. A refusal counts as an
    /// answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer> {
        let begun = Instant::now();
        let parameters = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", &parameters)?;
        let text = result["content"][0]["text"].as_str();
        Ok(Answer {
            text: text.context("an answer without text")?.to_owned(),
            document: result["structuredContent"].clone(),
            took: begun.elapsed(),
        })
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.id += 1;
        let id = self.id;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        writeln!(self.to, "{message}").context("the server does not read")?;
        let until = Instant::now() + LONGEST;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = match self.from.recv_timeout(left) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("no answer within {} s", LONGEST.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the server ended with {}", self.server.wait()?)
                }
            };
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                if !answer["error"].is_null() {
                    bail!("{message}: {}", answer["error"]);
                }
                return Ok(answer["result"].take());
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server was started here and has no data that would be lost.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
