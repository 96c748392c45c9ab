//! Reads Rust's vectors, strings and slices, which point to their elements. To DWARF they are
//! ordinary structures, so this module recognises them by their names and members.

use crate::containers::Contents;
use crate::object::Object;
use crate::place::{Machine, Piece, VariableLocation};
use crate::types::{Member, Record, TypeKind, TypeRef};
use crate::{Limits, PathError, Variables};

/// Elements in memory, to which a pointer refers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    /// The address of the first element, unless the sequence is a ring buffer.
    pub address: u64,
    /// The number of elements.
    pub count: u64,
    /// Whether the elements are code units of UTF-8, UTF-16 or UTF-32.
    pub text: bool,
    /// The type of each element.
    pub element: TypeRef,
    /// For a ring buffer, the index of its first element, and its capacity.
    ring: Option<(u64, u64)>,
}

impl Sequence {
    /// Creates a sequence of contiguous elements of a type.
    pub(crate) fn plain(address: u64, count: u64, text: bool, element: TypeRef) -> Self {
        Self {
            address,
            count,
            text,
            element,
            ring: None,
        }
    }
}

/// The maximum number of nested structures that may wrap a pointer.
const DEEPEST: usize = 8;

impl Variables<'_> {
    /// Returns the elements of a Rust vector, string or slice. Returns `None` if the object is of a
    /// different type, or a part of it has no value.
    pub(crate) fn sequence(&self, object: &Object, machine: &dyn Machine) -> Option<Sequence> {
        let described = self.describe(self.plain(object.type_ref).ok()?).ok()?;
        let TypeKind::Record(record) = &described.kind else {
            return None;
        };
        let name = described.name.as_deref()?;
        let name = name.strip_prefix("alloc::boxed::").unwrap_or(name);
        let asked = MemberReader {
            variables: self,
            machine,
        };
        let slice = |text| {
            let data = record.members.iter().find(|m| is(m, "data_ptr"))?;
            let (address, to) = asked.pointer(asked.part(object, data)?)?;
            let count = asked.number(object, record, "length")?;
            Some(Sequence {
                address,
                count,
                text,
                element: to,
                ring: None,
            })
        };
        match name {
            "&str" | "&mut str" => slice(true),
            _ if name.starts_with("Box<str") => slice(true),
            // These are OS strings, with bytes that need not be UTF-8.
            _ if is_system_text(name) => slice(true),
            "String" => {
                let [vector] = &record.members[..] else {
                    return None;
                };
                let bytes = asked.part(object, vector).filter(|_| is(vector, "vec"))?;
                let bytes = asked.vector(&bytes)?;
                Some(Sequence {
                    text: true,
                    ..bytes
                })
            }
            _ if ["&[", "&mut [", "Box<["]
                .iter()
                .any(|begin| name.starts_with(begin)) =>
            {
                slice(false)
            }
            _ if name.starts_with("Vec<") || name.starts_with("VecDeque<") => asked.vector(object),
            _ => None,
        }
    }

    /// Returns the places of the elements that are shown for a vector, a string or a slice, in
    /// order. The result is empty if the object is of a different type or has no elements. Elements
    /// outside the machine's memory are left out.
    pub fn content(&self, object: &Object, limits: &Limits, machine: &dyn Machine) -> Vec<Piece> {
        let Some(Contents::Sequence(sequence)) = self.contents(object, limits, machine) else {
            return Vec::new();
        };
        let most = if sequence.text {
            limits.string.max(1) as u64
        } else {
            limits.elements
        };
        let elements = (0..sequence.count.min(most)).map(|index| self.nth(&sequence, index));
        let pieces = elements.flat_map(|element| element.map_or(Vec::new(), |one| one.pieces));
        let is_there = |piece: &Piece| match piece.place {
            VariableLocation::Memory(address) => {
                let last = piece.bytes.checked_sub(1);
                last.and_then(|last| address.checked_add(last))
                    .is_some_and(|last| machine.memory(last, &mut [0]))
            }
            _ => false,
        };
        pieces.filter(is_there).collect()
    }

    /// Returns an element of a sequence.
    pub(crate) fn nth(&self, sequence: &Sequence, index: u64) -> Result<Object, PathError> {
        let bytes = self.sized(sequence.element)?;
        let index = match sequence.ring {
            // Both the head and an index are below the ring's capacity.
            Some((head, length)) if index >= length - head => index - (length - head),
            Some((head, _)) => head + index,
            None => index,
        };
        let place =
            VariableLocation::Memory(sequence.address.wrapping_add(index.wrapping_mul(bytes)));
        let piece = Piece {
            place,
            offset: 0,
            bytes,
        };
        Ok(Object {
            type_ref: sequence.element,
            pieces: vec![piece],
            bits: None,
        })
    }
}

