//! Runs modules with the engine's own host and no log. The benchmark compares recordings and
//! instrumented modules with these runs.

use std::time::Instant;

use afterimage_paths::EntryIds;
use afterimage_rewrite::Layout;
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p1::{WasiP1Ctx, add_to_linker_sync};

use crate::engine::{RECORD_STACK, Settings, engine, on_guest_thread};
use crate::environment::{arguments, wasi_context};
use crate::live::cpu_time;
use crate::whole_path::{HasPaths, Message, PathHost, Producer};
use crate::{Command, RecordError, RecordOptions};

/// The engine settings to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Whether to canonicalise NaNs and make relaxed SIMD deterministic, as in recordings.
    pub deterministic: bool,
    /// Whether to use the engine's own epoch interruption.
    pub epochs: bool,
}

/// A compiled module.
pub struct Compiled {
    engine: Engine,
    module: Module,
    /// The processor time of compiling on all threads, in seconds.
    pub compile_seconds: f64,
}

/// The measurements of one execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The processor time of the guest's thread, in seconds.
    pub cpu_seconds: f64,
    /// The elapsed time, in seconds.
    pub wall_seconds: f64,
    /// The probes' memory, if the module has one.
    pub probes: Option<Vec<u8>>,
    /// The guest's exit code.
    pub exit_code: i32,
}

/// The store's data in a measured run.
struct Host {
    wasi: WasiP1Ctx,
    paths: Option<PathHost>,
}

impl HasPaths for Host {
    fn paths(&mut self) -> Option<&mut PathHost> {
        self.paths.as_mut()
    }
}

/// Returns the processor time of all threads of this process, in seconds.
pub fn process_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Compiles a module without a cache.
///
/// # Errors
/// Returns an error if the engine cannot compile it.
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
    /// Runs `_start` and discards the guest's output.
    ///
    /// # Errors
    /// Returns an error if the module cannot be started, or ends in any way other than returning or
    /// exiting.
    pub fn run(&self, command: &Command) -> Result<Execution, RecordError> {
        on_guest_thread(RECORD_STACK, || self.execute(command, None))
    }

    /// Runs a module that writes its path. `words` receives the path, piece by piece, on another
    /// thread.
    ///
    /// # Errors
    /// Returns the errors of [`Compiled::run`].
    pub fn run_traced(
        &self,
        command: &Command,
        entry_ids: &EntryIds,
        layout: Layout,
        mut words: impl FnMut(&[u64]) + Send,
    ) -> Result<Execution, RecordError> {
        let (producer, messages) = Producer::new(layout.half);
        std::thread::scope(|scope| {
            let consumer = scope.spawn(move || {
                for message in messages {
                    match message {
                        Message::HostCall(_) | Message::Written(_) => {}
                        Message::Words(half) => words(half.words()),
                        Message::Last(word) => words(&[word]),
                        Message::Cut(cut, _) => words(&cut),
                    }
                }
            });
            let host = PathHost::new(producer, entry_ids.clone());
            let execution =
                on_guest_thread(RECORD_STACK, || self.execute(command, Some((host, layout))));
            match consumer.join() {
                Ok(()) => execution,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn execute(
        &self,
        command: &Command,
        paths: Option<(PathHost, Layout)>,
    ) -> Result<Execution, RecordError> {
        let options = RecordOptions {
            silent: true,
            ..RecordOptions::default()
        };
        let wasi = wasi_context(
            command,
            &arguments(command),
            &options,
            &crate::Interrupt::new(),
        )?;
        let (paths, layout) = paths.unzip();
        let mut store = Store::new(&self.engine, Host { wasi, paths });
        // The deadline never comes, because only the cost of checking for it is measured.
        store.set_epoch_deadline(u64::MAX / 2);
        let mut linker = Linker::new(&self.engine);
        add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi)
            .map_err(RecordError::instantiate)?;
        let instance = linker
            .instantiate(&mut store, &self.module)
            .map_err(RecordError::instantiate)?;
        let start = instance
            .get_typed_func::<(), ()>(&mut store, "_start")
            .map_err(RecordError::instantiate)?;
        // This is dropped before the store, because the consumer reads the store's memory.
        let _quiet = match &layout {
            Some(layout) => PathHost::connect(&mut store, &instance, layout)?,
            None => None,
        };
        let (cpu, wall) = (cpu_time(), Instant::now());
        let outcome = start.call(&mut store, ());
        let (cpu_seconds, wall_seconds) = (cpu_time() - cpu, wall.elapsed().as_secs_f64());
        PathHost::finish(&mut store)?;
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
