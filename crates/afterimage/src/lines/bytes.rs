//! Compares the bytes of values whose text leaves elements out.

use std::iter;

use afterimage_replay::state::{Limits, Machine, Object, Part, Shown, Variables};

/// The maximum number of bytes of a value.
const MOST: u64 = 1 << 16;
/// The maximum depth of a part that changed.
const DEPTH: usize = 6;
/// The maximum number of members of a structure.
const MEMBERS: u64 = 1 << 12;

/// The bytes of a value in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bytes {
    object: Object,
    start: u64,
    bytes: Vec<u8>,
}

impl Bytes {
    /// Reads the bytes of a value if its text leaves elements out. Returns `None` for other values,
    /// and for values that are too large or not in one piece.
    pub(super) fn left_out(shown: &Shown, object: &Object, machine: &dyn Machine) -> Option<Self> {
        if !shown.value.as_ref().is_ok_and(|text| text.contains('…')) {
            return None;
        }
        let mut ranges = object.memory();
        let range = ranges.next()?;
        let length = range.end - range.start;
        if ranges.next().is_some() || length > MOST {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        machine.memory(range.start, &mut bytes).then(|| Self {
            object: object.clone(),
            start: range.start,
            bytes,
        })
    }

    /// Returns the innermost part that contains all changes since an earlier moment: the suffix of
    /// its name, such as `[70].x`, and its text. Returns `None` if there is no such part.
    pub(super) fn changed(
        &self,
        before: &Self,
        known: &Variables<'_>,
        limits: &Limits,
    ) -> Option<(String, String)> {
        if (self.start, self.bytes.len()) != (before.start, before.bytes.len()) {
            return None;
        }
        let differs = |(now, before): (&u8, &u8)| now != before;
        let mut pairs = iter::zip(&self.bytes, &before.bytes);
        let first = self.start + pairs.clone().position(differs)? as u64;
        let last = self.start + pairs.rposition(differs)? as u64;
        let has_changes = |part: &Part| {
            let object = part.object.as_ref();
            object.is_ok_and(|object| {
                let mut ranges = object.memory();
                ranges.any(|range| range.contains(&first) && range.contains(&last))
            })
        };
        let (mut name, mut object) = (String::new(), self.object.clone());
        for _ in 0..DEPTH {
            let Ok(parts) = known.parts(&object, 0..1, self) else {
                break;
            };
            let wanted = if parts.indexed {
                let element = parts.parts.first()?.object.as_ref().ok()?.memory().next()?;
                let length = element.end - element.start;
                let index = first.checked_sub(element.start)?.checked_div(length)?;
                index..index + 1
            } else {
                0..parts.count.min(MEMBERS)
            };
            let parts = known.parts(&object, wanted, self).ok()?.parts;
            let Some(part) = parts.into_iter().find(has_changes) else {
                break;
            };
            // Expressions leave out the name of a base class, and a member without a name has none.
            if part.name.starts_with('[') {
                name += &part.name;
            } else if !part.name.is_empty() && !part.name.starts_with('<') {
                name += &format!(".{}", part.name);
            }
            object = part.object.ok()?;
        }
        (!name.is_empty()).then(|| (name, known.render(&object, limits, self).to_string()))
    }
}

impl Machine for Bytes {
    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        let begin = address.checked_sub(self.start);
        let bytes = begin
            .and_then(|begin| self.bytes.get(usize::try_from(begin).ok()?..))
            .and_then(|bytes| bytes.get(..into.len()));
        if let Some(bytes) = bytes {
            into.copy_from_slice(bytes);
        }
        bytes.is_some()
    }
}