/// Whether a Rust pointer refers to an OS string, according to its name, such as
/// `&std::path::Path`.
fn is_system_text(name: &str) -> bool {
    let to = ["&mut ", "&", "Box<"]
        .iter()
        .find_map(|begin| name.strip_prefix(begin));
    let to = to.map(|to| to.split([',', '>']).next().unwrap_or(to));
    to.is_some_and(|to| ["std::path::Path", "std::ffi::os_str::OsStr"].contains(&to))
}

struct MemberReader<'r, 'a> {
    variables: &'r Variables<'a>,
    machine: &'r dyn Machine,
}

fn is(member: &Member, name: &str) -> bool {
    member.name.as_deref() == Some(name)
}

impl MemberReader<'_, '_> {
    fn part(&self, object: &Object, member: &Member) -> Option<Object> {
        self.variables.member(object, member, self.machine).ok()
    }

    /// Returns a member that is a number, or a structure that wraps a number.
    fn number(&self, object: &Object, record: &Record, name: &str) -> Option<u64> {
        let member = record.members.iter().find(|member| is(member, name))?;
        let mut part = self.part(object, member)?;
        for _ in 0..DEEPEST {
            let Some(record) = self.variables.record(part.type_ref).ok()? else {
                let bytes = self.variables.sized(part.type_ref).ok()?;
                let bits = self.variables.bits(&part, bytes, self.machine).ok()?;
                return u64::try_from(bits).ok();
            };
            let [inner] = &record.members[..] else {
                return None;
            };
            part = self.part(&part, inner)?;
        }
        None
    }

    /// Returns a pointer's address and its target type.
    fn pointer(&self, object: Object) -> Option<(u64, TypeRef)> {
        let plain = self.variables.plain(object.type_ref).ok()?;
        let described = self.variables.describe(plain).ok()?;
        let TypeKind::Pointer { to, .. } = described.kind else {
            return None;
        };
        let bytes = described.bytes.unwrap_or(4);
        let bits = self.variables.bits(&object, bytes, self.machine).ok()?;
        Some((u64::try_from(bits).ok()?, to))
    }

    /// Reads a vector. The type argument gives the element type, because the pointer in the buffer
    /// may be a pointer to bytes.
    fn vector(&self, object: &Object) -> Option<Sequence> {
        let record = self.variables.record(object.type_ref).ok()??;
        let (_, element) = *record.arguments.iter().find(|(name, _)| name == "T")?;
        let count = self.number(object, &record, "len")?;
        let buffer = record.members.iter().find(|member| is(member, "buf"))?;
        let mut part = self.part(object, buffer)?;
        let mut capacity = None;
        for _ in 0..DEEPEST {
            let Some(record) = self.variables.record(part.type_ref).ok()? else {
                break;
            };
            capacity = capacity.or(self.number(&part, &record, "cap"));
            let inwards =
                |member: &&Member| ["inner", "ptr", "pointer"].iter().any(|n| is(member, n));
            part = self.part(&part, record.members.iter().find(inwards)?)?;
        }
        let (address, _) = self.pointer(part)?;
        let ring = if record.members.iter().any(|member| is(member, "head")) {
            Some((self.number(object, &record, "head")?, capacity?))
        } else {
            None
        };
        if ring.is_some_and(|(head, length)| count > length || (head >= length && count > 0)) {
            return None;
        }
        Some(Sequence {
            address,
            count,
            text: false,
            element,
            ring,
        })
    }
}
