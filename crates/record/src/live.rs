//! Records a live run by logging everything that crosses the host boundary.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afterimage_ids::{FuncId, ImportId};
use afterimage_paths::{Cuts, PathPlan};
use afterimage_placement::{Plan, PlanOptions};
use afterimage_program::{OperatorIndex, Program};
use afterimage_rewrite::{
    CLOCK_AT, MEMORY_EXPORT, Options, PathProbes, Probes, Rewritten, START_EXPORT, TracePlan,
    rewrite,
};
use afterimage_trace::{
    CountsLens, End, Event, HostRead, HostStop, Interrupter, LogWriter, Meta, RawValue, Stdin,
    TraceWriter,
};
use sha2::{Digest, Sha256};
use wasmtime::{AsContextMut, Func, Instance, Memory, Module, ResourceLimiter, Store, Val};
use wasmtime_wasi::p1::WasiP1Ctx;

use crate::deep::Treatment;
use crate::effects::{Span, Strings};
use crate::ending::{Outcome, classify, frames, not_entered, open_frames};
use crate::engine::{RECORD_STACK, Settings, engine, engine_description, on_guest_thread};
use crate::environment::{arguments, wasi_context};
use crate::lens::{Course, solve_counts};
use crate::replay::{Progress, compile_unless};
use crate::room::{Room, was_not_asked};
use crate::trapped::{Unsettled, trapped_at};
use crate::values::{argument, parse_arguments, raw, zero};
use crate::weights::{self, weighted_plan};
use crate::whole_path::{HALF_WORDS, HasPaths, PathHost, Producer, WordWriter, say_number};
use crate::{Cache, HostFunction, Interrupt, RecordError, wasi};

/// The minimum time limit for compiling. The user's time limit applies separately to compiling and
/// to the run. A small limit is meant for the run only.
const COMPILING: Duration = Duration::from_secs(1);

/// The program to run, and its input.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The guest's own name, `argv[0]`.
    pub name: String,
    /// The arguments after the name. With `invoke`, these are the function's arguments as literals.
    pub args: Vec<String>,
    /// Environment variables granted to the guest.
    pub env: Vec<(String, String)>,
    /// Folders granted to the guest, each as a host path and a guest path.
    pub dirs: Vec<(PathBuf, String)>,
    /// A file for standard input. If it is `None`, the guest reads our standard input.
    pub stdin: Option<PathBuf>,
    /// An exported function to call instead of `_start`.
    pub invoke: Option<String>,
}

/// The options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Whether to keep the stop clock, so that a run stopped from outside can be repeated up to
    /// that moment.
    pub clock: bool,
    /// Options for counting during the live run, or `None` not to count.
    pub counts: Option<PlanOptions<'static>>,
    /// Whether to write the path during the live run, in order to compact it later.
    pub paths: bool,
    /// The time limit for the run, if there is one.
    pub timeout: Option<Duration>,
    /// The guest's stack, in bytes.
    pub stack: usize,
    /// The seed of the guest's random numbers. Without one, they come from the system.
    pub seed: Option<u64>,
    /// Functions for imports outside WASI.
    pub functions: Vec<HostFunction>,
    /// Whether to compare all memory around every host call with the declared effects. This is for
    /// tests.
    pub check_effects: bool,
    /// Whether to discard the guest's output. This is for measurements.
    pub silent: bool,
    /// Whether to send the guest's standard output to our standard error.
    pub output_to_stderr: bool,
    /// Whether to canonicalise NaNs and fix relaxed SIMD, so that the run repeats exactly. It is
    /// off only for measurements.
    pub deterministic: bool,
    /// The version of the calling tool, stored in the file.
    pub tool_version: String,
    /// Reports the progress of a second run, which is needed if the place of a trap is uncertain.
    pub repeating: Repeating,
}

/// Creates the progress callback for a re-execution with the given number of events. The callback
/// is dropped after the re-execution.
#[derive(Clone)]
pub struct Repeating(pub Arc<dyn Fn(u64) -> Progress + Send + Sync>);

