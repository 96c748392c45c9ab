//! Running modules with a host of the engine's own and no log: what recordings and
//! instrumented modules are compared with in the benchmark.

use std::time::Instant;

use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p1::{WasiP1Ctx, add_to_linker_sync};

use crate::engine::{RECORD_STACK, Settings, engine, on_guest_thread};
use crate::live::{arguments, cpu_time, wasi_context};
use crate::{Command, RecordError, RecordOptions};

/// What of the engine's settings is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// NaN canonicalisation and deterministic relaxed SIMD, as recordings have them.
    pub deterministic: bool,
    /// The engine's own epoch interruption.
    pub epochs: bool,
}

/// A compiled module.
pub struct Compiled {
    engine: Engine,
    module: Module,
    /// Processor time of compiling, all threads, in seconds.
    pub compile_seconds: f64,
}

/// One execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Processor time of the guest's thread, in seconds.
    pub cpu_seconds: f64,
    /// Time that passed, in seconds.
    pub wall_seconds: f64,
    /// The probes' memory, if the module has one.
    pub probes: Option<Vec<u8>>,
    /// The guest's exit code.
    pub exit_code: i32,
}

fn process_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Compiles a module, never from a cache.
///
/// # Errors
/// If the engine does not compile it.
pub fn compile(setting: Setting, bytes: &[u8]) -> Result<Compiled, RecordError> {
    let settings = Settings {
        deterministic: setting.deterministic,
        epochs: setting.epochs,
        ..Settings::with_stack(RECORD_STACK)
    };
    let engine = engine(settings)?;
    let start = process_time();
    let module = Module::new(&engine, bytes).map_err(RecordError::compile)?;
    Ok(Compiled {
        compile_seconds: process_time() - start,
        engine,
        module,
    })
}

impl Compiled {
    /// Runs `_start`, throwing the guest's output away.
    ///
    /// # Errors
    /// If the module cannot be started, or ends otherwise than by returning or exiting.
    pub fn run(&self, command: &Command) -> Result<Execution, RecordError> {
        on_guest_thread(RECORD_STACK, || self.execute(command))
    }

    fn execute(&self, command: &Command) -> Result<Execution, RecordError> {
        let options = RecordOptions {
            silent: true,
            ..RecordOptions::default()
        };
        let wasi = wasi_context(command, &arguments(command), &options)?;
        let mut store: Store<WasiP1Ctx> = Store::new(&self.engine, wasi);
        // Epochs that never come: the cost of looking for them is what is measured.
        store.set_epoch_deadline(u64::MAX / 2);
        let mut linker = Linker::new(&self.engine);
        add_to_linker_sync(&mut linker, |wasi| wasi).map_err(RecordError::instantiate)?;
        let instance = linker
            .instantiate(&mut store, &self.module)
            .map_err(RecordError::instantiate)?;
        let start = instance
            .get_typed_func::<(), ()>(&mut store, "_start")
            .map_err(RecordError::instantiate)?;
        let (cpu, wall) = (cpu_time(), Instant::now());
        let outcome = start.call(&mut store, ());
        let (cpu_seconds, wall_seconds) = (cpu_time() - cpu, wall.elapsed().as_secs_f64());
        let exit_code = match outcome {
            Ok(()) => 0,
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(exit) => exit.0,
                None => return Err(RecordError::Instantiate(format!("{error:#}"))),
            },
        };
        let probes = instance
            .get_memory(&mut store, afterimage_rewrite::MEMORY_EXPORT)
            .map(|memory| memory.data(&store).to_vec());
        Ok(Execution {
            cpu_seconds,
            wall_seconds,
            probes,
            exit_code,
        })
    }
}
