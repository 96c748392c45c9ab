//! Offers WASI preview 1 to the guest, and writes every call to the log.

use afterimage_ids::ImportId;
use afterimage_trace::{HostCallRef, HostStop, HostWriteRef, RawValue};
use wasmtime::{Caller, Func, Store};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p1::wasi_snapshot_preview1::WasiSnapshotPreview1 as _;
use wasmtime_wasi::p1::{WasiP1Ctx, wasi_snapshot_preview1 as wasi};
use wiggle::GuestMemory;

use crate::effects::{BeforeCall, Effect, effects, reads, targets, writes};
use crate::live::{Live, Stopped};
use crate::sleep;

/// The module name of WASI preview 1.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";

/// The least limit on the bytes that a host call may copy, as in the engine's own command-line
/// tool. For a guest with a larger memory, the limit is the size of that memory.
const LEAST_FUEL: usize = 128 << 20;

trait IntoRaw: Copy {
    fn raw(self) -> RawValue;
}

impl IntoRaw for i32 {
    fn raw(self) -> RawValue {
        RawValue::I32(self)
    }
}

impl IntoRaw for i64 {
    fn raw(self) -> RawValue {
        RawValue::I64(self)
    }
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty $(, $wait:tt)?;)*) => {
        /// Returns the function with this name, or `None` if WASI preview 1 has no such function.
        /// Calls to the function are logged as calls to `import`.
        pub(crate) fn function(store: &mut Store<Live>, name: &str, import: ImportId) -> Option<Func> {
            let declared = effects(name)?;
            Some(match name {
                $(stringify!($name) => Func::wrap(
                    &mut *store,
                    move |caller: Caller<'_, Live>, $($arg: $ty),*| -> wasmtime::Result<$result> {
                        let args = [$($arg.raw()),*];
                        call(caller, import, declared, &args, async |context, memory| {
                            wasi::$name(context, memory, $($arg),*) $(.$wait)?
                        })
                    },
                ),)*
                // The engine's own `proc_exit` rejects codes from 126 on, which WASI allows and
                // native programs use.
                "proc_exit" => Func::wrap(&mut *store, move |caller: Caller<'_, Live>, code: i32| -> wasmtime::Result<()> {
                    call(caller, import, declared, &[code.raw()], async |_, _| Err(I32Exit(code).into()))
                }),
                "poll_oneoff" => Func::wrap(
                    &mut *store,
                    move |caller: Caller<'_, Live>, a: i32, b: i32, c: i32, d: i32| -> wasmtime::Result<i32> {
                        call(caller, import, declared, &[a, b, c, d].map(IntoRaw::raw), async |context, memory| {
                            sleep::poll_oneoff(context, memory, a, b, c, d).await
                        })
                    },
                ),
                _ => return None,
            })
        }
    };
}

functions! {
    args_get(a: i32, b: i32) -> i32;
    args_sizes_get(a: i32, b: i32) -> i32;
    clock_res_get(a: i32, b: i32) -> i32;
    clock_time_get(a: i32, b: i64, c: i32) -> i32;
    environ_get(a: i32, b: i32) -> i32;
    environ_sizes_get(a: i32, b: i32) -> i32;
    fd_advise(a: i32, b: i64, c: i64, d: i32) -> i32, await;
    fd_allocate(a: i32, b: i64, c: i64) -> i32;
    fd_close(a: i32) -> i32, await;
    fd_datasync(a: i32) -> i32, await;
    fd_fdstat_get(a: i32, b: i32) -> i32, await;
    fd_fdstat_set_flags(a: i32, b: i32) -> i32;
    fd_fdstat_set_rights(a: i32, b: i64, c: i64) -> i32;
    fd_filestat_get(a: i32, b: i32) -> i32, await;
    fd_filestat_set_size(a: i32, b: i64) -> i32, await;
    fd_filestat_set_times(a: i32, b: i64, c: i64, d: i32) -> i32, await;
    fd_pread(a: i32, b: i32, c: i32, d: i64, e: i32) -> i32, await;
    fd_prestat_dir_name(a: i32, b: i32, c: i32) -> i32;
    fd_prestat_get(a: i32, b: i32) -> i32;
    fd_pwrite(a: i32, b: i32, c: i32, d: i64, e: i32) -> i32, await;
    fd_read(a: i32, b: i32, c: i32, d: i32) -> i32, await;
    fd_readdir(a: i32, b: i32, c: i32, d: i64, e: i32) -> i32, await;
    fd_renumber(a: i32, b: i32) -> i32, await;
    fd_seek(a: i32, b: i64, c: i32, d: i32) -> i32, await;
    fd_sync(a: i32) -> i32, await;
    fd_tell(a: i32, b: i32) -> i32;
    fd_write(a: i32, b: i32, c: i32, d: i32) -> i32, await;
    path_create_directory(a: i32, b: i32, c: i32) -> i32, await;
    path_filestat_get(a: i32, b: i32, c: i32, d: i32, e: i32) -> i32, await;
    path_filestat_set_times(a: i32, b: i32, c: i32, d: i32, e: i64, f: i64, g: i32) -> i32, await;
    path_link(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32) -> i32, await;
    path_open(a: i32, b: i32, c: i32, d: i32, e: i32, f: i64, g: i64, h: i32, i: i32) -> i32, await;
    path_readlink(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32) -> i32, await;
    path_remove_directory(a: i32, b: i32, c: i32) -> i32, await;
    path_rename(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32) -> i32, await;
    path_symlink(a: i32, b: i32, c: i32, d: i32, e: i32) -> i32, await;
    path_unlink_file(a: i32, b: i32, c: i32) -> i32, await;
    proc_raise(a: i32) -> i32;
    random_get(a: i32, b: i32) -> i32;
    sched_yield() -> i32;
    sock_accept(a: i32, b: i32, c: i32) -> i32;
    sock_recv(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32) -> i32;
    sock_send(a: i32, b: i32, c: i32, d: i32, e: i32) -> i32;
    sock_shutdown(a: i32, b: i32) -> i32;
}

