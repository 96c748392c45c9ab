//! Reports the program's output, with the time of each write.

use std::collections::HashMap;
use std::fmt::Write as _;

use afterimage_analyses::why::{Printed, Put, Stream};
use afterimage_present::{OutputDocument, OutputTotals, OutputWrite};
use afterimage_replay::steps::{WantedCall, host_bytes};
use afterimage_wet::FilePrinted;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::steps::follow_for;

/// Asks what the program printed to standard output and standard error, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputQuery {
    /// The maximum number of bytes of each stream to report, from its beginning.
    pub limit: u64,
}

/// The maximum number of calls to report for each stream.
const WRITES: usize = 20_000;

/// A call to report.
struct Shown {
    stream: &'static str,
    put: Put,
    /// The number of its bytes to report.
    most: u64,
}

/// For each call, the time of the block that ends with it, and the bytes that the host read.
type Reads = HashMap<u64, (u64, Vec<u8>)>;

impl OutputQuery {
    /// The default limit.
    pub const LIMIT: u64 = 256 << 10;

    /// Finds the calls in the log. Reads their bytes from the stored values, and follows the run
    /// for calls that the values lack.
    pub(crate) fn answer(&self, session: &Session) -> Result<OutputDocument> {
        let mut document = OutputDocument {
            writes: Vec::new(),
            totals: OutputTotals::default(),
            complete: true,
        };
        let mut calls = Vec::new();
        let streams = [(Stream::Output, "stdout"), (Stream::Error, "stderr")];
        for (stream, name) in streams {
            let mut printed = Printed::new(session.file(), &session.program().imports)?;
            let (mut all, mut shown) = (0, 0);
            while let Some(put) = printed.next(&stream)? {
                all = put.before.saturating_add(put.bytes);
                let room = self.limit.saturating_sub(put.before);
                document.complete &= room >= put.bytes && shown < WRITES;
                if room > 0 && shown < WRITES {
                    shown += 1;
                    calls.push(Shown {
                        stream: name,
                        most: put.bytes.min(room),
                        put,
                    });
                }
            }
            match stream {
                Stream::Error => document.totals.stderr = all,
                _ => document.totals.stdout = all,
            }
        }
        calls.sort_by_key(|shown| shown.put.call);
        let mut reads = stored(session, &calls)?;
        follow(session, &calls, &mut reads)?;
        for Shown { stream, put, most } in calls {
            // A run that was cut off may have ended before the call.
            let Some((t, read)) = reads.get(&put.call) else {
                document.complete = false;
                continue;
            };
            let bytes = put.part(read, put.before, most).iter();
            document.writes.push(OutputWrite {
                stream,
                call: put.call,
                t: *t,
                first: put.before,
                bytes: bytes.fold(String::new(), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                }),
            });
        }
        Ok(document)
    }
}

/// Returns the stored data about the calls.
fn stored(session: &Session, calls: &[Shown]) -> Result<Reads> {
    let mut reads = Reads::new();
    if let Some(stored) = FilePrinted::open(&session.newest())? {
        for Shown { put, .. } in calls {
            reads.extend(put.stored(&stored)?.map(|found| (put.call, found)));
        }
    }
    Ok(reads)
}

/// Adds the calls that are missing, by following the run.
fn follow(session: &Session, calls: &[Shown], reads: &mut Reads) -> Result<()> {
    let missing = calls
        .iter()
        .filter(|shown| !reads.contains_key(&shown.put.call));
    let missing = missing.map(|shown| WantedCall {
        call: shown.put.call,
        most: shown.put.read_for(shown.most),
    });
    let missing = Vec::from_iter(missing);
    if missing.is_empty() {
        return Ok(());
    }
    session.ensure_whole_path()?;
    follow_for(
        session,
        "following the run to what it printed",
        |run, log| {
            Ok(host_bytes(run, log, &missing, |call, time, bytes| {
                reads.insert(call, (time, bytes.to_vec()));
            })?)
        },
    )
}
