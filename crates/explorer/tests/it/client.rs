//! A client that sends exactly the bytes of a test.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A client that knows the address of the page.
#[derive(Clone, Debug)]
pub struct Client {
    pub host: String,
    /// `/TOKEN/`.
    pub path: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Client {
    pub fn of(url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        Self {
            host: host.to_owned(),
            path: path.to_owned(),
        }
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.host).unwrap()
    }

    /// Sends these bytes, and returns everything received until the connection is closed.
    pub fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses a long request closes the connection before it has read the whole
        // request.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::read(&bytes)
    }

    /// Sends a request with these headers.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for header in headers {
            text.push_str(header);
            text.push_str("\r\n");
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.raw(format!("{text}\r\n{body}").as_bytes())
    }

    /// Requests a path in the same way as the page.
    pub fn get(&self, path: &str) -> Answer {
        let host = format!("Host: {}", self.host);
        self.send("GET", &format!("{}{path}", self.path), &[&host], "")
    }
}

impl Answer {
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Self {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Checks that the question has no answer, and that the reason is one sentence as JSON.
    #[track_caller]
    pub fn unanswered(&self, part: &str) {
        self.refusal(200, part);
    }

    /// Checks that the request was refused, with one sentence as JSON.
    #[track_caller]
    pub fn refusal(&self, status: u16, part: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let told: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let sentence = told["error"].as_str().unwrap();
        assert!(sentence.contains(part), "{sentence}");
        assert!(
            !sentence.contains('\n') && !sentence.ends_with('.'),
            "{sentence}"
        );
    }
}