/// The result of a WASI function.
trait Outcome {
    /// Converts the result to a value of the log.
    fn results(&self) -> Option<RawValue>;
    /// Whether the function succeeded and so wrote its declared output.
    fn succeeded(&self) -> bool;
}

impl Outcome for i32 {
    fn results(&self) -> Option<RawValue> {
        Some(RawValue::I32(*self))
    }
    fn succeeded(&self) -> bool {
        *self == 0
    }
}

impl Outcome for () {
    fn results(&self) -> Option<RawValue> {
        None
    }
    fn succeeded(&self) -> bool {
        true
    }
}

fn call<R: Outcome>(
    mut caller: Caller<'_, Live>,
    import: ImportId,
    declared: &'static [Effect],
    args: &[RawValue],
    run: impl AsyncFnOnce(&mut WasiP1Ctx, &mut GuestMemory<'_>) -> wasmtime::Result<R>,
) -> wasmtime::Result<R> {
    let Some(memory) = caller.data().memory else {
        return Err(wasmtime::format_err!(
            "a WASI function was called before the guest's memory existed"
        ));
    };
    let (bytes, live) = memory.data_and_store_mut(&mut caller);
    live.calls[import.as_u32() as usize] += 1;
    live.flush_growth()?;
    reads(declared, args, bytes, &mut live.reads);
    targets(declared, args, bytes, &mut live.targets);
    let read_digest = live
        .reads
        .iter()
        .fold(crc32fast::Hasher::new(), |mut digest, read| {
            digest.update(&bytes[read.address as usize..(read.address + read.length) as usize]);
            digest
        });
    let read_digest = read_digest.finalize();
    let before = live.check_effects.then(|| bytes.to_vec());

    let interrupt = live.interrupt.clone();
    let wasi = &mut live.wasi;
    // The number of bytes that a call may copy, which is 0 by default.
    wasi.set_hostcall_fuel(bytes.len().max(LEAST_FUEL));
    let outcome = live.runtime.block_on(async {
        // Without the stop clock, only this check notices a request that arrived while the guest
        // computed, or during a call that did not wait.
        if interrupt.requested().is_some() {
            return Err(Stopped.into());
        }
        let mut guest = GuestMemory::Unshared(bytes);
        tokio::select! {
            biased;
            result = run(wasi, &mut guest) => result,
            () = interrupt.wait() => Err(Stopped.into()),
        }
    });
    let outcome = match outcome {
        // The host may have finished although a stop was requested. The next poll of the clock then
        // stops the run.
        Ok(result) => result,
        Err(error) => {
            let (stop, error) = match error.downcast_ref::<I32Exit>() {
                Some(exit) => (HostStop::Exit(exit.0), error),
                None if error.is::<Stopped>() => (HostStop::Interrupted, error),
                // A re-execution knows only the error's message, and must end with the same
                // message.
                None => {
                    let message = format!("{error:#}");
                    (
                        HostStop::Error(message.clone()),
                        wasmtime::Error::msg(message),
                    )
                }
            };
            live.log_stop(import, args, read_digest, stop)?;
            return Err(error);
        }
    };
    let spans = &mut live.spans;
    spans.clear();
    if outcome.succeeded() {
        let before = BeforeCall {
            targets: &live.targets,
            arguments: live.arguments,
            environment: live.environment,
        };
        writes(declared, args, bytes, before, spans);
    }
    if let Some(before) = before {
        check(&before, bytes, spans, import)?;
    }
    let written: Vec<HostWriteRef<'_>> = spans
        .iter()
        .map(|s| HostWriteRef {
            memory: 0,
            address: s.start as u64,
            bytes: &bytes[s.clone()],
        })
        .collect();
    let result = outcome.results();
    let call = HostCallRef {
        import,
        args,
        results: result.as_slice(),
        writes: &written,
        reads: &live.reads,
        read_digest,
    };
    live.log.host_call(&call)?;
    live.events += 1;
    Ok(outcome)
}

/// Checks for bytes that the host changed outside the declared ranges.
fn check(
    before: &[u8],
    after: &[u8],
    declared: &[std::ops::Range<usize>],
    import: ImportId,
) -> wasmtime::Result<()> {
    for (address, (old, new)) in before.iter().zip(after).enumerate() {
        if old != new && !declared.iter().any(|s| s.contains(&address)) {
            return Err(wasmtime::format_err!(
                "import {} wrote address {address:#x}, which is not declared",
                import.as_u32()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use afterimage_ids::ImportId;

    #[test]
    fn bytes_that_changed_must_be_declared() {
        let import = ImportId::from_u32(0);
        let (before, after) = ([0, 1, 2, 3, 4], [0, 9, 2, 9, 4]);
        assert!(check(&before, &after, &[3..4, 1..2], import).is_ok());
        assert!(check(&before, &after, &[1..2, 2..4], import).is_ok());
        assert!(check(&before, &after, &[1..2, 2..3], import).is_err());
        assert!(check(&before, &after, &[0..1, 2..3, 4..5], import).is_err());
    }
}
