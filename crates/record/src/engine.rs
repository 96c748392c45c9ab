//! Defines the engine's settings. Settings that affect results are the same in every recording and
//! re-execution, so executions repeat exactly.

use std::num::NonZeroUsize;

use wasmparser::WasmFeatures;
use wasmtime::{Config, Engine, OptLevel};

use crate::RecordError;

/// The default stack of a recorded guest, in bytes.
pub const RECORD_STACK: usize = 8 << 20;
/// The stack of a re-execution, in bytes. Instrumented frames are larger, and a run that did not
/// overflow its stack must not overflow this stack.
pub(crate) const REPLAY_STACK: usize = 96 << 20;
/// Additional stack for host functions, in bytes.
const HOST_STACK: usize = 4 << 20;

/// A lower bound for the size of a frame, which contains at least a return address and a frame
/// pointer. The bound limits the number of frames on a stack, for which the engine reserves room.
const SMALLEST_FRAME: usize = 16;

/// The engine's version, as in the lock file.
const WASMTIME: &str = "48.0.8";

/// Describes the engine by its name, its version and the settings needed for exact repetition.
pub fn engine_description() -> String {
    format!("wasmtime {WASMTIME} cranelift nan-canonicalization relaxed-simd-deterministic")
}

/// The settings that may differ between executions. In a recording, the guest can observe only
/// their effect on how deep it can recurse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub stack: usize,
    /// Whether NaNs are canonical and relaxed SIMD is deterministic. It is off only to measure the
    /// cost.
    pub deterministic: bool,
    pub epochs: bool,
    /// Whether the engine optimises. It is off for modules with functions that would take too long;
    /// see `deep`.
    pub optimised: bool,
    /// Whether to enable the debugger, which shows locals and operands.
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
        // This enables only atomic accesses. `crates/rewrite` refuses shared memories, so nothing
        // waits.
        .wasm_features(WasmFeatures::THREADS, true)
        // Faults must arrive as signals on all systems, because the ring of path words has its own
        // signal handler.
        .macos_use_mach_ports(false)
        .max_wasm_stack(settings.stack)
        .async_stack_size(settings.stack + HOST_STACK);
    Engine::new(&config).map_err(RecordError::engine)
}

/// Returns the engine as configured for recordings, for tests of code that computes the same
/// results.
///
/// # Errors
///
/// Returns an error if the engine cannot be created on this machine.
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
