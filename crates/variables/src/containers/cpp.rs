//! Reads libc++'s types other than sequences of elements, such as bits, alternatives, tuples,
//! quantities and functions. The members have the names of libc++ 19.

use std::collections::HashSet;

use super::{Contents, Items, Reader, number_at_end};
use crate::object::Object;
use crate::place::{Piece, VariableLocation};
use crate::types::{BitField, TypeRef};

/// The maximum number of nodes counted in a list that does not store its length.
const COUNTED: usize = 1 << 16;
/// The maximum number of alternatives of a variant, or of parts of a tuple, that are examined.
const PARTS: u64 = 256;

/// The units of `std::chrono::duration`, by their lengths in seconds as fractions.
const UNITS: [(u64, u64, &str); 7] = [
    (1, 1_000_000_000, "ns"),
    (1, 1_000_000, "µs"),
    (1, 1_000, "ms"),
    (1, 1, "s"),
    (60, 1, "min"),
    (3_600, 1, "h"),
    (86_400, 1, "d"),
];

impl Reader<'_, '_> {
    /// Reads the bits of a `vector<bool>`. They are consecutive in memory, because the lowest bit
    /// of each word comes first.
    pub(super) fn vector_of_bits(&self, object: &Object) -> Option<Contents> {
        let of = self.argument(object.type_ref, "_Tp")?;
        let (address, _) = self.pointer(&self.part(object, "__begin_")?)?;
        let count = self.number(&self.part(object, "__size_")?)?;
        let last = count
            .checked_sub(1)
            .and_then(|last| address.checked_add(last / 8));
        if last.is_some_and(|last| !self.is_there(last)) || (last.is_none() && count > 0) {
            return Some(Items::damaged("its elements are outside memory"));
        }
        let bit = |index: u64| Object {
            type_ref: of,
            pieces: vec![Piece {
                place: VariableLocation::Memory(address + index / 8),
                offset: 0,
                bytes: 1,
            }],
            bits: Some(BitField {
                first: (index % 8) as u32,
                count: 1,
            }),
        };
        let found = (0..count.min(self.most)).map(|index| (None, bit(index)));
        Some(Contents::Items(Items {
            found: found.collect(),
            count,
            damaged: None,
        }))
    }

    /// Reads a `bitset`, which is shown as a number with all its bits, the highest first.
    pub(super) fn bitset(&self, object: &Object) -> Option<Contents> {
        let count = number_at_end(&self.name(object)?)?;
        let mut text = String::from("0b");
        if count > 0 {
            let words = self.part(object, "__first_")?;
            let bytes = self.variables.sized(words.type_ref).ok()?;
            if count > bytes.checked_mul(8)? {
                return None;
            }
            let shown = count.min(self.characters as u64);
            for index in (count - shown..count).rev() {
                let mut byte = [0];
                let piece = crate::place::part(&words.pieces, index / 8, 1);
                crate::place::read(&piece, &mut byte, self.machine).ok()?;
                text.push(if byte[0] >> (index % 8) & 1 == 1 {
                    '1'
                } else {
                    '0'
                });
            }
            text.push_str(if shown < count { "…" } else { "" });
        }
        Some(Contents::Text(text))
    }

    pub(super) fn variant(&self, object: &Object) -> Option<Contents> {
        let held = self.part(object, "__impl_")?;
        let number = self.part(&held, "__index")?;
        let index = self.number(&number)?;
        let bytes = self.variables.sized(number.type_ref).ok()?;
        // If all bits of the index are set, the variant has no value.
        if index.count_ones() == u32::try_from(8 * bytes).ok()? {
            return Some(Contents::Text("valueless".to_owned()));
        }
        let mut at = self.part(&held, "__data")?;
        for _ in 0..index.min(PARTS) {
            match self.part(&at, "__tail") {
                Some(tail) => at = tail,
                None => return Some(Items::damaged("its index selects no alternative")),
            }
        }
        Some(match self.parts(&at, &["__head", "__value"]) {
            Some(value) => Contents::Alternative(index, value),
            None => Items::damaged("its index selects no alternative"),
        })
    }

    pub(super) fn tuple(&self, object: &Object) -> Option<Contents> {
        let Some(leaves) = self.part(object, "__base_") else {
            let is_empty = self.name(object)? == "tuple<>";
            return is_empty.then(|| Contents::Items(Items::default()));
        };
        let record = self.record(leaves.type_ref)?;
        let mut items = Items::default();
        for leaf in record.members.iter().filter(|member| member.base) {
            let leaf = self.variables.member(&leaves, leaf, self.machine).ok()?;
            // A leaf stores an empty part as its base class.
            let value = self.part(&leaf, "__value_").or_else(|| {
                let record = self.record(leaf.type_ref)?;
                let own = record.members.first()?;
                self.variables.member(&leaf, own, self.machine).ok()
            });
            items.found.push((None, value?));
        }
        items.count = items.found.len() as u64;
        items.found.truncate(usize::try_from(self.most).ok()?);
        Some(Contents::Items(items))
    }

    pub(super) fn pair(&self, object: &Object) -> Option<Contents> {
        let (first, second) = (self.part(object, "first")?, self.part(object, "second")?);
        Some(Contents::Items(Items {
            found: vec![(None, first), (None, second)],
            count: 2,
            damaged: None,
        }))
    }