impl Default for Repeating {
    fn default() -> Self {
        Self(Arc::new(|_| Arc::new(|_| {})))
    }
}

impl fmt::Debug for Repeating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeating").finish_non_exhaustive()
    }
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            clock: true,
            counts: None,
            paths: false,
            timeout: None,
            stack: RECORD_STACK,
            seed: None,
            functions: Vec::new(),
            check_effects: false,
            silent: false,
            output_to_stderr: false,
            deterministic: true,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            repeating: Repeating::default(),
        }
    }
}

/// The host's state in a live run.
pub(crate) struct Live {
    pub wasi: WasiP1Ctx,
    pub runtime: tokio::runtime::Runtime,
    pub interrupt: Interrupt,
    pub memory: Option<Memory>,
    pub log: LogWriter,
    pub events: u64,
    /// The number of entry points called so far.
    pub entered: usize,
    pub calls: Vec<u64>,
    pub arguments: Strings,
    pub environment: Strings,
    pub check_effects: bool,
    pub reads: Vec<HostRead>,
    pub targets: Vec<Span>,
    pub spans: Vec<Span>,
    growth: Option<Event>,
    room: Room,
    paths: Option<PathHost>,
}

impl HasPaths for Live {
    fn paths(&mut self) -> Option<&mut PathHost> {
        self.paths.as_mut()
    }
}

/// The error that ends a host call stopped from outside.
#[derive(Debug, thiserror::Error)]
#[error("stopped from outside")]
pub(crate) struct Stopped;

impl Live {
    fn log(&mut self, event: &Event) -> Result<(), RecordError> {
        self.log.event(event)?;
        self.events += 1;
        Ok(())
    }

    pub(crate) fn flush_growth(&mut self) -> Result<(), RecordError> {
        match self.growth.take() {
            Some(event) => self.log(&event),
            None => Ok(()),
        }
    }

    pub(crate) fn log_stop(
        &mut self,
        import: ImportId,
        args: &[RawValue],
        read_digest: u32,
        outcome: HostStop,
    ) -> Result<(), RecordError> {
        let reads = self.reads.clone();
        self.log(&Event::HostStop {
            import,
            args: args.to_vec(),
            reads,
            read_digest,
            outcome,
        })
    }
}

/// Grants growth up to the limits of the module, of recordings and of the system. Whether a growth
/// succeeds is known only at the next event.
impl ResourceLimiter for Live {
    fn memory_growing(
        &mut self,
        from: usize,
        to: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.flush_growth()?;
        let granted = self.room.memory(from, to);
        self.growth = Some(Event::MemoryGrow { granted });
        Ok(granted)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.room.memory_failed();
        self.growth = Some(Event::MemoryGrow { granted: false });
        Ok(())
    }

    fn table_growing(
        &mut self,
        from: usize,
        to: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.flush_growth()?;
        let granted = self.room.table(from, to);
        self.growth = Some(Event::TableGrow { granted });
        Ok(granted)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        if was_not_asked(&error) {
            self.flush_growth()?;
        } else {
            self.room.table_failed();
        }
        self.growth = Some(Event::TableGrow { granted: false });
        Ok(())
    }
}

/// The result of recording.
#[derive(Debug)]
pub struct Recorded {
    /// The end of the run, as stored in the file.
    pub end: End,
    /// The processor time of the guest's thread, including host calls, in seconds.
    pub cpu_seconds: f64,
    /// The results of the invoked function.
    pub results: Vec<RawValue>,
    /// The counts, if they were taken live and the end of the run is known.
    pub counts: Option<CountsLens>,
    /// The reason why the operator that trapped is uncertain, if it is.
    pub uncertain: Option<Uncertain>,
}

/// The reason why a second run did not find the operator that trapped.
#[derive(Debug)]
pub struct Uncertain {
    /// The error of the second run.
    pub error: RecordError,
    /// Whether at least the block of the trap is known. If not, the recording has no end, like a
    /// recording that was cut off, and the reported end has no frames.
    pub in_block: bool,
}

