//! Serves a recording as a page.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use afterimage::profile::CodeFilter;
use afterimage::sources::SourcePaths;
use anyhow::Result;
use serde_json::json;

use crate::assets::asset;
use crate::desk::Desk;
use crate::guard::Guard;
use crate::http::{Connection, NoRequest, Request, Response};
use crate::notes::{self, Notes};

/// The options for serving a page.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The port. `None` means the next free port from [`Explorer::PORT`] on.
    pub port: Option<u16>,
    /// Whether notes are shown but cannot be saved.
    pub read_only: bool,
    /// The filter for the user's own code.
    pub code: CodeFilter,
    /// The places of sources. All other sources come from the recording, or from files inside the
    /// current folder or the recording's folder.
    pub sources: SourcePaths,
}

/// The reason why no page can be served.
#[derive(Debug, thiserror::Error)]
pub enum ExplorerError {
    /// The port is in use, or may not be used.
    #[error(
        "port {port} of the loopback address cannot be used: {why}; choose another with --port, or leave it out"
    )]
    Port {
        /// The port.
        port: u16,
        /// The reason.
        why: io::Error,
    },
    /// None of the ports that are tried is free.
    #[error(
        "no port from {first} to {last} of the loopback address is free; choose one with --port"
    )]
    NoPort {
        /// The first port that was tried.
        first: u16,
        /// The last port that was tried.
        last: u16,
    },
    /// The system provides no random numbers for the token.
    #[error("the system provides no random numbers: {0}")]
    Random(io::Error),
}

/// The maximum number of open connections. A browser opens six.
const CONNECTIONS: usize = 64;
/// The maximum number of connections that are being refused. Further connections are closed at
/// once.
const REFUSED: usize = 192;
/// The number of ports to try.
const TRIED: u16 = 100;

/// A recording as a page.
pub struct Explorer {
    listener: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    desk: Desk,
    guard: Guard,
    read_only: bool,
    /// The connections that are being answered.
    open: Counter,
    /// The connections that are being refused.
    refused: Counter,
}

/// The number of connections of a kind.
type Counter = Arc<AtomicUsize>;

impl Explorer {
    /// The first port that is tried.
    pub const PORT: u16 = 7380;

    /// Opens a recording, and a port for its page.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording, is damaged or is still being recorded, no
    /// port is free, or the system provides no random numbers.
    pub fn open(at: &Path, options: Options) -> Result<Self> {
        let beside = at.parent().map(|folder| {
            if folder.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                folder.to_owned()
            }
        });
        let roots = std::env::current_dir().into_iter().chain(beside);
        let desk = Desk::open(at, options.code, options.sources.within(roots))?;
        let listener = listener(options.port)?;
        let port = listener.local_addr()?.port();
        let guard = Guard::new(port).map_err(ExplorerError::Random)?;
        Ok(Self {
            listener,
            shared: Arc::new(Shared {
                desk,
                guard,
                read_only: options.read_only,
                open: Counter::default(),
                refused: Counter::default(),
            }),
        })
    }

    /// Returns the page's address. Anyone who knows it may use the page.
    pub fn url(&self) -> String {
        self.shared.guard.url()
    }

    /// Returns the page's address at a position of the run.
    ///
    /// # Errors
    /// Returns an error if the position is neither a time nor a place of the program.
    pub fn url_at(&self, position: &str) -> Result<String> {
        self.shared.desk.check_position(position)?;
        Ok(format!("{}#at={}", self.url(), encoded(position)))
    }

    /// Answers requests until the process ends.
    pub fn serve(self) {
        for stream in self.listener.incoming() {
            // Ignore a client that left while it was waiting.
            let Ok(stream) = stream else { continue };
            let shared = Arc::clone(&self.shared);
            // If no thread can be started, the client gets no answer. It may ask again.
            if let Some(open) = Open::of(&shared.open, CONNECTIONS) {
                let _ = thread::Builder::new().spawn(move || {
                    shared.converse(stream);
                    drop(open);
                });
            } else if let Some(open) = Open::of(&shared.refused, REFUSED) {
                let _ = thread::Builder::new().spawn(move || {
                    refuse(stream);
                    drop(open);
                });
            }
        }
    }
}

