//! Reads wrappers of Rust's standard library, such as cells, locks, OS strings and ranges.
//! Member names are those of Rust 1.95.

use std::time::Duration;

use super::{Contents, Items, Reader};
use crate::object::Object;
use crate::types::TypeKind;

impl Reader<'_, '_> {
    /// Returns the contents of an `Option`. The outer `None` means that the object is not an
    /// `Option` or cannot be read. The inner `None` means that the `Option` is empty.
    pub(super) fn some(&self, object: &Object) -> Option<Option<Object>> {
        let record = self.record(object.type_ref)?;
        let [variants] = &record.variants[..] else {
            return None;
        };
        let active = self
            .variables
            .active(object, variants, self.machine)
            .ok()??;
        let active = active.first()?;
        let held = self.variables.member(object, active, self.machine).ok()?;
        Some(self.part(&held, "__0"))
    }

    /// Returns the state of a cell or a lock. It is a small number, negative for a mutable borrow
    /// or a writer.
    fn signed(&self, object: &Object) -> Option<i32> {
        self.number(object).map(|bits| bits as u32 as i32)
    }

    pub(super) fn ref_cell(&self, object: &Object) -> Option<Contents> {
        let borrows = self.signed(&self.part(object, "borrow")?)?;
        let value = self.parts(object, &["value", "value"])?;
        Some(match borrows {
            0 => Contents::Held(Some(value)),
            1 => Contents::Noted(value, "borrowed".to_owned()),
            2.. => Contents::Noted(value, format!("borrowed {borrows} times")),
            _ => Contents::Noted(value, "borrowed mutably".to_owned()),
        })
    }

    pub(super) fn mutex(&self, object: &Object) -> Option<Contents> {
        self.part(object, "poison")?;
        let value = self.parts(object, &["data", "value"])?;
        // In a program without threads, the lock's state is a boolean. Otherwise it is a number.
        let lock = self.part(object, "inner")?;
        let lock = self
            .part(&lock, "locked")
            .or_else(|| self.part(&lock, "futex"))?;
        Some(match self.number(&lock)? {
            0 => Contents::Held(Some(value)),
            _ => Contents::Noted(value, "locked".to_owned()),
        })
    }

    pub(super) fn rw_lock(&self, object: &Object) -> Option<Contents> {
        self.part(object, "poison")?;
        let value = self.parts(object, &["data", "value"])?;
        let Some(mode) = self.parts(object, &["inner", "mode"]) else {
            return Some(Contents::Held(Some(value)));
        };
        Some(match self.signed(&mode)? {
            0 => Contents::Held(Some(value)),
            1.. => Contents::Noted(value, "locked for reading".to_owned()),
            _ => Contents::Noted(value, "locked for writing".to_owned()),
        })
    }

    pub(super) fn once_cell(&self, object: &Object) -> Option<Contents> {
        Some(
            match self.some(&self.parts(object, &["inner", "value"])?)? {
                Some(value) => Contents::Held(Some(value)),
                None => Contents::Text("unset".to_owned()),
            },
        )
    }

    pub(super) fn once_lock(&self, object: &Object) -> Option<Contents> {
        let of = self.argument(object.type_ref, "T")?;
        let mut state = self.parts(object, &["once", "inner", "state"])?;
        while let Some(inside) = self.part(&state, "value") {
            state = inside;
        }
        let state = self.variables.number(&state, self.machine).ok()?.text;
        Some(match state.as_str() {
            "Complete" => {
                let value = self.part(object, "value")?;
                let pieces = value.pieces;
                Contents::Held(Some(Object {
                    type_ref: of,
                    pieces,
                    bits: None,
                }))
            }
            "Incomplete" | "Running" | "Poisoned" => Contents::Text("unset".to_owned()),
            _ => return None,
        })
    }

    pub(super) fn linked_list(&self, object: &Object) -> Option<Contents> {
        let count = self.number(&self.part(object, "len")?)?;
        // The type of the list's boxes gives the node type.
        let marker = self.part(object, "marker")?;
        let owned = self.argument(marker.type_ref, "T")?;
        let owned = self.variables.describe(self.variables.plain(owned).ok()?);
        let TypeKind::Pointer { to: node, .. } = owned.ok()?.kind else {
            return None;
        };
        // An `Option` of a pointer is 0 for `None`.
        let first = self.number(&self.part(object, "head")?)?;
        self.linked(node, (first, None), count, |at| {
            self.number(&self.part(&self.at(node, at)?, "next")?)
        })
    }

    /// Reads an OS string, which is text in a vector of bytes that need not be UTF-8.
    pub(super) fn os_string(&self, object: &Object) -> Option<Contents> {
        let mut inner = self.part(object, "inner")?;
        while let Some(inside) = self.part(&inner, "inner") {
            if self.name(&inner)?.starts_with("Vec<") {
                break;
            }
            inner = inside;
        }
        let mut bytes = self.variables.sequence(&inner, self.machine)?;
        bytes.text = true;
        Some(Contents::Sequence(bytes))
    }

    pub(super) fn rust_duration(&self, object: &Object) -> Option<Contents> {
        let seconds = self.number(&self.part(object, "secs")?)?;
        let nanos = self.part(object, "nanos")?;
        if self.name(&nanos)? != "Nanoseconds" {
            return None;
        }
        let nanos = self.number(&nanos)?;
        Some(
            match u32::try_from(nanos).ok().filter(|n| *n < 1_000_000_000) {
                Some(nanos) => Contents::Text(format!("{:?}", Duration::new(seconds, nanos))),
                None => Items::damaged("it has more nanoseconds than a second"),
            },
        )
    }

    pub(super) fn atomic(&self, object: &Object) -> Option<Contents> {
        let held = self.part(object, "v").or_else(|| self.part(object, "p"))?;
        if !self.name(&held)?.starts_with("UnsafeCell<") {
            return None;
        }
        let held = self.part(&held, "value")?;
        let name = self.name(object)?;
        // A boolean is stored as a number.
        if name != "AtomicBool" && name != "Atomic<bool>" {
            return Some(Contents::Held(Some(held)));
        }
        Some(match self.number(&held)? {
            0 => Contents::Text("false".to_owned()),
            1 => Contents::Text("true".to_owned()),
            _ => Items::damaged("it is neither true nor false"),
        })
    }

    pub(super) fn range(&self, object: &Object) -> Option<Contents> {
        let name = self.name(object)?;
        let end = |member| match self.part(object, member) {
            Some(end) => {
                let number = self.variables.number(&end, self.machine).ok()?;
                Some(Some(number.text))
            }
            None => Some(None),
        };
        let (start, last) = (end("start")?, end("end")?);
        let wanted = match name.split('<').next()? {
            "RangeFrom" => (true, false),
            "RangeTo" | "RangeToInclusive" => (false, true),
            _ => (true, true),
        };
        let parts = usize::from(wanted.0) + usize::from(wanted.1);
        let parts = parts + usize::from(name.starts_with("RangeInclusive<"));
        let is_whole = self.record(object.type_ref)?.members.len() == parts;
        if wanted != (start.is_some(), last.is_some()) || !is_whole {
            return None;
        }
        let sign = if name.contains("Inclusive<") {
            "..="
        } else {
            ".."
        };
        let (start, last) = (start.unwrap_or_default(), last.unwrap_or_default());
        let exhausted = match self.part(object, "exhausted") {
            Some(exhausted) if self.number(&exhausted)? != 0 => " (exhausted)",
            _ => "",
        };
        Some(Contents::Text(format!("{start}{sign}{last}{exhausted}")))
    }
}