/// A run to record.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'l> {
    /// The bytes of the program's module.
    pub bytes: &'l [u8],
    /// The program parsed from these bytes.
    pub program: &'l Program,
    /// The command to run, which also says what the guest may use.
    pub command: &'l Command,
    /// The options of the recording.
    pub options: &'l RecordOptions,
    /// The cache of compiled code and earlier counts.
    pub cache: &'l Cache,
    /// The handle that can stop the run from outside.
    pub interrupt: &'l Interrupt,
}

/// Runs a program, writes everything that crosses the host boundary to `out`, and commits it at the
/// end.
///
/// # Errors
/// Returns an error if the program cannot be started, the file cannot be written, or the place
/// where the run ended cannot be determined. Nothing that the guest does is an error. A trap, for
/// example, is only the end of the run.
pub fn record(launch: Launch<'_>, out: &TraceWriter) -> Result<Recorded, RecordError> {
    let Launch {
        bytes,
        program,
        command,
        options,
        cache,
        interrupt,
    } = launch;
    let Treatment { large, optimised } = Treatment::of(program);
    let settings = Settings {
        deterministic: options.deterministic,
        optimised,
        ..Settings::with_stack(options.stack)
    };
    let engine = engine(settings)?;
    let the_plan = match &options.counts {
        Some(wanted) => Some(weighted_plan(program, bytes, wanted, cache)?),
        None => None,
    };
    let rewriting = Options {
        clock: options.clock,
        large,
        export_start: true,
        ..Options::default()
    };
    if options.paths && the_plan.is_some() {
        return Err(RecordError::OneLens);
    }
    let path_plan = if options.paths {
        Some(PathPlan::new(program, None, Cuts::default())?)
    } else {
        None
    };
    let probes = match &path_plan {
        Some(plan) => Probes::Paths(PathProbes {
            plan: TracePlan::Paths(plan),
            in_memory: None,
            half: HALF_WORDS,
        }),
        None => the_plan.as_ref().into(),
    };
    let rewritten = rewrite(bytes, program, probes, &rewriting)?;
    let entries = entry_points(program, command)?;
    check_imports(program, &options.functions)?;
    let room = Room::of_module(bytes)?;

    let mut meta = meta(bytes, command, options);
    meta.extra
        .insert("clock".to_owned(), options.clock.to_string());
    if let Some(seed) = options.seed {
        meta.extra.insert("seed".to_owned(), seed.to_string());
    }
    out.meta(&meta)?;
    out.module(bytes)?;
    let log = out.log()?;
    let flusher = log.flusher();

    let timer = |limit: Duration| Timer::start(limit, interrupt.clone());
    let compiling = options.timeout.map(|limit| timer(limit.max(COMPILING)));
    let module = compile_unless(interrupt, cache, &engine, &rewritten.module);
    let module = module.map_err(|error| match (error, interrupt.requested()) {
        (RecordError::Interrupted, Some(Interrupter::Timeout)) => RecordError::CompileTimeout,
        (error, _) => error,
    })?;
    drop(compiling);
    let _timer = options.timeout.map(timer);
    let run = Run {
        bytes,
        program,
        command,
        options,
        rewritten: &rewritten,
        plan: the_plan.as_ref(),
        entries,
        room,
        out,
    };
    let guest = |paths| on_guest_thread(options.stack, || run.run(&module, interrupt, log, paths));
    let recorded = match &path_plan {
        None => guest(None)?,
        Some(plan) => {
            let words = WordWriter::new(out, program, plan, flusher)?;
            let (producer, messages) = Producer::new(HALF_WORDS);
            let host = PathHost::new(producer, plan.entry_ids().clone());
            std::thread::scope(|scope| {
                let consumer = scope.spawn(move || words.write(messages));
                let recorded = guest(Some(host));
                // Prefer the consumer's error, because the guest only learns that the consumer is
                // gone.
                match consumer.join() {
                    Ok(written) => written.and(recorded),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            })?
        }
    };
    if let Some(counts) = &recorded.counts {
        weights::keep(cache, bytes, counts);
        out.counts(counts)?;
    }
    if recorded.uncertain.as_ref().is_none_or(|u| u.in_block) {
        out.end(&recorded.end)?;
    }
    out.commit()?;
    Ok(recorded)
}

fn meta(bytes: &[u8], command: &Command, options: &RecordOptions) -> Meta {
    Meta {
        program_name: command.name.clone(),
        args: command.args.clone(),
        env: command.env.clone(),
        dirs: command.dirs.iter().map(|d| d.1.clone()).collect(),
        invoke: command.invoke.clone(),
        tool_version: options.tool_version.clone(),
        engine: engine_description(),
        stdin: if command.stdin.is_some() {
            Stdin::File
        } else {
            Stdin::Inherited
        },
        created_unix: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs()),
        module_sha256: Sha256::digest(bytes).into(),
        stack_limit: options.stack as u64,
        ..Meta::default()
    }
}

