//! Renders values as trees and as text, such as `{ x = 3, name = 0x1040 "abc" }`.

use std::cell::Cell;

use crate::containers::{Contents, Items};
use crate::object::Object;
use crate::place::{Machine, read};
use crate::sequence::Sequence;
use crate::types::{CHAIN, Encoding, Member, Record, Type, TypeKind, TypeRef};
use crate::{PathError, Variables};

mod float;
mod number;
mod single;
mod string;
mod tree;

pub(crate) use number::complex;
pub use single::{Number, NumberType, Rank};
use string::Characters;
pub use string::quoted;
pub use tree::{Limits, Rendered, Shape};

impl Variables<'_> {
    /// Returns the size in bytes of a type, if it is a type for code units of wide text. These
    /// types are `wchar_t`, `char16_t` and `char32_t`, which are aliases of integers in C, and D's
    /// `wchar` and `dchar`.
    pub(crate) fn wide(&self, of: TypeRef) -> Option<u64> {
        let mut at = of;
        for _ in 0..CHAIN {
            let described = self.describe(at).ok()?;
            let known = ["wchar_t", "char16_t", "char32_t", "wchar", "dchar"];
            let name = described.name.as_deref();
            if name.is_some_and(|name| known.contains(&name)) {
                let bytes = self.size(at).ok()??;
                return Some(bytes).filter(|bytes| matches!(bytes, 2 | 4));
            }
            let TypeKind::Alias { of, .. } = described.kind else {
                return None;
            };
            at = of;
        }
        None
    }

    /// Renders an object. Parts without a value contain the reason instead.
    pub fn render(&self, object: &Object, limits: &Limits, machine: &dyn Machine) -> Rendered {
        let renderer = Renderer {
            variables: self,
            limits,
            machine,
            left: Cell::new(limits.parts),
        };
        let room = Room {
            depth: limits.depth,
            pointers: limits.pointers,
            borrows: true,
        };
        renderer.object(None, object, room)
    }
}

/// The limits that remain for a part.
#[derive(Clone, Copy)]
struct Room {
    depth: u8,
    pointers: u8,
    /// Whether to follow a Rust reference or box.
    borrows: bool,
}

impl Room {
    fn inside(self) -> Option<Self> {
        let depth = self.depth.checked_sub(1)?;
        Some(Self { depth, ..self })
    }
}

/// Whether a Rust pointer refers to one existing value.
fn is_borrow(name: &str) -> bool {
    name.starts_with('&') || name.starts_with("alloc::boxed::Box<")
}

struct Renderer<'r, 'a> {
    variables: &'r Variables<'a>,
    limits: &'r Limits,
    machine: &'r dyn Machine,
    /// The number of parts that may still be shown.
    left: Cell<usize>,
}

impl Renderer<'_, '_> {
    /// Renders an object. `room.depth` bounds the recursion, because it decreases with every level.
    fn object(&self, name: Option<String>, object: &Object, room: Room) -> Rendered {
        self.left.set(self.left.get().saturating_sub(1));
        let type_name = self.variables.type_name(object.type_ref);
        let mut rendered = Rendered {
            name,
            type_name: type_name.unwrap_or_else(|_| "<broken type>".into()),
            shape: Shape::Scalar,
            text: String::new(),
            children: Vec::new(),
            omitted: 0,
        };
        if let Err(why) = self.fill(&mut rendered, object, room) {
            rendered.shape = Shape::Missing(Box::new(why));
        }
        rendered
    }

