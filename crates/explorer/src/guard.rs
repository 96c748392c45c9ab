//! Controls access to the page.
//!
//! Other pages of the same browser, other users of the machine, and foreign host names can all
//! reach the loopback address. However, none of them knows the token, and a browser states the
//! origin of each request.

use std::fs::File;
use std::io::{self, Read};

use crate::http::{Request, Response};

/// Checks requests against a token that only the user's browser knows: 128 random bits.
pub(crate) struct Guard {
    token: String,
    hosts: [String; 2],
}

impl Guard {
    /// Creates a guard with a new token.
    ///
    /// # Errors
    /// Returns an error if the system provides no random numbers.
    pub fn new(port: u16) -> io::Result<Self> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(Self {
            token: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        })
    }

    /// Returns the page's address.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// Returns the part of the requested path after the token, if access is permitted.
    ///
    /// # Errors
    /// Returns an error if access is refused. The error is the response to send.
    pub fn admit<'r>(&self, request: &'r Request) -> Result<&'r str, Response> {
        let refused = |why: &str| Err(Response::refused(403, why));
        let host = request.header("host");
        if !host.is_some_and(|host| self.hosts.iter().any(|known| known == host)) {
            return refused("the request is for another host; open the address that was printed");
        }
        let Some(rest) = request.path.strip_prefix('/') else {
            return refused("the request names no path");
        };
        let (token, rest) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return refused(
                "the address does not have the right token; open the address that afterimage explore printed",
            );
        }
        if request.has("origin") {
            let origin = request
                .header("origin")
                .and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|origin| self.hosts.iter().any(|known| known == origin)) {
                return refused("the request comes from another page");
            }
        }
        // A request from an address that the user typed, or clicked elsewhere, may open only the
        // page itself.
        let is_page = rest.is_empty() && request.method != "POST";
        match request.header("sec-fetch-site") {
            Some("same-origin" | "none") => {}
            Some(_) if is_page => {}
            None if !request.has("sec-fetch-site") => {}
            _ => return refused("the request comes from another page"),
        }
        match request.method.as_str() {
            "GET" | "HEAD" => Ok(rest),
            "POST" if rest == "api/notes" => {
                if request.has("origin") {
                    Ok(rest)
                } else {
                    refused("only the page itself may save notes: the request has no Origin")
                }
            }
            "POST" => Err(Response::refused(405, "POST is only for notes; use GET")),
            _ => Err(Response::refused(405, "use GET")),
        }
    }
}

/// Whether two strings are the same. The duration of the comparison does not reveal where they
/// differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