/// Returns the functions that the host calls, in order, with their arguments.
pub(crate) fn entry_points(
    program: &Program,
    command: &Command,
) -> Result<Vec<(FuncId, String, Vec<RawValue>)>, RecordError> {
    let find = |name: &str| program.exports.iter().find(|e| e.0 == name).map(|e| e.1);
    let missing = |wanted: &str| RecordError::NoExport {
        wanted: wanted.to_owned(),
        exports: program.exports.iter().map(|e| e.0.clone()).collect(),
    };
    let mut entries = Vec::new();
    if let Some(start) = program.start {
        entries.push((start, START_EXPORT.to_owned(), Vec::new()));
    }
    match &command.invoke {
        None => {
            let start = find("_start").ok_or_else(|| missing("_start"))?;
            entries.push((start, "_start".to_owned(), Vec::new()));
        }
        Some(name) => {
            if let Some(initialize) = find("_initialize").filter(|_| name != "_initialize") {
                entries.push((initialize, "_initialize".to_owned(), Vec::new()));
            }
            let function = find(name).ok_or_else(|| missing(name))?;
            let i = function.as_u32() as usize;
            let ty = program.imports.get(i).map_or_else(
                || program.functions[i - program.imports.len()].ty,
                |import| import.ty,
            );
            let args = parse_arguments(name, &program.types[ty].params, &command.args)?;
            entries.push((function, name.clone(), args));
        }
    }
    Ok(entries)
}

fn check_imports(program: &Program, functions: &[HostFunction]) -> Result<(), RecordError> {
    for import in &program.imports {
        let offered = host_function(functions, &import.module, &import.name).is_some();
        if !offered
            && (import.module != wasi::MODULE || crate::effects::effects(&import.name).is_none())
        {
            return Err(RecordError::UnknownImport {
                module: import.module.clone(),
                name: import.name.clone(),
            });
        }
    }
    Ok(())
}

fn host_function<'a>(
    functions: &'a [HostFunction],
    module: &str,
    name: &str,
) -> Option<&'a HostFunction> {
    functions
        .iter()
        .find(|f| f.module == module && f.name == name)
}

struct Run<'a> {
    bytes: &'a [u8],
    program: &'a Program,
    command: &'a Command,
    options: &'a RecordOptions,
    rewritten: &'a Rewritten,
    plan: Option<&'a Plan>,
    entries: Vec<(FuncId, String, Vec<RawValue>)>,
    room: Room,
    out: &'a TraceWriter,
}