    fn fill(&self, into: &mut Rendered, object: &Object, room: Room) -> Result<(), PathError> {
        let plain = self.variables.plain(object.type_ref)?;
        let described = self.variables.describe(plain)?;
        match &described.kind {
            TypeKind::Record(record) => return self.record(into, object, record, room),
            TypeKind::Array { .. } => return self.array(into, object, plain, room),
            TypeKind::Pointer { to, reference, .. } => {
                into.shape = Shape::Pointer;
                let address =
                    self.variables
                        .bits(object, described.bytes.unwrap_or(4), self.machine)?;
                into.text = self.pointer(address, *to)?;
                let levels = if *reference {
                    Some(room.pointers)
                } else {
                    room.pointers.checked_sub(1)
                };
                // According to its name, the pointer is a Rust reference or box. Its target may
                // refer to further values, even in a cycle.
                let borrowed = room.borrows && described.name.as_deref().is_some_and(is_borrow);
                let levels = levels.or(borrowed.then_some(0));
                let sized = self.variables.size(*to)?.is_some();
                if let (Some(pointers), Some(depth), true, true) =
                    (levels, room.depth.checked_sub(1), address != 0, sized)
                    && self.left.get() > 0
                {
                    let pointee = self.variables.pointee(object, 0, self.machine)?;
                    let room = Room {
                        depth,
                        pointers,
                        borrows: room.borrows && !borrowed,
                    };
                    into.children
                        .push(self.object(Some("*".into()), &pointee, room));
                }
            }
            TypeKind::Base(Encoding::Complex) if described.bytes == Some(32) => {
                let mut parts = [[0; 16]; 2];
                read(&object.pieces, parts.as_flattened_mut(), self.machine)?;
                let [real, imaginary] = parts
                    .map(u128::from_le_bytes)
                    .map(|bits| float::QUADRUPLE.text(bits));
                into.text = complex(&real, &imaginary);
            }
            TypeKind::Unspecified if described.name.as_deref() == Some("decltype(nullptr)") => {
                into.text = "nullptr".to_owned();
            }
            kind => {
                let bytes = self.variables.sized(plain)?;
                let bits = self.variables.bits(object, bytes, self.machine)?;
                let wide = self.variables.wide(object.type_ref).map(|_| "wchar_t");
                let name = wide.or(described.name.as_deref());
                into.text = number::text(kind, name, bits, bytes, object.bits);
            }
        }
        Ok(())
    }

    fn pointer(&self, address: u128, to: TypeRef) -> Result<String, PathError> {
        let mut text = format!("0x{address:x}");
        let pointee = self.variables.describe(self.variables.plain(to)?)?;
        let is_text = self.limits.pointed && self.limits.string > 0;
        if address != 0 && is_text && string::is_character(&pointee) {
            let found = string::terminated(address as u64, self.limits.string, self.machine);
            text.extend([" ".to_string(), found]);
        } else if address != 0
            && is_text
            && let Some(bytes) = self.variables.wide(to)
        {
            let most = self.limits.string;
            let found = string::wide_terminated(address as u64, bytes, most, self.machine);
            text.extend([" ".to_string(), found]);
        } else if let TypeKind::Function { .. } = pointee.kind
            && let Some(name) = self.machine.function(address as u64)
        {
            text = format!("{text} <{name}>");
        }
        Ok(text)
    }

    fn record(
        &self,
        into: &mut Rendered,
        object: &Object,
        record: &Record,
        room: Room,
    ) -> Result<(), PathError> {
        if record.declaration {
            let type_name = into.type_name.clone();
            return Err(PathError::Incomplete { type_name });
        }
        let contents = self.variables.contents(object, self.limits, self.machine);
        if let Some(contents) = contents {
            return self.contents(into, contents, room);
        }
        into.shape = Shape::Record;
        let mut members: Vec<&Member> = record.members.iter().collect();
        if members.is_empty() && record.variants.len() == 1 {
            into.shape = Shape::Variant;
        }
        let mut missing = None;
        for part in &record.variants {
            match self.variables.active(object, part, self.machine) {
                Ok(Some(active)) => members.extend(active),
                Ok(None) => missing = Some(PathError::NoVariant),
                Err(why) => missing = Some(why.into()),
            }
        }
        if let Some(why) = missing {
            return Err(why);
        }
        let Some(room) = room.inside() else {
            into.omitted = members.len() as u64;
            return Ok(());
        };
        for (i, member) in members.iter().enumerate() {
            if self.left.get() == 0 {
                into.omitted = (members.len() - i) as u64;
                break;
            }
            let child = self.child(object, member, room)?;
            into.children.push(child);
        }
        Ok(())
    }

