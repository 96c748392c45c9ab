//! Finds the bytes that the host read in given host calls.

use afterimage_machine::{MachineError, Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::StepsError;
use super::follow::{Follower, Run};

/// A host call, and the number of its bytes to return.
#[derive(Clone, Copy, Debug)]
pub struct WantedCall {
    /// The number of the call, from 1.
    pub call: u64,
    /// The largest number of bytes to return.
    pub most: u64,
}

/// Records the bytes that the host reads in wanted calls.
struct Reads<'w> {
    /// The number of host calls so far.
    calls: u64,
    /// The next wanted calls.
    wanted: &'w [WantedCall],
    /// Whether the current call is wanted.
    is_wanted: bool,
    /// Whether the host read the bytes that are reported next.
    is_read: bool,
    /// The calls of the current node, with the bytes that the host read.
    found: Vec<(u64, Vec<u8>)>,
}

impl Observer for Reads<'_> {
    const REGISTERS: bool = false;

    #[inline]
    fn host_call(&mut self) {
        self.calls += 1;
        let next = self.wanted.first();
        self.is_wanted = next.is_some_and(|next| next.call == self.calls);
        if self.is_wanted {
            self.found.push((self.calls, Vec::new()));
        }
    }

    #[inline]
    fn host_read(&mut self, _: Range) {
        self.is_read = self.is_wanted;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.is_read)
            && let Some(wanted) = self.wanted.first()
            && let Some((_, known)) = self.found.last_mut()
        {
            let room = wanted.most.saturating_sub(known.len() as u64);
            let taken = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            known.extend_from_slice(&bytes[..taken]);
        }
    }
}

/// Follows a run from its beginning to the last of the `wanted` host calls, which must be in
/// ascending order. For each call, `show` receives its number, the time of the block that ends with
/// the call, and the bytes that the host read. Calls that the run did not make are left out.
///
/// # Errors
/// Returns an error if the path, the log and the program disagree, or the path has gaps.
pub fn host_bytes<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    wanted: &[WantedCall],
    mut show: impl FnMut(u64, u64, &[u8]),
) -> Result<(), StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let mut reads = Reads {
        calls: 0,
        wanted,
        is_wanted: false,
        is_read: false,
        found: Vec::new(),
    };
    while !reads.wanted.is_empty()
        && let Some(visit) = follower.advance()?
    {
        match follower.execute(visit, &mut reads) {
            // The log of a run that was cut off may end before its path.
            Err(StepsError::Machine(MachineError::LogEnds { .. })) => break,
            executed => executed?,
        };
        for (call, bytes) in reads.found.drain(..) {
            show(call, visit.last(), &bytes);
        }
        let calls = reads.calls;
        let passed = reads.wanted.partition_point(|next| next.call <= calls);
        reads.wanted = &reads.wanted[passed..];
    }
    Ok(())
}
