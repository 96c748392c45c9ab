//! Implements the host's side of the path probes of one instance.

use afterimage_ids::FuncId;
use afterimage_paths::EntryIds;
use afterimage_rewrite::{CURSOR_EXPORT, Layout, MEMORY_EXPORT, PENDING_EXPORT};
use wasmtime::unix::StoreExt;
use wasmtime::{AsContextMut, Global, Instance, Store, StoreContextMut, Val};

use super::Producer;
use super::buffer::{HandOverError, Quiet};
use super::guard::Ring;
use crate::RecordError;
use crate::snapshots::{Captured, Lines};

/// The host's state for the path probes.
pub(crate) struct PathHost {
    producer: Producer,
    entry_ids: EntryIds,
    /// Whether the guest faults when it reaches the half being read. Otherwise, it calls the host
    /// when its own half is full.
    guarded: bool,
    places: Option<Places>,
}

/// The globals with the state of the guest code that writes the words.
#[derive(Clone, Copy)]
struct Places {
    pending: Global,
    cursor: Global,
    /// The ring's size in bytes.
    size: u32,
}

/// Store data that may contain a [`PathHost`].
pub(crate) trait HasPaths {
    /// Returns the host's state for the path probes, if the run is traced.
    fn paths(&mut self) -> Option<&mut PathHost>;
}

impl PathHost {
    pub(crate) fn new(producer: Producer, entry_ids: EntryIds) -> Self {
        Self {
            producer,
            entry_ids,
            guarded: true,
            places: None,
        }
    }

    /// Adapts the state to a guest that calls [`half_is_full`](Self::half_is_full).
    pub(crate) fn unguarded(self) -> Self {
        Self {
            guarded: false,
            ..self
        }
    }

    /// Handles the guest's report that its half is full.
    pub(crate) fn half_is_full<T: HasPaths>(
        mut store: StoreContextMut<'_, T>,
    ) -> Result<(), RecordError> {
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        Ok(paths.producer.full()?)
    }

    /// Connects the probes of an instance. Drop the returned guard before the store.
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
        let (pending, cursor) = (global(PENDING_EXPORT), global(CURSOR_EXPORT));
        let (Some(memory), Some(pending), Some(cursor)) = (memory, pending, cursor) else {
            return Err(RecordError::NoCounters);
        };
        let start = memory.data_mut(&mut *store)[layout.buffer() as usize..].as_mut_ptr();
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        paths.places = Some(Places {
            pending,
            cursor,
            size: 16 * layout.half,
        });
        let (producer, guarded) = (paths.producer.clone(), paths.guarded);
        let quiet = producer.place(Ring::new(start, layout.half, guarded))?;
        // SAFETY: `Producer::fault` explains what a handler may do, and why this handler does
        // nothing else. The address in a fault's signal is valid.
        #[allow(unsafe_code)]
        unsafe {
            store.set_signal_handler(move |_, info, _| producer.fault((*info).si_addr().addr()));
        }
        Ok(Some(quiet))
    }

    /// Reports a call by the host.
    pub(crate) fn host_call(&self, function: FuncId) -> Result<(), RecordError> {
        Ok(self.producer.host_call(function)?)
    }

    /// Returns the number of an import that a table may contain, and the number's width in bits.
    pub(crate) fn number(&self, import: FuncId) -> Option<(u32, u8)> {
        self.entry_ids.of(import).filter(|(_, width)| *width > 0)
    }

    /// Hands over everything written so far, and the captured state.
    pub(crate) fn cut<T: HasPaths>(
        mut store: StoreContextMut<'_, T>,
        captured: Captured,
    ) -> Result<(), RecordError> {
        let Some(places) = store.data_mut().paths().and_then(|p| p.places) else {
            return Err(RecordError::NoCounters);
        };
        let word = i32_of(&places.cursor, &mut store) as usize / 8;
        let Val::I64(pending) = places.pending.get(&mut store) else {
            return Err(RecordError::NoCounters);
        };
        let emptied = places.pending.set(&mut store, Val::I64(1));
        emptied.map_err(|_| RecordError::NoCounters)?;
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        Ok(paths
            .producer
            .cut(word, pending as u64, Box::new(captured))?)
    }

    /// Sends the lines of memory written since the last cut, at the end of the run.
    pub(crate) fn wrote(&self, lines: Vec<Lines>) -> Result<(), HandOverError> {
        self.producer.wrote(lines)
    }

    /// Hands over the last words of the run.
    pub(crate) fn finish<T: HasPaths>(store: &mut Store<T>) -> Result<(), RecordError> {
        let Some(places) = store.data_mut().paths().and_then(|p| p.places) else {
            return Ok(());
        };
        let word = i32_of(&places.cursor, &mut store.as_context_mut()) as usize / 8;
        let Val::I64(pending) = places.pending.get(&mut *store) else {
            return Err(RecordError::NoCounters);
        };
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        Ok(paths.producer.finish(word, pending as u64)?)
    }
}

/// Writes the number of an import that a table may contain, as functions of the program do on
/// entry.
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
        if let Some(paths) = store.data_mut().paths() {
            let written = paths.producer.write(cursor as usize / 8, pending);
            written.map_err(RecordError::from)?;
            let end = cursor + 8;
            if !paths.guarded && end.is_multiple_of(places.size / 2) {
                paths.producer.full().map_err(RecordError::from)?;
            }
        }
        let next = (cursor + 8) % places.size;
        places.cursor.set(&mut store, Val::I32(next as i32))?;
        pending = 1;
    }
    pending = pending << width | u64::from(number);
    places.pending.set(&mut store, Val::I64(pending as i64))
}

fn i32_of<T>(global: &Global, store: &mut StoreContextMut<'_, T>) -> u32 {
    match global.get(&mut *store) {
        Val::I32(value) => value as u32,
        _ => 0,
    }
}
