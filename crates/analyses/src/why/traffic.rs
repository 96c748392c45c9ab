//! Counts the bytes that a run read from the host's streams and files, and wrote to them.

use std::collections::HashMap;

use afterimage_program::Import;
use afterimage_replay::values::HostReads;
use afterimage_trace::TraceFile;

use super::WhyError;
use super::files::{Calls, Who};
use super::input::Stream;

/// The traffic between a run and one stream or opened file. A file that was opened several times
/// has several entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The stream. `None` for an opened file whose path was not looked up.
    pub stream: Option<Stream>,
    /// The number of bytes that the program read. For a folder, the bytes of its listing.
    pub read: u64,
    /// The number of bytes that the program wrote.
    pub written: u64,
}

/// The number of entries, from the first, for which to look up the path. Each look-up examines
/// memory once.
const NAMED: usize = 100;

/// Returns the traffic between a run and the host's streams and files, in the order of the first
/// transfers. `host` supplies the paths of opened files. O(events of the log).
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn traffic(
    file: &TraceFile,
    imports: &[Import],
    host: Option<&HostReads<'_, '_>>,
) -> Result<Vec<Traffic>, WhyError> {
    let mut calls = Calls::new(file, imports)?;
    let mut known: HashMap<Who, usize> = HashMap::new();
    let mut all: Vec<Traffic> = Vec::new();
    while let Some(call) = calls.next()? {
        // The call stores here the number of bytes that it moved.
        let (reads, word) = match call.name {
            "fd_read" => (true, 3),
            "fd_pread" | "fd_readdir" | "sock_recv" => (true, 4),
            "fd_write" => (false, 3),
            "fd_pwrite" | "sock_send" => (false, 4),
            _ => {
                calls.files.follow(&call);
                continue;
            }
        };
        let bytes = call.word(word).filter(|_| call.succeeded).unwrap_or(0);
        if bytes > 0 {
            let fd = call.argument(0) as u32;
            let who = calls.files.who(fd);
            let at = match known.get(&who) {
                Some(&at) => at,
                None => {
                    let named = all.len() < NAMED;
                    let stream = calls.files.stream_if(fd, host.filter(|_| named))?;
                    known.insert(who, all.len());
                    all.push(Traffic {
                        stream,
                        read: 0,
                        written: 0,
                    });
                    all.len() - 1
                }
            };
            let sum = if reads {
                &mut all[at].read
            } else {
                &mut all[at].written
            };
            *sum = sum.saturating_add(bytes);
        }
        calls.files.follow(&call);
    }
    Ok(all)
}
