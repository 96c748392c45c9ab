//! The host's side of the path's probes in one instance.

use afterimage_ids::FuncId;
use afterimage_paths::EntryIds;
use afterimage_rewrite::{
    CURSOR_EXPORT, LIMIT_EXPORT, Layout, MEMORY_EXPORT, PENDING_EXPORT, SWAP_EXPORT,
};
use wasmtime::{AsContextMut, Func, Global, Instance, Memory, Ref, Store, StoreContextMut, Val};

use super::Producer;
use super::buffer::Quiet;
use crate::RecordError;

/// What the host has of the path's probes.
pub(crate) struct PathHost {
    producer: Producer,
    entry_ids: EntryIds,
    places: Option<Places>,
}

/// Where the words are.
#[derive(Clone, Copy)]
struct Places {
    memory: Memory,
    pending: Global,
    cursor: Global,
    limit: Global,
    buffer: u32,
    half: u32,
}

/// A store's data that may hold a [`PathHost`].
pub(crate) trait HasPaths {
    /// It, if the run is traced.
    fn paths(&mut self) -> Option<&mut PathHost>;
}

impl PathHost {
    pub(crate) fn new(producer: Producer, entry_ids: EntryIds) -> Self {
        Self {
            producer,
            entry_ids,
            places: None,
        }
    }

    /// Connects the probes of an instance. The guard must be dropped before the store is.
    pub(crate) fn connect<T: HasPaths + 'static>(
        store: &mut Store<T>,
        instance: &Instance,
        layout: &Layout,
    ) -> Result<Option<Quiet>, RecordError> {
        if store.data_mut().paths().is_none() {
            return Ok(None);
        }
        let memory = instance.get_memory(&mut *store, MEMORY_EXPORT);
        let mut global = |name| instance.get_global(&mut *store, name);
        let (pending, cursor, limit) = (
            global(PENDING_EXPORT),
            global(CURSOR_EXPORT),
            global(LIMIT_EXPORT),
        );
        let table = instance.get_table(&mut *store, SWAP_EXPORT);
        let (Some(memory), Some(pending), Some(cursor), Some(limit), Some(table)) =
            (memory, pending, cursor, limit, table)
        else {
            return Err(RecordError::NoCounters);
        };
        let swap = Func::wrap(&mut *store, |mut caller: wasmtime::Caller<'_, T>| {
            swap(&mut caller.as_context_mut())
        });
        table
            .set(&mut *store, 0, Ref::Func(Some(swap)))
            .map_err(|e| RecordError::Instantiate(e.to_string()))?;
        let base = memory.data(&*store)[layout.buffer() as usize..].as_ptr();
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        paths.places = Some(Places {
            memory,
            pending,
            cursor,
            limit,
            buffer: layout.buffer() as u32,
            half: 8 * layout.half,
        });
        Ok(Some(paths.producer.place(base.cast())))
    }

    /// Tells of a call by the host.
    pub(crate) fn host_call(&self, function: FuncId) -> Result<(), RecordError> {
        Ok(self.producer.host_call(function)?)
    }

    /// The number of an import that a table may hold, and its width.
    pub(crate) fn number(&self, import: FuncId) -> Option<(u32, u8)> {
        self.entry_ids.of(import).filter(|(_, width)| *width > 0)
    }

    /// Hands over what the run wrote last.
    pub(crate) fn finish<T: HasPaths>(store: &mut Store<T>) -> Result<(), RecordError> {
        let Some(places) = store.data_mut().paths().and_then(|p| p.places) else {
            return Ok(());
        };
        let words = written(&places, &mut store.as_context_mut());
        let Val::I64(pending) = places.pending.get(&mut *store) else {
            return Err(RecordError::NoCounters);
        };
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        Ok(paths.producer.finish(words, pending as u64)?)
    }
}

/// An import that a table may hold says its number, as the program's own functions do at their entries.
pub(crate) fn say_number<T: HasPaths>(
    mut store: StoreContextMut<'_, T>,
    import: FuncId,
) -> wasmtime::Result<()> {
    let Some(paths) = store.data_mut().paths() else {
        return Ok(());
    };
    let (Some((number, width)), Some(places)) = (paths.number(import), paths.places) else {
        return Ok(());
    };
    let Val::I64(pending) = places.pending.get(&mut store) else {
        return Err(RecordError::NoCounters.into());
    };
    let mut pending = pending as u64;
    if pending >= 1 << (64 - width) {
        let cursor = i32_of(&places.cursor, &mut store);
        places
            .memory
            .write(&mut store, cursor as usize, &pending.to_le_bytes())?;
        let cursor = cursor + 8;
        places.cursor.set(&mut store, Val::I32(cursor as i32))?;
        if cursor == i32_of(&places.limit, &mut store) {
            swap(&mut store)?;
        }
        pending = 1;
    }
    pending = pending << width | u64::from(number);
    places.pending.set(&mut store, Val::I64(pending as i64))
}

/// The half is full: goes on in the other one.
fn swap<T: HasPaths>(store: &mut StoreContextMut<'_, T>) -> wasmtime::Result<()> {
    let Some(places) = store.data_mut().paths().and_then(|p| p.places) else {
        return Ok(());
    };
    let words = written(&places, store);
    let Some(paths) = store.data_mut().paths() else {
        return Ok(());
    };
    let half = paths.producer.swap(words).map_err(RecordError::from)?;
    let start = places.buffer + places.half * half as u32;
    places.cursor.set(&mut *store, Val::I32(start as i32))?;
    places
        .limit
        .set(&mut *store, Val::I32((start + places.half) as i32))
}

/// How many words of the current half are written.
fn written<T>(places: &Places, store: &mut StoreContextMut<'_, T>) -> usize {
    let left = i32_of(&places.limit, store) - i32_of(&places.cursor, store);
    (places.half - left) as usize / 8
}

fn i32_of<T>(global: &Global, store: &mut StoreContextMut<'_, T>) -> u32 {
    match global.get(&mut *store) {
        Val::I32(value) => value as u32,
        _ => 0,
    }
}
