//! Implements the part of HTTP that a local page needs.
//!
//! All input is limited in size and time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The maximum number of bytes of a request's head.
const HEAD: usize = 16 << 10;
/// The maximum number of headers.
const HEADERS: usize = 64;
/// The maximum number of bytes of a request that sends a note.
pub(crate) const BODY: usize = 1 << 20;
/// The time that a request may take to arrive.
const ARRIVES: Duration = Duration::from_secs(10);
/// The time for which input is still read, and dropped, after the last answer.
const DRAINS: Duration = Duration::from_secs(1);
/// The time that a connection stays open without a request.
const IDLE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: String,
    /// The path, which begins with `/`.
    pub path: String,
    /// The part after `?`.
    pub query: String,
    headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header, if the header occurs once and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, value) = all.next()?;
        match all.next() {
            None => std::str::from_utf8(value).ok(),
            Some(_) => None,
        }
    }

    /// Whether a header is present.
    pub fn has(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

/// The reason why there is no request.
#[derive(Debug)]
pub(crate) enum NoRequest {
    /// The other side closed the connection, or sent nothing.
    Gone,
    /// The request is refused.
    Refused(Response),
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub status: u16,
    pub content_type: &'static str,
    /// Further headers. Their values are plain text.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// Whether the browser may keep the response, for as long as the address is valid.
    pub is_kept: bool,
}

impl Response {
    /// Creates the response to a successful request.
    pub fn of(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            content_type,
            headers: Vec::new(),
            body: body.into(),
            is_kept: false,
        }
    }

    /// Creates a response that refuses a request, with the reason in one sentence.
    pub fn refused(status: u16, why: impl AsRef<str>) -> Self {
        let body = serde_json::json!({ "error": why.as_ref() }).to_string();
        Self {
            status,
            content_type: "application/json",
            headers: Vec::new(),
            body: body.into(),
            is_kept: false,
        }
    }

    /// Creates the response to a question that has no answer, with the reason in one sentence. The
    /// request succeeds: a browser reports every other status as an error of the page.
    pub fn unanswered(why: impl AsRef<str>) -> Self {
        Self::refused(200, why)
    }

    fn reason(&self) -> &'static str {
        match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Error",
        }
    }

    /// Writes the response. With `is_head`, leaves out its body. With `keeps`, the connection stays
    /// open.
    pub fn write(&self, out: &mut impl Write, is_head: bool, keeps: bool) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n{SAFE}",
            self.status,
            self.reason(),
            self.content_type,
            self.body.len(),
            if keeps { "keep-alive" } else { "close" },
        );
        head.push_str(match self.is_kept {
            true => "Cache-Control: private, max-age=86400, immutable\r\n",
            false => "Cache-Control: no-store\r\n",
        });
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        out.write_all(head.as_bytes())?;
        if !is_head {
            out.write_all(&self.body)?;
        }
        out.flush()
    }
}

/// The headers of each response. The page loads only its own files, and no other page may show it
/// in a frame.
const SAFE: &str = "\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n";

/// A connection, and the bytes of the next request that have arrived.
pub(crate) struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(ARRIVES))?;
        Ok(Self {
            stream,
            ahead: Vec::new(),
        })
    }

    /// Reads more input, until a deadline.
    fn more(&mut self, until: Instant) -> Result<(), NoRequest> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return if self.ahead.is_empty() {
                Err(NoRequest::Gone)
            } else {
                Err(NoRequest::Refused(Response::refused(
                    408,
                    "the request did not arrive within 10 seconds; send it in one piece",
                )))
            };
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut part = [0; 8192];
        match self.stream.read(&mut part) {
            Ok(0) => Err(NoRequest::Gone),
            Ok(read) => {
                self.ahead.extend_from_slice(&part[..read]);
                Ok(())
            }
            Err(error) => match error.kind() {
                // The next call detects that the time is up.
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(NoRequest::Gone),
            },
        }
    }

    /// Returns the next request.
    pub fn next(&mut self) -> Result<Request, NoRequest> {
        let refused = |status, why: &str| NoRequest::Refused(Response::refused(status, why));
        let idle = Instant::now() + IDLE;
        while self.ahead.is_empty() {
            self.more(idle)?;
        }
        let until = Instant::now() + ARRIVES;
        let (mut request, head) = loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let mut parsed = httparse::Request::new(&mut headers);
            match parsed.parse(&self.ahead) {
                Ok(httparse::Status::Complete(length)) if length <= HEAD => {
                    break (read(&parsed), length);
                }
                Ok(httparse::Status::Partial) if self.ahead.len() <= HEAD => self.more(until)?,
                Ok(_) => return Err(refused(431, "the request's head is longer than 16 KiB")),
                Err(httparse::Error::TooManyHeaders) => {
                    return Err(refused(431, "the request has more than 64 headers"));
                }
                Err(error) => {
                    return Err(refused(
                        400,
                        &format!("this is not an HTTP/1.1 request: {error}"),
                    ));
                }
            }
        };
        if request.has("transfer-encoding") {
            return Err(refused(
                400,
                "send the body with Content-Length, not in chunks",
            ));
        }
        let length = if request.has("content-length") {
            let length = request.header("content-length");
            let Some(length) = length.and_then(|text| text.parse::<usize>().ok()) else {
                return Err(refused(400, "Content-Length is not a number"));
            };
            length
        } else {
            0
        };
        if length > BODY {
            return Err(refused(413, "the body is longer than 1 MiB"));
        }
        while self.ahead.len() < head + length {
            self.more(until)?;
        }
        request.body = self.ahead[head..head + length].to_vec();
        self.ahead.drain(..head + length);
        Ok(request)
    }

    /// Writes a response.
    pub fn answer(&mut self, response: &Response, is_head: bool, keeps: bool) -> io::Result<()> {
        response.write(&mut self.stream, is_head, keeps)
    }

    /// Closes the connection after its last answer. If input were left unread, the connection would
    /// be reset, and the other side might lose the answer.
    pub fn close(mut self) {
        let until = Instant::now() + DRAINS;
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut part = [0; 8192];
        let mut drained = 0;
        while drained < BODY {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return;
            }
            match self.stream.read(&mut part) {
                Ok(0) | Err(_) => return,
                Ok(read) => drained += read,
            }
        }
    }
}

fn read(parsed: &httparse::Request<'_, '_>) -> Request {
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = parsed.headers.iter();
    Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers
            .map(|header| (header.name.to_owned(), header.value.to_vec()))
            .collect(),
        body: Vec::new(),
    }
}