    /// Renders the contents of a container.
    fn contents(
        &self,
        into: &mut Rendered,
        contents: Contents,
        room: Room,
    ) -> Result<(), PathError> {
        match contents {
            Contents::Sequence(sequence) => self.sequence(into, &sequence, room),
            Contents::Items(items) => {
                self.items(into, items, room);
                Ok(())
            }
            Contents::Held(None) => {
                into.text = "nullopt".to_owned();
                Ok(())
            }
            Contents::Held(Some(held)) => match room.inside() {
                Some(room) => self.fill(into, &held, room),
                None => {
                    into.text = "…".to_owned();
                    Ok(())
                }
            },
            Contents::Text(text) => {
                into.text = text;
                Ok(())
            }
            Contents::Quantity(number, unit) => {
                self.fill(into, &number, room)?;
                into.text = format!("{} {unit}", into.text);
                Ok(())
            }
            Contents::Noted(value, state) => {
                into.shape = Shape::Record;
                let Some(room) = room.inside() else {
                    into.omitted = 2;
                    return Ok(());
                };
                into.children
                    .push(self.object(Some("value".into()), &value, room));
                into.children.push(Rendered {
                    name: Some("state".into()),
                    type_name: String::new(),
                    shape: Shape::Scalar,
                    text: state,
                    children: Vec::new(),
                    omitted: 0,
                });
                Ok(())
            }
            Contents::Alternative(index, held) => {
                into.shape = Shape::Variant;
                match room.inside() {
                    Some(room) => {
                        let name = format!("[{index}]");
                        into.children.push(self.object(Some(name), &held, room));
                    }
                    None => into.omitted = 1,
                }
                Ok(())
            }
            Contents::Pointer { address: 0, .. } => {
                into.text = "nullptr".to_owned();
                Ok(())
            }
            Contents::Pointer {
                address,
                to: held,
                named,
            } => {
                into.shape = Shape::Pointer;
                into.text = format!("0x{address:x}");
                if let Some(name) = named {
                    into.text += &format!(" <{name}>");
                }
                let is_sized = self.variables.size(held.type_ref)?.is_some();
                if let Some(room) = room.inside().filter(|_| is_sized && self.left.get() > 0) {
                    into.children
                        .push(self.object(Some("*".into()), &held, room));
                }
                Ok(())
            }
        }
    }

    /// Renders elements that are not contiguous.
    fn items(&self, into: &mut Rendered, items: Items, room: Room) {
        let is_map = items.found.iter().any(|(key, _)| key.is_some());
        into.shape = if is_map {
            Shape::Record
        } else {
            Shape::Sequence
        };
        into.omitted = items.count;
        let Some(room) = room.inside() else {
            return;
        };
        for (index, (key, value)) in (0..).zip(&items.found) {
            if self.left.get() == 0 {
                break;
            }
            let name = match key {
                Some(key) => self.object(None, key, room).to_string(),
                None => format!("[{index}]"),
            };
            into.children.push(self.object(Some(name), value, room));
            into.omitted = into.omitted.saturating_sub(1);
        }
        if let Some(why) = items.damaged {
            into.omitted = 0;
            into.children.push(Rendered {
                name: None,
                type_name: String::new(),
                shape: Shape::Missing(Box::new(PathError::Damaged(why))),
                text: String::new(),
                children: Vec::new(),
                omitted: 0,
            });
        }
    }

    /// Renders elements, or the text that they form.
    fn sequence(
        &self,
        into: &mut Rendered,
        sequence: &Sequence,
        room: Room,
    ) -> Result<(), PathError> {
        if sequence.text {
            let most = self.limits.string.max(1);
            let bytes = self.variables.sized(sequence.element)?;
            if bytes > 1 {
                let shown = sequence.count.min(most as u64);
                let more = if shown < sequence.count { "…" } else { "" };
                let units = string::units(sequence.address, shown as usize, bytes, self.machine);
                into.text = match units {
                    Some(units) => format!("{}{more}", string::wide(&units, bytes)),
                    None => "<outside memory>".to_owned(),
                };
                return Ok(());
            }
            into.text = string::counted(sequence.address, sequence.count, most, self.machine);
            return Ok(());
        }
        self.elements(into, sequence.count, room, |index| {
            self.variables.nth(sequence, index)
        })
    }

    fn child(&self, object: &Object, member: &Member, room: Room) -> Result<Rendered, PathError> {
        let name = match &member.name {
            None if member.base => {
                Some(format!("<{}>", self.variables.type_name(member.type_ref)?))
            }
            name => name.clone(),
        };
        Ok(match self.variables.member(object, member, self.machine) {
            Ok(part) => self.object(name, &part, room),
            Err(why) => Rendered {
                name,
                type_name: self.variables.type_name(member.type_ref)?,
                shape: Shape::Missing(Box::new(why.into())),
                text: String::new(),
                children: Vec::new(),
                omitted: 0,
            },
        })
    }