/// Opens the requested port or, without a request, the first free port from [`Explorer::PORT`] on.
fn listener(port: Option<u16>) -> Result<TcpListener, ExplorerError> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    if let Some(port) = port {
        return bind(port).map_err(|why| ExplorerError::Port { port, why });
    }
    let (first, last) = (Explorer::PORT, Explorer::PORT + TRIED - 1);
    let mut all = (first..=last).filter_map(|port| bind(port).ok());
    all.next().ok_or(ExplorerError::NoPort { first, last })
}

/// An open connection, counted until it is dropped.
struct Open(Counter);

impl Open {
    /// Counts a connection, unless there are `most` of its kind.
    fn of(counter: &Counter, most: usize) -> Option<Self> {
        let count = counter.fetch_add(1, Ordering::SeqCst) + 1;
        let open = Self(Arc::clone(counter));
        (count <= most).then_some(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Refuses a connection because too many are open.
fn refuse(stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    let busy = Response::refused(503, "too many connections at once; ask again");
    if connection.answer(&busy, false, false).is_ok() {
        connection.close();
    }
}

impl Shared {
    /// Answers the requests of a connection, one after another.
    fn converse(&self, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else {
            return;
        };
        loop {
            let request = match connection.next() {
                Ok(request) => request,
                Err(NoRequest::Gone) => return,
                Err(NoRequest::Refused(response)) => {
                    if connection.answer(&response, false, false).is_ok() {
                        connection.close();
                    }
                    return;
                }
            };
            let response = match self.guard.admit(&request) {
                Ok(path) => self.answer(path, &request),
                Err(response) => response,
            };
            let keeps = response.status != 403 && request.header("connection") != Some("close");
            let is_head = request.method == "HEAD";
            if connection.answer(&response, is_head, keeps).is_err() {
                return;
            }
            if !keeps {
                return connection.close();
            }
        }
    }

    fn answer(&self, path: &str, request: &Request) -> Response {
        if let Some(question) = path.strip_prefix("api/") {
            return match question {
                "page" => self.page(),
                "progress" => self.desk.progress(),
                "cancel" => self.desk.cancel(&request.query),
                "notes" => self.notes(request),
                _ => self
                    .desk
                    .ask(question, &request.query, request.header("x-view")),
            };
        }
        match asset(path) {
            // The address has a new token whenever the server is started.
            Some(asset) => Response {
                is_kept: !asset.content_type.starts_with("text/html"),
                ..Response::of(asset.content_type, asset.bytes)
            },
            None => Response::refused(404, "the page has no such part; reload it"),
        }
    }

    /// Returns the data that only the server knows.
    fn page(&self) -> Response {
        let at = self.desk.at.display().to_string();
        let told = json!({
            "file": at,
            "command": format!("afterimage explore {}", afterimage::text::pasted(&self.desk.at)),
            "read_only": self.read_only,
            "notes": notes::beside(&self.desk.at).display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        });
        Response::of("application/json", told.to_string())
    }

    fn notes(&self, request: &Request) -> Response {
        let told = if request.method == "POST" {
            if self.read_only {
                return Response::refused(
                    403,
                    "notes cannot be saved: afterimage explore was started with --read-only",
                );
            }
            match serde_json::from_slice::<Notes>(&request.body) {
                Ok(notes) => notes::save(&self.desk.at, &notes),
                Err(error) => {
                    return Response::refused(400, format!("these are not notes: {error}"));
                }
            }
        } else {
            notes::load(&self.desk.at)
        };
        let told = told.and_then(|notes| Ok(serde_json::to_vec(&notes)?));
        match told {
            Ok(told) => Response::of("application/json", told),
            Err(error) => Response::unanswered(afterimage::text::sentence(&error)),
        }
    }
}

/// Encodes a string for the part of an address after `#`.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
