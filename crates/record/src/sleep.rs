//! Implements sleeps that can be interrupted.
//!
//! A guest that only sleeps calls `poll_oneoff` with one timeout. wasmtime-wasi then blocks the
//! whole thread until the timeout, and no stop request gets through. This module waits for the
//! timeout in a future instead. Invalid result pointers are detected only after the sleep, as in
//! the host.

use std::time::Duration;

use wasmtime_wasi::p1::{WasiP1Ctx, wasi_snapshot_preview1 as wasi};
use wiggle::{GuestError, GuestMemory, GuestPtr};

/// Shorter sleeps are left to the host, whose timing is finer.
const SHORT: Duration = Duration::from_millis(10);

/// Implements `poll_oneoff`.
pub(crate) async fn poll_oneoff(
    context: &mut WasiP1Ctx,
    memory: &mut GuestMemory<'_>,
    subscriptions: i32,
    events: i32,
    count: i32,
    happened: i32,
) -> wasmtime::Result<i32> {
    let sleep = (count == 1).then(|| Sleep::read(memory, subscriptions));
    if let Some(sleep) = sleep.flatten().filter(|sleep| sleep.timeout >= SHORT) {
        tokio::time::sleep(sleep.timeout).await;
        sleep.finish(memory, events as u32, happened as u32)?;
        return Ok(0);
    }
    wasi::poll_oneoff(context, memory, subscriptions, events, count, happened).await
}

/// A call to `poll_oneoff` that only waits for a time relative to now.
struct Sleep {
    timeout: Duration,
    userdata: u64,
}

impl Sleep {
    /// Reads a subscription. Returns `None` if it is not a relative timeout or cannot be read. The
    /// host then handles the call.
    fn read(memory: &GuestMemory<'_>, subscription: i32) -> Option<Self> {
        let subscription = subscription as u32;
        let field = |offset: u32| subscription.checked_add(offset);
        let userdata = memory.read(GuestPtr::<u64>::new(subscription)).ok()?;
        let tag = memory.read(GuestPtr::<u8>::new(field(8)?)).ok()?;
        let clock = memory.read(GuestPtr::<u32>::new(field(16)?)).ok()?;
        let timeout = memory.read(GuestPtr::<u64>::new(field(24)?)).ok()?;
        let flags = memory.read(GuestPtr::<u16>::new(field(40)?)).ok()?;
        // A subscription is 48 bytes long.
        memory.read(GuestPtr::<u64>::new(field(40)?)).ok()?;
        let relative = tag == 0 && clock <= 3 && flags == 0;
        relative.then_some(Self {
            timeout: Duration::from_nanos(timeout),
            userdata,
        })
    }

    /// Writes the single event as the host would. If a pointer is invalid, writes nothing.
    fn finish(
        &self,
        memory: &mut GuestMemory<'_>,
        events: u32,
        happened: u32,
    ) -> wasmtime::Result<()> {
        // An event is 32 bytes long.
        let last = events.checked_add(24).ok_or(GuestError::PtrOverflow)?;
        for field in [events, last] {
            memory.read(GuestPtr::<u64>::new(field))?;
        }
        memory.read(GuestPtr::<u32>::new(happened))?;
        memory.write(GuestPtr::new(events), self.userdata)?;
        memory.write(GuestPtr::new(events + 8), 0u16)?;
        memory.write(GuestPtr::new(events + 10), 0u8)?;
        memory.write(GuestPtr::new(events + 16), 1u64)?;
        memory.write(GuestPtr::new(last), 0u16)?;
        memory.write(GuestPtr::new(happened), 1u32)?;
        Ok(())
    }
}
