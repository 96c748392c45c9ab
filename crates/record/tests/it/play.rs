//! Plays a recording's log to any form of its module: plain, instrumented or traced.
//!
//! This is a second, naive re-execution, which takes only the log and uses no code under test.

use std::sync::Arc;

use afterimage_program::Program;
use afterimage_testkit::naive_trace::{Finish, HOOKS, Observer, Surprise};
use afterimage_trace::{Event, HostStop, LogReader, RawValue, TraceFile};
use wasmparser::WasmFeatures;
use wasmtime::{
    AsContextMut, Caller, Config, Engine, Extern, Func, Instance, Module, OptLevel, Ref, Store,
    ThrownException, Val,
};

/// More stack than any instrumented form of a recorded execution needs.
const STACK: usize = 200 << 20;

/// The result of playing a log.
#[derive(Debug)]
pub struct Played {
    /// The results of every call that returned.
    pub results: Vec<Vec<RawValue>>,
    /// The way in which the run ended.
    pub finish: Finish,
    /// The error that ended the run.
    pub error: Option<String>,
    /// Every exported memory, table and global at the end, as text; `None` without an instance.
    pub state: Option<Vec<(String, String)>>,
}

/// Answers the guest's calls from the log.
pub struct Host {
    log: LogReader,
    observer: Option<Observer<'static>>,
}

impl Host {
    pub fn new(log: LogReader, observer: Option<Observer<'static>>) -> Self {
        Self { log, observer }
    }

    /// Returns the next event. Growth is skipped, because engines agree on it.
    pub fn next(&mut self) -> Option<Event> {
        loop {
            match self.log.next()?.expect("a sound log") {
                Event::MemoryGrow { .. } | Event::TableGrow { .. } => {}
                event => return Some(event),
            }
        }
    }

    fn observer(&mut self) -> &mut Observer<'static> {
        self.observer
            .as_mut()
            .expect("only traced modules have hooks")
    }
}

/// Returns the engine with the recording's guest-visible settings and room for a deep stack.
/// Enables the debugger on request.
pub fn engine(debugged: bool) -> Engine {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::None)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_exceptions(true)
        .wasm_tail_call(true)
        .wasm_multi_memory(true)
        .wasm_memory64(true)
        .wasm_extended_const(true)
        .wasm_features(WasmFeatures::THREADS, true)
        .max_wasm_stack(STACK)
        .async_stack_size(STACK + (1 << 20))
        .guest_debug(debugged);
    Engine::new(&config).expect("an engine")
}

/// Plays the log of a recording to a form of its module. Hooks report to the observer, which is
/// returned.
pub fn play(
    module: &[u8],
    program: &Arc<Program>,
    file: &TraceFile,
    observer: Option<Observer<'static>>,
) -> (Played, Option<Observer<'static>>) {
    let log = file.log().expect("a log");
    on_deep_stack(move || {
        let engine = engine(false);
        let module = Module::new(&engine, module).expect("a valid module");
        let mut store = Store::new(&engine, Host::new(log, observer));
        let played = play_in(&mut store, &module, program);
        (played, store.into_data().observer)
    })
}

/// Runs `work` on a thread with a deep stack.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK + (8 << 20))
            .spawn_scoped(scope, work);
        thread
            .expect("a thread")
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn play_in(store: &mut Store<Host>, module: &Module, program: &Program) -> Played {
    let imports = imports(store, module);
    let mut played = Played {
        results: Vec::new(),
        finish: Finish::Returned,
        error: None,
        state: None,
    };
    if program.start.is_some() {
        assert!(
            matches!(store.data_mut().next(), Some(Event::Enter { .. })),
            "the start function comes first"
        );
    }
    let instance = match Instance::new(&mut *store, module, &imports) {
        Ok(instance) => instance,
        Err(error) => {
            end(&mut played, &error);
            return played;
        }
    };
    if program.start.is_some() {
        assert_eq!(
            store.data_mut().next(),
            Some(Event::Leave {
                results: Vec::new()
            })
        );
    }
    while let Some(event) = store.data_mut().next() {
        let Event::Enter { function, args } = event else {
            panic!("{event:?} while the guest does not run")
        };
        let export = program
            .exports
            .iter()
            .find(|e| e.1 == function)
            .expect("the host calls exports");
        let callee = instance
            .get_func(&mut *store, &export.0)
            .expect("an exported function");
        let args: Vec<Val> = args.into_iter().map(val).collect();
        let mut results = vec![Val::I32(0); callee.ty(&*store).results().len()];
        if let Err(error) = callee.call(&mut *store, &args, &mut results) {
            end(&mut played, &error);
            break;
        }
        played.results.push(results.iter().map(raw).collect());
        let left = store.data_mut().next();
        assert!(
            matches!(left, Some(Event::Leave { .. }) | None),
            "{left:?} when the guest returned"
        );
    }
    played.state = Some(state(store, &instance));
    played
}

fn end(played: &mut Played, error: &wasmtime::Error) {
    if let Some(Surprise::Step(what)) = error.downcast_ref() {
        panic!("{what}");
    }
    played.finish = if error.is::<ThrownException>() {
        Finish::Exception
    } else {
        Finish::Stopped
    };
    played.error = Some(error.root_cause().to_string());
}

