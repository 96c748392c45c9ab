//! The engine's settings: the same for every execution, so that executions repeat exactly.

use std::num::NonZeroUsize;

use wasmparser::WasmFeatures;
use wasmtime::{Config, Engine, OptLevel};

use crate::RecordError;

/// How much stack a recorded guest gets, in bytes.
pub const RECORD_STACK: usize = 8 << 20;
/// How much stack a re-execution gets: instrumented frames are larger, and a run that fitted must fit again.
pub(crate) const REPLAY_STACK: usize = 96 << 20;
/// Stack beyond the guest's, for host functions.
const HOST_STACK: usize = 4 << 20;

/// A frame holds a return address and a frame pointer at least, so that no stack has more frames
/// than this allows. (The engine reserves room for the greatest number of frames, so it must not be larger.)
const SMALLEST_FRAME: usize = 16;

/// The engine's version, as the lock file has it.
const WASMTIME: &str = "48.0.8";

/// Name, version and those settings of the engine that an exact repetition depends on.
pub fn engine_description() -> String {
    format!("wasmtime {WASMTIME} cranelift nan-canonicalization relaxed-simd-deterministic")
}

/// What may differ between executions: nothing that the guest can see, except how deep it can recurse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub stack: usize,
    /// Off only to measure what it costs.
    pub deterministic: bool,
    pub epochs: bool,
    /// Off for modules with functions for which that takes too long: see `deep`.
    pub optimised: bool,
    /// With the debugger, which shows locals and operands.
    pub debugger: bool,
}

impl Settings {
    pub(crate) fn with_stack(stack: usize) -> Self {
        Self {
            stack,
            deterministic: true,
            epochs: false,
            optimised: true,
            debugger: false,
        }
    }
}

pub(crate) fn engine(settings: Settings) -> Result<Engine, RecordError> {
    let level = if settings.optimised {
        OptLevel::Speed
    } else {
        OptLevel::None
    };
    let mut config = Config::new();
    config
        .cranelift_opt_level(level)
        .cranelift_nan_canonicalization(settings.deterministic)
        .relaxed_simd_deterministic(settings.deterministic)
        .epoch_interruption(settings.epochs)
        .guest_debug(settings.debugger)
        .wasm_backtrace_max_frames(NonZeroUsize::new(settings.stack / SMALLEST_FRAME))
        .wasm_branch_hinting(true)
        .wasm_tail_call(true)
        .wasm_exceptions(true)
        .wasm_multi_memory(true)
        .wasm_memory64(true)
        .wasm_extended_const(true)
        .wasm_relaxed_simd(true)
        // Of these the atomics. Shared memories are refused, and nothing waits: see `crates/rewrite`.
        .wasm_features(WasmFeatures::THREADS, true)
        // Faults come as signals everywhere: the path's ring has a handler of its own.
        .macos_use_mach_ports(false)
        .max_wasm_stack(settings.stack)
        .async_stack_size(settings.stack + HOST_STACK);
    Engine::new(&config).map_err(RecordError::engine)
}

/// The engine as recordings have it, for tests of what is computed elsewhere as it would.
///
/// # Errors
///
/// The engine cannot be made on this machine.
pub fn recording_engine() -> Result<Engine, RecordError> {
    engine(Settings::with_stack(RECORD_STACK))
}

/// Runs `work` on a thread with room for the guest's stack and the host's.
pub(crate) fn on_guest_thread<R: Send>(
    stack: usize,
    work: impl FnOnce() -> Result<R, RecordError> + Send,
) -> Result<R, RecordError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("guest".to_owned())
            .stack_size(stack + HOST_STACK)
            .spawn_scoped(scope, work)
            .map_err(RecordError::Thread)?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::WASMTIME;

    #[test]
    fn engine_version_is_the_locked_one() {
        let lock = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"wasmtime\"\nversion = \"{WASMTIME}\"");
        assert!(
            lock.contains(&entry),
            "Cargo.lock has another version of wasmtime"
        );
    }
}
