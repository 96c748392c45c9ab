//! Supports imports outside WASI with host functions of the embedding application.
//!
//! Unlike WASI functions, these functions do not declare their writes. We find the writes by
//! comparing all of the guest's memory before and after each call, in time proportional to its
//! size. Reads cannot be found this way and are not in the log.

use std::sync::{Arc, Mutex, PoisonError};

use afterimage_ids::ImportId;
use afterimage_trace::{HostCallRef, HostStop, HostWriteRef, RawValue};
use wasmtime::{Caller, Func, FuncType, Store};

use crate::RecordError;
use crate::live::Live;
use crate::values::{raw, same_type, val, zero};

/// Gaps of up to this many bytes between changed bytes are logged along with them.
const GAP: usize = 16;

type Call = dyn FnMut(&mut [u8], &[RawValue]) -> Result<Vec<RawValue>, String> + Send;

/// A function that the host offers to the guest.
#[derive(Clone)]
pub struct HostFunction {
    pub(crate) module: String,
    pub(crate) name: String,
    call: Arc<Mutex<Call>>,
}

impl HostFunction {
    /// Creates a function for the import `module` `name`. It receives the guest's exported memory
    /// "memory" (empty if there is none) and the arguments. It returns results of the import's
    /// types, or the reason why the run cannot continue.
    pub fn new(
        module: &str,
        name: &str,
        call: impl FnMut(&mut [u8], &[RawValue]) -> Result<Vec<RawValue>, String> + Send + 'static,
    ) -> Self {
        Self {
            module: module.to_owned(),
            name: name.to_owned(),
            call: Arc::new(Mutex::new(call)),
        }
    }

    /// Defines the function in the engine. Its calls are logged as calls to `import`.
    pub(crate) fn define(&self, store: &mut Store<Live>, ty: FuncType, import: ImportId) -> Func {
        let this = self.call.clone();
        let expected = ty.clone();
        Func::new(&mut *store, ty, move |mut caller, params, results| {
            let args: Vec<RawValue> = params.iter().map(raw).collect();
            let values = logged(&mut caller, &this, import, &args)?;
            let fits = values.len() == results.len()
                && values
                    .iter()
                    .zip(expected.results())
                    .all(|(value, ty)| same_type(*value, &zero(&ty)));
            if !fits {
                let message = format!(
                    "import {} returned {values:?}, which are not of its result types",
                    import.as_u32()
                );
                return Err(wasmtime::Error::msg(message));
            }
            for (slot, value) in results.iter_mut().zip(values) {
                *slot = val(value);
            }
            Ok::<(), wasmtime::Error>(())
        })
    }
}

impl std::fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostFunction")
            .field("module", &self.module)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn logged(
    caller: &mut Caller<'_, Live>,
    call: &Mutex<Call>,
    import: ImportId,
    args: &[RawValue],
) -> wasmtime::Result<Vec<RawValue>> {
    let memory = caller.data().memory;
    let (bytes, live): (&mut [u8], &mut Live) = match memory {
        Some(memory) => memory.data_and_store_mut(caller),
        None => (&mut [], caller.data_mut()),
    };
    live.calls[import.as_u32() as usize] += 1;
    live.flush_growth()?;
    let before = bytes.to_vec();
    let outcome = call.lock().unwrap_or_else(PoisonError::into_inner)(bytes, args);
    let values = match outcome {
        Ok(values) => values,
        Err(message) => {
            live.reads.clear();
            live.log_stop(
                import,
                args,
                crc32fast::hash(&[]),
                HostStop::Error(message.clone()),
            )?;
            return Err(wasmtime::Error::msg(message));
        }
    };
    let writes: Vec<HostWriteRef<'_>> = changed(&before, bytes)
        .into_iter()
        .map(|span| HostWriteRef {
            memory: 0,
            address: span.start as u64,
            bytes: &bytes[span],
        })
        .collect();
    let call = HostCallRef {
        import,
        args,
        results: &values,
        writes: &writes,
        reads: &[],
        read_digest: crc32fast::hash(&[]),
    };
    live.log.host_call(&call).map_err(RecordError::from)?;
    live.events += 1;
    Ok(values)
}

/// Returns the ranges that differ, with nearby ranges merged.
fn changed(before: &[u8], after: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut spans: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in before
        .iter()
        .zip(after)
        .enumerate()
        .filter(|(_, (old, new))| old != new)
    {
        match spans.last_mut() {
            Some(last) if at <= last.end + GAP => last.end = at + 1,
            _ => spans.push(at..at + 1),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn changes_are_joined_across_small_gaps() {
        let before = [0u8; 100];
        let mut after = before;
        for at in [3, 4, 10, 60] {
            after[at] = 1;
        }
        assert_eq!(changed(&before, &after), [3..11, 60..61]);
        assert!(changed(&before, &before).is_empty());
    }
}
