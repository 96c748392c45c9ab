//! Steps through a recording in the engine, with the values that its debugger shows.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use afterimage_trace::{Event, RawValue};
use wasmtime::{
    AsContextMut, DebugEvent, DebugHandler, Instance, Module, Store, StoreContextMut, Trap, Val,
};

use crate::harness::Recording;
use crate::play::{Host, engine, imports, raw, val};

/// The maximum number of operators watched.
pub const MOST: usize = 50_000;

/// An operator that is about to be executed.
pub struct Step {
    /// The index of its function among the module's defined functions.
    pub function: u32,
    /// Its offset in the module.
    pub offset: u32,
    /// The values of the locals.
    pub locals: Vec<RawValue>,
    /// The operand stack, topmost operand last.
    pub stack: Vec<RawValue>,
}

#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<Step>>>);

impl Watcher {
    fn watch(&self, mut store: StoreContextMut<'_, Host>) {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() == MOST {
            return;
        }
        let frame = store.debug_exit_frames().next().expect("a frame");
        let at = frame.wasm_function_index_and_pc(&mut store);
        let (function, offset) = at.expect("a frame").expect("a function of the module");
        let locals = frame.num_locals(&mut store).expect("locals");
        let locals = (0..locals).map(|i| raw(&frame.local(&mut store, i).expect("a local")));
        let locals = locals.collect();
        let stack = frame.num_stacks(&mut store).expect("a stack");
        let stack = (0..stack).map(|i| raw(&frame.stack(&mut store, i).expect("a slot")));
        let stack = stack.collect();
        steps.push(Step {
            function: function.as_u32(),
            offset: offset.raw(),
            locals,
            stack,
        });
    }
}

impl DebugHandler for Watcher {
    type Data = Host;

    fn handle(
        &self,
        store: StoreContextMut<'_, Host>,
        event: DebugEvent<'_>,
    ) -> impl Future<Output = ()> + Send {
        if matches!(event, DebugEvent::Breakpoint) {
            self.watch(store);
        }
        std::future::ready(())
    }
}

/// Returns the operators that the engine executes, with the recorded log as the host. Long runs are
/// truncated.
pub fn steps(recording: &Recording) -> Vec<Step> {
    let watcher = Watcher::default();
    let watching = watcher.clone();
    crate::play::on_deep_stack(move || {
        let engine = engine(true);
        let module = Module::new(&engine, &recording.bytes).expect("a valid module");
        let log = recording.file.log().expect("a log");
        let mut store = Store::new(&engine, Host::new(log, None));
        store.set_debug_handler(watching);
        let imports = imports(&mut store, &module);
        finish(run(&mut store, recording, &module, &imports));
    });
    let mut steps = watcher.0.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut steps)
}

/// Returns the function and offset of the debugger's last step in a module without imports, and the
/// trap that follows.
pub fn last_step(bytes: &[u8], export: &str, args: &[i32]) -> (u32, u32, Trap) {
    thread_local! {
        // Creating an engine takes a millisecond, and there are thousands of runs.
        static ENGINE: wasmtime::Engine = engine(true);
    }
    let module = ENGINE
        .with(|engine| Module::new(engine, bytes))
        .expect("a valid module");
    let last = Arc::new(Mutex::new(None));
    let mut store = Store::new(module.engine(), ());
    store.set_debug_handler(Last(Arc::clone(&last)));
    let mut trap = None;
    finish(async {
        let mut breakpoints = store.edit_breakpoints().expect("a debugger");
        breakpoints.single_step(true).expect("single steps");
        drop(breakpoints);
        let instance = Instance::new_async(&mut store, &module, &[])
            .await
            .expect("an instance");
        let callee = instance.get_func(&mut store, export).expect("an export");
        let args = Vec::from_iter(args.iter().map(|&arg| Val::I32(arg)));
        let error = callee
            .call_async(&mut store, &args, &mut [])
            .await
            .expect_err("a trap");
        trap = error.downcast_ref::<Trap>().copied();
    });
    let last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let (function, offset) = last.expect("a step");
    (function, offset, trap.expect("a trap"))
}

/// Remembers the place of the last step.
#[derive(Clone)]
struct Last(Arc<Mutex<Option<(u32, u32)>>>);

impl DebugHandler for Last {
    type Data = ();

    fn handle(
        &self,
        mut store: StoreContextMut<'_, ()>,
        event: DebugEvent<'_>,
    ) -> impl Future<Output = ()> + Send {
        if matches!(event, DebugEvent::Breakpoint) {
            let frame = store.debug_exit_frames().next().expect("a frame");
            let at = frame.wasm_function_index_and_pc(&mut store);
            let (function, offset) = at.expect("a frame").expect("a function of the module");
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some((function.as_u32(), offset.raw()));
        }
        std::future::ready(())
    }
}

/// Makes the calls that the host made, and ignores their outcomes.
async fn run(
    store: &mut Store<Host>,
    recording: &Recording,
    module: &Module,
    imports: &[wasmtime::Extern],
) {
    let program = &recording.program;
    if program.start.is_some() {
        store.data_mut().next();
    }
    let mut breakpoints = store.edit_breakpoints().expect("a debugger");
    breakpoints.single_step(true).expect("single steps");
    drop(breakpoints);
    let Ok(instance) = Instance::new_async(&mut *store, module, imports).await else {
        return;
    };
    if program.start.is_some() {
        store.data_mut().next();
    }
    while let Some(Event::Enter { function, args }) = store.data_mut().next() {
        let export = program.exports.iter().find(|e| e.1 == function);
        let export = export.expect("the host calls exports");
        let callee = instance.get_func(&mut *store, &export.0);
        let callee = callee.expect("an exported function");
        let args = Vec::from_iter(args.into_iter().map(val));
        let mut results = vec![Val::I32(0); callee.ty(&*store).results().len()];
        let called = callee.call_async(store.as_context_mut(), &args, &mut results);
        if called.await.is_err() {
            return;
        }
        store.data_mut().next();
    }
}

/// Runs a future that never waits.
fn finish(work: impl Future<Output = ()>) {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    while work.as_mut().poll(&mut context).is_pending() {}
}
