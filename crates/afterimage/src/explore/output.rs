//! Reports the program's output, with the time of each write.

use std::fmt::Write as _;

use afterimage_analyses::why::{Printed, Stream};
use afterimage_present::{OutputDocument, OutputTotals, OutputWrite};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::explain::Scene;

/// Asks what the program printed to standard output and standard error, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputQuery {
    /// The maximum number of bytes of each stream to report, from its beginning.
    pub limit: u64,
}

/// The maximum number of calls to report for each stream.
const WRITES: usize = 20_000;

/// For a run without values, the reciprocal of the share of stretches that may be built. Output
/// beyond these stretches is not reported, because building all values may take many times as long
/// as the run did.
const PART: usize = 16;

/// Whether the allowed number of stretches has been built.
fn is_far(scene: &Scene<'_, '_>) -> Result<bool> {
    let built = scene.traced.epochs()?.built();
    let is_many = scene.traced.path()?.segments().are_many();
    Ok(is_many || built.is_some_and(|(built, all)| built * PART > all))
}

impl OutputQuery {
    /// The default limit.
    pub const LIMIT: u64 = 256 << 10;

    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<OutputDocument> {
        let mut document = OutputDocument {
            writes: Vec::new(),
            totals: OutputTotals::default(),
            complete: true,
        };
        let streams = [(Stream::Output, "stdout"), (Stream::Error, "stderr")];
        for (stream, name) in streams {
            let imports = &scene.traced.program().imports;
            let mut printed = Printed::new(scene.traced.file(), imports)?;
            let (mut all, mut told) = (0, 0);
            while let Some(put) = printed.next(&stream)? {
                all = put.before.saturating_add(put.bytes);
                let room = self.limit.saturating_sub(put.before);
                if room == 0 || told == WRITES || is_far(scene)? {
                    document.complete = false;
                    continue;
                }
                let opened = put.open(&scene.host)?;
                let bytes = put.bytes(&opened, &scene.host, put.before, put.bytes.min(room))?;
                document.complete &= room >= put.bytes;
                told += 1;
                document.writes.push(OutputWrite {
                    stream: name,
                    call: put.call,
                    t: opened.caller(&scene.host)?.time,
                    first: put.before,
                    bytes: bytes.iter().fold(String::new(), |mut text, byte| {
                        let _ = write!(text, "{byte:02x}");
                        text
                    }),
                });
            }
            match stream {
                Stream::Error => document.totals.stderr = all,
                _ => document.totals.stdout = all,
            }
        }
        document.writes.sort_by_key(|write| write.call);
        Ok(document)
    }
}