impl Run<'_> {
    fn run(
        &self,
        module: &Module,
        interrupt: &Interrupt,
        log: LogWriter,
        paths: Option<PathHost>,
    ) -> Result<Recorded, RecordError> {
        let mut store = Store::new(module.engine(), self.host(interrupt, log, paths)?);
        let mut imports = Vec::with_capacity(self.program.imports.len());
        let mut needs_memory = false;
        for (i, (import, wanted)) in self
            .program
            .imports
            .iter()
            .zip(module.imports())
            .enumerate()
        {
            let unknown = || RecordError::UnknownImport {
                module: import.module.clone(),
                name: import.name.clone(),
            };
            let id = ImportId::from_u32(i as u32);
            let found = wanted.ty().func().cloned().ok_or_else(unknown)?;
            if let Some(offered) =
                host_function(&self.options.functions, &import.module, &import.name)
            {
                let function = offered.define(&mut store, found, id);
                imports.push(saying(&mut store, function, id).into());
                continue;
            }
            needs_memory = true;
            let function = wasi::function(&mut store, &import.name, id).ok_or_else(unknown)?;
            let expected = function.ty(&store);
            if !found.matches(&expected) {
                return Err(RecordError::ImportType {
                    name: import.name.clone(),
                    found: found.to_string(),
                    expected: expected.to_string(),
                });
            }
            imports.push(saying(&mut store, function, id).into());
        }
        let instance =
            Instance::new(&mut store, module, &imports).map_err(RecordError::instantiate)?;
        let memory = instance.get_memory(&mut store, "memory");
        if needs_memory && memory.is_none() {
            return Err(RecordError::NoMemory);
        }
        store.data_mut().memory = memory;
        store.limiter(|live| live);

        let counters = instance
            .get_memory(&mut store, MEMORY_EXPORT)
            .ok_or(RecordError::NoMemory)?;
        let probes = counters.data_ptr(&store) as usize;
        let guard = self.options.clock.then(|| interrupt.guard(probes));
        // This is dropped before the store, because the consumer may be reading the store's memory
        // until then.
        let quiet = PathHost::connect(&mut store, &instance, &self.rewritten.layout)?;
        let start = cpu_time();
        let (outcome, results) = self.call_entries(&mut store, &instance)?;
        let cpu_seconds = cpu_time() - start;
        drop(guard);
        PathHost::finish(&mut store)?;
        drop(quiet);

        store.data_mut().flush_growth()?;
        let memory = counters.data(&store)[..self.rewritten.layout.buffer() as usize].to_vec();
        let live = store.into_data();
        live.log.finish()?;
        let index = OperatorIndex::new(self.program, self.bytes);
        let map = &self.rewritten.map;
        let doubt = outcome.in_doubt(self.program, self.bytes, &index, map);
        let (trapped, uncertain) = match &doubt {
            Some(doubt) => {
                let run = Unsettled {
                    out: self.out,
                    bytes: self.bytes,
                    program: self.program,
                    index: &index,
                    ending: &outcome.ending(&[], None),
                    doubt,
                };
                let progress = (self.options.repeating.0)(live.events);
                match trapped_at(&run, interrupt, &progress) {
                    Ok(frame) => (Some(frame), None),
                    Err(error) => {
                        let known = doubt.known();
                        let in_block = known.is_some();
                        (known, Some(Uncertain { error, in_block }))
                    }
                }
            }
            None => (None, None),
        };
        let nowhere = uncertain.as_ref().is_some_and(|u| !u.in_block);
        let standing = if nowhere {
            Vec::new()
        } else {
            outcome.standing(self.program, &index, map, trapped.as_ref())?
        };
        let end = End {
            ending: outcome.ending(&standing, interrupt.requested()),
            frames: frames(self.program, &standing)?,
            clock: self.options.clock.then(|| word(&memory, CLOCK_AT)),
            events: live.events,
            host_call_counts: live.calls.clone(),
        };
        let counts = match self.plan {
            Some(plan) if !nowhere => {
                let open = open_frames(self.program, &index, &outcome, &standing)?;
                let entered: Vec<FuncId> = self
                    .entries
                    .iter()
                    .take(live.entered)
                    .map(|e| e.0)
                    .collect();
                let counters = self
                    .rewritten
                    .layout
                    .counters(&memory)
                    .ok_or(RecordError::NoCounters)?;
                let course = Course {
                    entered: &entered,
                    calls: live.calls,
                    open,
                    not_entered: not_entered(&standing),
                };
                Some(solve_counts(self.program, plan, &counters, course)?)
            }
            _ => None,
        };
        Ok(Recorded {
            end,
            cpu_seconds,
            results,
            counts,
            uncertain,
        })
    }

    fn call_entries(
        &self,
        store: &mut Store<Live>,
        instance: &Instance,
    ) -> Result<(Outcome, Vec<RawValue>), RecordError> {
        let mut last = Vec::new();
        for (function, export, args) in &self.entries {
            store.data_mut().flush_growth()?;
            store.data_mut().log(&Event::Enter {
                function: *function,
                args: args.clone(),
            })?;
            store.data_mut().entered += 1;
            if let Some(paths) = &store.data().paths {
                paths.host_call(*function)?;
            }
            let callee =
                instance
                    .get_func(&mut *store, export)
                    .ok_or_else(|| RecordError::NoExport {
                        wanted: export.clone(),
                        exports: Vec::new(),
                    })?;
            let types = callee.ty(&*store);
            let params = args.iter().zip(types.params());
            let params = Vec::from_iter(params.map(|(&a, ty)| argument(a, &ty)));
            let mut results: Vec<Val> = callee.ty(&*store).results().map(|ty| zero(&ty)).collect();
            if let Err(error) = callee.call(&mut *store, &params, &mut results) {
                return Ok((classify(error, self.program, *function)?, Vec::new()));
            }
            last = results.iter().map(raw).collect();
            store.data_mut().flush_growth()?;
            store.data_mut().log(&Event::Leave {
                results: last.clone(),
            })?;
        }
        Ok((Outcome::Returned, last))
    }

    fn host(
        &self,
        interrupt: &Interrupt,
        log: LogWriter,
        paths: Option<PathHost>,
    ) -> Result<Live, RecordError> {
        let command = self.command;
        let arguments = arguments(command);
        let wasi = wasi_context(command, &arguments, self.options, interrupt)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(RecordError::Thread)?;
        let environment = command.env.iter().map(|(k, v)| k.len() + 1 + v.len());
        Ok(Live {
            wasi,
            runtime,
            interrupt: interrupt.clone(),
            memory: None,

            log,
            events: 0,
            entered: 0,
            calls: vec![0; self.program.imports.len()],
            arguments: Strings::of(arguments.iter().map(String::len)),
            environment: Strings::of(environment),
            check_effects: self.options.check_effects,
            reads: Vec::new(),
            targets: Vec::new(),
            spans: Vec::new(),
            growth: None,
            room: self.room,
            paths,
        })
    }
}

/// Wraps an import so that it reports its number first. Does so only if a table may contain the
/// import and the path is being written.
fn saying(store: &mut Store<Live>, function: Func, import: ImportId) -> Func {
    let id = FuncId::from_u32(import.as_u32());
    let paths = store.data().paths.as_ref();
    if paths.and_then(|paths| paths.number(id)).is_none() {
        return function;
    }
    let ty = function.ty(&*store);
    Func::new(&mut *store, ty, move |mut caller, params, results| {
        say_number(caller.as_context_mut(), id)?;
        function.call(&mut caller, params, results)
    })
}

/// Returns the processor time of this thread in seconds.
pub(crate) fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Reads a word of the probes' memory.
pub(crate) fn word(memory: &[u8], address: u64) -> u64 {
    let at = address as usize;
    memory.get(at..at + 8).map_or(0, |b| {
        u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
    })
}

/// Stops the run after a time limit, unless dropped first.
struct Timer {
    /// Dropping this tells the waiting thread that the run is over.
    _over: mpsc::Sender<()>,
}

impl Timer {
    fn start(limit: Duration, interrupt: Interrupt) -> Self {
        let (over, waiting) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                interrupt.stop(Interrupter::Timeout);
            }
        });
        Self { _over: over }
    }
}