    fn array(
        &self,
        into: &mut Rendered,
        object: &Object,
        plain: TypeRef,
        room: Room,
    ) -> Result<(), PathError> {
        let described = self.variables.describe(plain)?;
        let Some((of, count)) = self.variables.elements(plain, &described) else {
            return Ok(());
        };
        into.shape = Shape::Sequence;
        // An array of unknown length has no elements to show, but a path can index it.
        let Some(count) = count else {
            return Err(self.variables.incomplete(plain)?);
        };
        let element = self.variables.describe(self.variables.plain(of)?)?;
        let is_vector = matches!(described.kind, TypeKind::Array { vector: true, .. });
        if is_vector && string::is_character(&element) {
            let signed = matches!(element.kind, TypeKind::Base(Encoding::SignedChar));
            let kind = TypeKind::Base(if signed {
                Encoding::Signed
            } else {
                Encoding::Unsigned
            });
            return self.numbers(into, object, (&kind, of), count, room);
        }
        if self.limits.string > 0
            && let Some(bytes) = self.variables.wide(of).filter(|_| !is_vector && count > 0)
        {
            let shown = count.min(self.limits.string as u64);
            let mut held = vec![0; (shown * bytes) as usize];
            read(&object.pieces, &mut held, self.machine)?;
            let units = string::of_bytes(&held, bytes);
            if let Some(text) = string::wide_array(&units, bytes, shown < count) {
                into.shape = Shape::Scalar;
                into.text = text;
                return Ok(());
            }
        }
        if self.limits.string > 0 && count > 0 && string::is_character(&element) {
            let found = string::array(&object.pieces, count, self.limits.string, self.machine)?;
            match found.text() {
                Some(text) => {
                    into.shape = Shape::Scalar;
                    into.text = text;
                }
                None => self.bytes(into, &element, &found, count),
            }
            return Ok(());
        }
        self.elements(into, count, room, |index| {
            self.variables.element(object, of, index)
        })
    }

    /// Renders elements of one byte as numbers, regardless of their type.
    fn numbers(
        &self,
        into: &mut Rendered,
        object: &Object,
        (kind, of): (&TypeKind, TypeRef),
        count: u64,
        room: Room,
    ) -> Result<(), PathError> {
        into.omitted = count;
        if room.inside().is_none() {
            return Ok(());
        }
        for index in 0..count.min(self.limits.elements) {
            let element = self.variables.element(object, of, index)?;
            let bits = self.variables.bits(&element, 1, self.machine)?;
            into.children.push(Rendered {
                name: Some(format!("[{index}]")),
                type_name: self.variables.type_name(of)?,
                shape: Shape::Scalar,
                text: number::text(kind, None, bits, 1, None),
                children: Vec::new(),
                omitted: 0,
            });
            into.omitted -= 1;
        }
        Ok(())
    }

    /// Renders the first elements of an array or a container.
    fn elements(
        &self,
        into: &mut Rendered,
        count: u64,
        room: Room,
        element: impl Fn(u64) -> Result<Object, PathError>,
    ) -> Result<(), PathError> {
        into.shape = Shape::Sequence;
        into.omitted = count;
        let Some(room) = room.inside() else {
            return Ok(());
        };
        for index in 0..count.min(self.limits.elements) {
            if self.left.get() == 0 {
                break;
            }
            let name = Some(format!("[{index}]"));
            into.children
                .push(self.object(name, &element(index)?, room));
            into.omitted -= 1;
        }
        Ok(())
    }

    /// Renders characters that are not text as numbers, with a count for each long run of equal
    /// numbers.
    fn bytes(&self, into: &mut Rendered, element: &Type, found: &Characters, count: u64) {
        let signed = element.name.as_deref() == Some("signed char");
        let mut shown = 0;
        for (byte, times) in found.runs() {
            let number = if signed {
                (byte as i8).to_string()
            } else {
                format!("0x{byte:02x}")
            };
            let (texts, each) = if times >= string::COUNTED {
                (vec![format!("{number} × {times}")], times as u64)
            } else {
                (vec![number; times], 1)
            };
            for text in texts {
                if into.children.len() as u64 >= self.limits.elements || self.left.get() == 0 {
                    break;
                }
                self.left.set(self.left.get().saturating_sub(1));
                into.children.push(Rendered {
                    name: Some(format!("[{shown}]")),
                    type_name: element.name.clone().unwrap_or_default(),
                    shape: Shape::Scalar,
                    text,
                    children: Vec::new(),
                    omitted: 0,
                });
                shown += each;
            }
        }
        into.omitted = count - shown;
    }
}