pub fn imports(store: &mut Store<Host>, module: &Module) -> Vec<Extern> {
    let mut imports = Vec::new();
    for (i, import) in module.imports().enumerate() {
        let function = if import.module() == HOOKS[0].0 {
            hook(store, import.name())
        } else {
            let ty = import
                .ty()
                .func()
                .expect("only functions are imported")
                .clone();
            Func::new(&mut *store, ty, move |caller, args, results| {
                host_call(caller, i as u32, args, results)
            })
        };
        imports.push(function.into());
    }
    imports
}

fn hook(store: &mut Store<Host>, name: &str) -> Func {
    type Context<'a> = Caller<'a, Host>;
    match name {
        "enter" => Func::wrap(store, |mut c: Context<'_>, f: u32| {
            Ok(c.data_mut().observer().enter(f)?)
        }),
        "at" => Func::wrap(store, |mut c: Context<'_>, a: u32, b: u32| {
            Ok(c.data_mut().observer().at(a, b)?)
        }),
        "decide" => Func::wrap(store, |mut c: Context<'_>, value: u32| {
            c.data_mut().observer().decide(value)?;
            Ok(value)
        }),
        "catch" => Func::wrap(store, |mut c: Context<'_>, a: u32, op: u32, clause: u32| {
            Ok(c.data_mut().observer().catch(a, op, clause)?)
        }),
        "leave" => Func::wrap(store, |mut c: Context<'_>, a: u32| {
            Ok(c.data_mut().observer().leave(a)?)
        }),
        "tail" => Func::wrap(store, |mut c: Context<'_>, a: u32| {
            Ok(c.data_mut().observer().tail(a)?)
        }),
        name => panic!("there is no hook {name}"),
    }
}

fn host_call(
    mut caller: Caller<'_, Host>,
    called: u32,
    args: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    if let Some(observer) = &mut caller.data_mut().observer {
        observer.host_call()?;
    }
    let event = caller.data_mut().next();
    let expected: Vec<RawValue> = args.iter().map(raw).collect();
    match event {
        Some(Event::HostCall {
            import,
            args,
            results: values,
            writes,
            ..
        }) => {
            assert_eq!((import.as_u32(), args), (called, expected));
            for write in writes {
                let memory = caller
                    .get_export("memory")
                    .and_then(Extern::into_memory)
                    .expect("a memory");
                memory.write(&mut caller, write.address as usize, &write.bytes)?;
            }
            for (slot, value) in results.iter_mut().zip(values) {
                *slot = val(value);
            }
            Ok(())
        }
        Some(Event::HostStop {
            import,
            args,
            outcome,
            ..
        }) => {
            assert_eq!((import.as_u32(), args), (called, expected));
            Err(wasmtime::Error::msg(match outcome {
                HostStop::Exit(code) => format!("exit {code}"),
                HostStop::Error(message) => message,
                HostStop::Interrupted => "interrupted".to_owned(),
            }))
        }
        other => panic!("import {called} is called; the log has {other:?}"),
    }
}

/// Returns everything about an instance that the host can see, except what instrumentation added.
fn state(store: &mut Store<Host>, instance: &Instance) -> Vec<(String, String)> {
    let exports: Vec<(String, Extern)> = instance
        .exports(&mut *store)
        .map(|e| (e.name().to_owned(), e.into_extern()))
        .collect();
    let mut state = Vec::new();
    for (name, export) in exports {
        if name.starts_with("afterimage.") {
            continue;
        }
        let text = match export {
            Extern::Memory(memory) => {
                let bytes = memory.data(&*store);
                format!(
                    "{} bytes, checksum {:#x}",
                    bytes.len(),
                    crc32fast::hash(bytes)
                )
            }
            Extern::Global(global) => {
                let value = global.get(store.as_context_mut());
                format!("{:?}", raw(&value))
            }
            Extern::Table(table) => {
                let elements =
                    (0..table.size(&*store)).map(|i| table.get(store.as_context_mut(), i));
                elements
                    .map(|e| {
                        if e.as_ref().is_none_or(Ref::is_null) {
                            '-'
                        } else {
                            'x'
                        }
                    })
                    .collect()
            }
            _ => continue,
        };
        state.push((name, text));
    }
    state
}

pub fn raw(value: &Val) -> RawValue {
    match value {
        Val::I32(v) => RawValue::I32(*v),
        Val::I64(v) => RawValue::I64(*v),
        Val::F32(v) => RawValue::F32(*v),
        Val::F64(v) => RawValue::F64(*v),
        Val::V128(v) => RawValue::V128(v.as_u128()),
        reference if reference.ref_().is_some_and(|r| r.is_null()) => RawValue::NullRef,
        _ => RawValue::OpaqueRef,
    }
}

pub fn val(value: RawValue) -> Val {
    match value {
        RawValue::I32(v) => Val::I32(v),
        RawValue::I64(v) => Val::I64(v),
        RawValue::F32(v) => Val::F32(v),
        RawValue::F64(v) => Val::F64(v),
        RawValue::V128(v) => Val::V128(v.into()),
        RawValue::NullRef | RawValue::OpaqueRef => panic!("references are no arguments"),
    }
}