    pub(super) fn forward_list(&self, object: &Object) -> Option<Contents> {
        let begin = self.part(object, "__before_begin_")?;
        let begin = self.part(&begin, "__value_").unwrap_or(begin);
        let (first, _) = self.pointer(&self.part(&begin, "__next_")?)?;
        let node = self.node_type(object.type_ref, "__forward_list_node<")?;
        let next = |at: u64| {
            let next = self.part(&self.at(node, at)?, "__next_")?;
            self.pointer(&next).map(|(to, _)| to)
        };
        // A list does not store its length.
        let mut seen = HashSet::new();
        let mut damaged = None;
        let mut at = first;
        while at != 0 {
            if seen.len() == COUNTED {
                damaged = Some("it has more than 65,536 nodes");
                break;
            }
            if !seen.insert(at) {
                damaged = Some("its links form a cycle");
                break;
            }
            match next(at).filter(|_| self.is_there(at)) {
                Some(to) => at = to,
                // The last address counted is not a valid node. `linked` finds it again and reports
                // it.
                None => break,
            }
        }
        let found = self.linked(node, (first, None), seen.len() as u64, next)?;
        Some(match found {
            Contents::Items(mut items) => {
                items.damaged = items.damaged.or(damaged);
                Contents::Items(items)
            }
            found => found,
        })
    }

    /// Reads a pointer that does not own its target. The target may no longer exist.
    pub(super) fn weak_ptr(&self, object: &Object) -> Option<Contents> {
        let (address, to) = self.pointer(&self.part(object, "__ptr_")?)?;
        let (control, _) = self.pointer(&self.part(object, "__cntrl_")?)?;
        if control == 0 {
            return self.pointing(0, to);
        }
        // The number of owners minus one follows the pointer to the virtual functions.
        match control.checked_add(4).and_then(|at| self.word(at)) {
            Some(0xffff_ffff) => Some(Contents::Text("expired".to_owned())),
            Some(owners) if owners < 1 << 31 => self.pointing(address, to),
            _ => Some(Items::damaged("it has no count of its owners")),
        }
    }

    /// Returns the callee of a function object, as the name of its function pointer or the type of
    /// the object that it holds.
    pub(super) fn function(&self, object: &Object) -> Option<Contents> {
        let held = self.part(object, "__f_")?;
        let (policy, to) = self.pointer(&self.part(&held, "__policy_")?)?;
        let policy = self.at(to, policy)?;
        match self.number(&self.part(&policy, "__is_null")?)? {
            0 => {}
            1 => return Some(Contents::Text("empty".to_owned())),
            _ => return Some(Items::damaged("its flag is neither true nor false")),
        }
        let (call, _) = self.pointer(&self.parts(&held, &["__invoker_", "__call_"])?)?;
        let name = self.machine.function(call)?;
        let target = callable(&name)?;
        if !target.contains("(*)") {
            return Some(Contents::Text(format!("<{target}>")));
        }
        let storage = self.parts(&held, &["__buf_", "__small"])?;
        let to = self.word(storage.address()?)?;
        Some(Contents::Text(match self.machine.function(to) {
            Some(name) => format!("0x{to:x} <{name}>"),
            None => format!("0x{to:x}"),
        }))
    }

    pub(super) fn complex(&self, object: &Object) -> Option<Contents> {
        let part = |name| {
            let part = self.part(object, name)?;
            Some(self.variables.number(&part, self.machine).ok()?.text)
        };
        let text = crate::render::complex(&part("__re_")?, &part("__im_")?);
        Some(Contents::Text(text))
    }

    pub(super) fn duration(&self, object: &Object) -> Option<Contents> {
        let number = self.part(object, "__rep_")?;
        let name = self.name(object)?;
        let (_, period) = name.rsplit_once("ratio<")?;
        let mut parts = period.split(',').map(|part| {
            let digits = part.trim_matches(|sign: char| !sign.is_ascii_digit());
            digits.parse::<u64>().ok()
        });
        let (above, below) = (parts.next()??, parts.next()??);
        let known = UNITS
            .iter()
            .find(|(a, b, _)| (*a, *b) == (above, below))
            .map(|(.., unit)| (*unit).to_owned());
        let unit = known.unwrap_or_else(|| match below {
            1 => format!("× {above} s"),
            _ => format!("× {above}/{below} s"),
        });
        Some(Contents::Quantity(number, unit))
    }

    pub(super) fn initializer_list(&self, object: &Object) -> Option<Contents> {
        let (address, element) = self.pointer(&self.part(object, "__begin_")?)?;
        let count = self.number(&self.part(object, "__size_")?)?;
        self.side_by_side(address, count, element, false)
    }

    pub(super) fn reference(&self, object: &Object) -> Option<Contents> {
        let (address, to): (u64, TypeRef) = self.pointer(&self.part(object, "__f_")?)?;
        self.pointing(address, to)
    }
}

/// Returns the type of the target of a `std::function`. It is the first argument of
/// `__default_alloc_func` in the name of the function that calls the target.
fn callable(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once("__default_alloc_func<")?;
    let mut open = 0u32;
    let mut before = ' ';
    for (at, sign) in rest.char_indices() {
        match sign {
            ',' if open == 0 => return Some(&rest[..at]),
            '<' | '(' | '{' | '[' => open += 1,
            '>' if before == '-' => {}
            '>' | ')' | '}' | ']' => open = open.checked_sub(1)?,
            _ => {}
        }
        before = sign;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::callable;

    #[test]
    fn what_a_function_calls_is_in_a_name() {
        for (name, target) in [
            (
                "int invoker<int (int)>::call<__default_alloc_func<int (*)(int, char), int (int, char)>>(storage const*, int)",
                Some("int (*)(int, char)"),
            ),
            (
                "x<__default_alloc_func<main::$_0, int (int)>>",
                Some("main::$_0"),
            ),
            (
                "x<__default_alloc_func<A<B, C>, int (int)>>",
                Some("A<B, C>"),
            ),
            ("x<__default_alloc_func<A>", None),
            ("main", None),
        ] {
            assert_eq!(callable(name), target, "{name}");
        }
    }
}
