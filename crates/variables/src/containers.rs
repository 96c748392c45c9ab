//! Shows containers of standard libraries by their contents. To DWARF they are ordinary structures,
//! so this module recognises them by their names and members.
//!
//! Each container has a row in [`PRINTERS`]. To add a row, write a function that finds the parts of
//! an object, and name the library and the version with which you tested it. An object that does
//! not match its row is shown as an ordinary structure. A matching object that is damaged or not
//! yet initialised is shown as far as possible, with a note.

use std::collections::HashSet;
use std::sync::Arc;

mod cpp;
mod pointers;
mod printers;
mod rust;
mod slices;

use self::printers::PRINTERS;
use crate::object::Object;
use crate::place::{Machine, Piece, VariableLocation};
use crate::sequence::Sequence;
use crate::types::{Record, TypeKind, TypeRef};
use crate::{Limits, Variables};

pub(crate) enum Contents {
    /// Contiguous elements, or text.
    Sequence(Sequence),
    /// Elements that are not contiguous.
    Items(Items),
    /// A value that may be absent.
    Held(Option<Object>),
    /// The target of a smart pointer or a reference.
    Pointer {
        /// The value's address, or 0 for none.
        address: u64,
        /// The value to which the pointer points.
        to: Object,
        /// The name of the value's type, if the pointer's own type does not give it.
        named: Option<String>,
    },
    /// One of several alternatives, with its number.
    Alternative(u64, Object),
    /// A number with its unit.
    Quantity(Object, String),
    /// A value, with the state of its lock or counter.
    Noted(Object, String),
    /// Text to show as it is.
    Text(String),
}

/// Elements that are found one by one.
#[derive(Default)]
pub(crate) struct Items {
    /// The elements shown, with their keys in a map.
    pub found: Vec<(Option<Object>, Object)>,
    /// The number of elements in the container.
    pub count: u64,
    /// The reason why some of the elements cannot be shown.
    pub damaged: Option<&'static str>,
}

impl Items {
    fn damaged(why: &'static str) -> Contents {
        Contents::Items(Self {
            damaged: Some(why),
            ..Self::default()
        })
    }
}

/// The names of a container's types, and the function that reads it.
struct Printer {
    /// The library, and the version with which the printer was tested.
    #[expect(dead_code, reason = "for those who read and extend the table")]
    library: &'static str,
    /// The prefixes of the container's type names.
    types: &'static [&'static str],
    read: fn(&Reader<'_, '_>, &Object) -> Option<Contents>,
}

/// The maximum nesting depth of structures when searching for a part.
const DEEPEST: usize = 16;
/// The maximum number of links followed to the next node of a tree. It suffices for a balanced tree
/// with 2^32 nodes.
const LINKS: usize = 80;

impl Variables<'_> {
    /// Returns the contents of an object, if it is a known container.
    pub(crate) fn contents(
        &self,
        object: &Object,
        limits: &Limits,
        machine: &dyn Machine,
    ) -> Option<Contents> {
        if let Some(sequence) = self.sequence(object, machine) {
            let is_lost = || !machine.memory(sequence.address, &mut [0]);
            let is_sized = |of| self.sized(of).is_ok_and(|bytes| bytes > 0);
            if !sequence.text && sequence.count > 0 && is_sized(sequence.element) && is_lost() {
                return Some(Items::damaged("its elements are outside memory"));
            }
            return Some(Contents::Sequence(sequence));
        }
        let plain = self.plain(object.type_ref).ok()?;
        let described = self.describe(plain).ok()?;
        let TypeKind::Record(record) = &described.kind else {
            return None;
        };
        if let Some(slice) = self.foreign_slice(object, plain, record, machine) {
            return Some(Contents::Sequence(slice));
        }
        let name = described.name.as_deref()?;
        let name = name.strip_prefix("alloc::boxed::").unwrap_or(name);
        let is_it = |printer: &&Printer| printer.types.iter().any(|begin| name.starts_with(begin));
        let printer = PRINTERS.iter().find(is_it)?;
        let reader = Reader {
            variables: self,
            machine,
            most: limits.elements,
            characters: limits.string.max(1),
        };
        (printer.read)(&reader, object)
    }
}

/// Finds parts of objects.
struct Reader<'r, 'a> {
    variables: &'r Variables<'a>,
    machine: &'r dyn Machine,
    /// The number of elements wanted.
    most: u64,
    /// The number of characters of a string to read.
    characters: usize,
}

impl Reader<'_, '_> {
    fn record(&self, of: TypeRef) -> Option<Arc<Record>> {
        self.variables.record(of).ok()?
    }

    /// Returns the name of an object's type, without namespaces.
    fn name(&self, object: &Object) -> Option<String> {
        let plain = self.variables.plain(object.type_ref).ok()?;
        self.variables.describe(plain).ok()?.name.clone()
    }

    /// Returns the contents of a nested part of an object. `names` is the path to the part.
    fn held(&self, object: &Object, names: &[&str]) -> Option<Contents> {
        Some(Contents::Held(Some(self.parts(object, names)?)))
    }

    /// Like [`held`](Self::held), but only if the structures have no other members, apart from
    /// empty members and comparators. This matters because a program's own types may have the same
    /// names.
    fn only(&self, object: &Object, names: &[&str]) -> Option<Contents> {
        let mut found = object.clone();
        for name in names {
            let record = self.record(found.type_ref)?;
            let has_bytes = |of| self.variables.size(of).is_ok_and(|bytes| bytes != Some(0));
            let mut own = record.members.iter().filter(|member| {
                member.name.as_deref() != Some("comp") && has_bytes(member.type_ref)
            });
            own.next()
                .filter(|member| member.name.as_deref() == Some(name))?;
            if own.next().is_some() {
                return None;
            }
            found = self.part(&found, name)?;
        }
        Some(Contents::Held(Some(found)))
    }

    /// Returns a pointer to a value of this type.
    fn pointing(&self, address: u64, to: TypeRef) -> Option<Contents> {
        Some(Contents::Pointer {
            address,
            to: self.at(to, address)?,
            named: None,
        })
    }

    /// Returns a member by its name. Also searches base classes and anonymous members. Among
    /// several members, returns the first at the outermost level.
    fn part(&self, object: &Object, name: &str) -> Option<Object> {
        let mut level = vec![object.clone()];
        for _ in 0..DEEPEST {
            let mut inside = Vec::new();
            for object in &level {
                let record = self.record(object.type_ref)?;
                for member in &record.members {
                    let found = member.name.as_deref() == Some(name);
                    if found || member.base || member.name.is_none() {
                        let part = self.variables.member(object, member, self.machine).ok()?;
                        if found {
                            return Some(part);
                        }
                        inside.push(part);
                    }
                }
            }
            level = inside;
        }
        None
    }

    /// Returns a nested member. `names` is the path to the member.
    fn parts(&self, object: &Object, names: &[&str]) -> Option<Object> {
        let mut found = object.clone();
        for name in names {
            found = self.part(&found, name)?;
        }
        Some(found)
    }

    /// Returns a member that is a part of a compressed pair up to libc++ 19, and has its own name
    /// in later versions.
    fn paired(&self, object: &Object, pair: &str, since: &str) -> Option<Object> {
        let pair = self.part(object, pair);
        let held = pair.and_then(|pair| self.part(&pair, "__value_"));
        held.or_else(|| self.part(object, since))
    }

    fn number(&self, object: &Object) -> Option<u64> {
        let bytes = self.variables.sized(object.type_ref).ok()?;
        let bits = self.variables.bits(object, bytes, self.machine).ok()?;
        u64::try_from(bits).ok()
    }

    /// Returns a pointer's address and target type. Rust wraps pointers in structures that have
    /// only one non-empty part.
    fn pointer(&self, object: &Object) -> Option<(u64, TypeRef)> {
        let mut object = object.clone();
        for _ in 0..DEEPEST {
            let plain = self.variables.plain(object.type_ref).ok()?;
            let described = self.variables.describe(plain).ok()?;
            if let TypeKind::Pointer { to, .. } = described.kind {
                return Some((self.number(&object)?, to));
            }
            object = self.part(&object, "pointer")?;
        }
        None
    }

    fn at(&self, type_ref: TypeRef, address: u64) -> Option<Object> {
        let piece = Piece {
            place: VariableLocation::Memory(address),
            offset: 0,
            bytes: self.variables.sized(type_ref).ok()?,
        };
        Some(Object {
            type_ref,
            pieces: vec![piece],
            bits: None,
        })
    }

    fn is_there(&self, address: u64) -> bool {
        self.machine.memory(address, &mut [0])
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 4];
        let found = self.machine.memory(address, &mut bytes);
        found.then(|| u32::from_le_bytes(bytes).into())
    }

    /// Returns a template argument of a record, by the parameter's name.
    fn argument(&self, of: TypeRef, name: &str) -> Option<TypeRef> {
        let record = self.record(of)?;
        let found = record.arguments.iter().find(|(own, _)| own == name);
        found.map(|(_, of)| *of)
    }

    /// Returns the type of the nodes that a container's allocator makes. Finds the type by the
    /// prefix of its name.
    fn node_type(&self, of: TypeRef, begin: &str) -> Option<TypeRef> {
        let mut level = vec![of];
        for _ in 0..DEEPEST {
            let mut inside = Vec::new();
            for of in level {
                let Some(record) = self.record(of) else {
                    continue;
                };
                for (_, argument) in &record.arguments {
                    let plain = self.variables.plain(*argument).ok()?;
                    let described = self.variables.describe(plain).ok()?;
                    let name = described.name.as_deref();
                    if name.is_some_and(|name| name.starts_with(begin)) {
                        return Some(plain);
                    }
                }
                inside.extend(record.members.iter().map(|member| member.type_ref));
            }
            level = inside;
        }
        None
    }

    /// Returns the elements from one address to another.
    fn between(&self, begin: u64, end: u64, element: TypeRef) -> Option<Contents> {
        let bytes = self
            .variables
            .sized(element)
            .ok()
            .filter(|bytes| *bytes > 0)?;
        let Some(length) = end.checked_sub(begin) else {
            return Some(Items::damaged("its end is before its beginning"));
        };
        if length % bytes != 0 {
            return Some(Items::damaged("its end is inside an element"));
        }
        if length > 0 && !(self.is_there(begin) && self.is_there(end - 1)) {
            return Some(Items::damaged("its elements are outside memory"));
        }
        let sequence = Sequence::plain(begin, length / bytes, false, element);
        Some(Contents::Sequence(sequence))
    }

    fn string(&self, object: &Object) -> Option<Contents> {
        let rep = self.paired(object, "__r_", "__rep_")?;
        let short = self.part(&rep, "__s")?;
        let is_long = self.number(&self.part(&short, "__is_long_")?)? != 0;
        let (address, count, element) = if is_long {
            let long = self.part(&rep, "__l")?;
            let (address, element) = self.pointer(&self.part(&long, "__data_")?)?;
            (
                address,
                self.number(&self.part(&long, "__size_")?)?,
                element,
            )
        } else {
            let data = self.part(&short, "__data_")?;
            let described = self.variables.plain(data.type_ref).ok()?;
            let described = self.variables.describe(described).ok()?;
            let TypeKind::Array { element, .. } = described.kind else {
                return None;
            };
            let count = self.number(&self.part(&short, "__size_")?)?;
            (data.address()?, count, element)
        };
        let bytes = self.variables.sized(element).ok()?;
        let end = address.checked_add(count.checked_mul(bytes)?)?;
        if count > 0 && !self.is_there(end - 1) {
            return Some(Items::damaged("its text is outside memory"));
        }
        let text = bytes == 1 || self.variables.wide(element).is_some();
        let sequence = Sequence::plain(address, count, text, element);
        Some(Contents::Sequence(sequence))
    }

    fn view(&self, object: &Object) -> Option<Contents> {
        let (address, element) = self.pointer(&self.part(object, "__data_")?)?;
        let name = self.name(object)?;
        let count = match self.part(object, "__size_") {
            Some(size) => self.number(&size)?,
            // The length of a span may be part of its type.
            None => number_at_end(&name)?,
        };
        let is_text = name.starts_with("basic_string_view<");
        self.side_by_side(address, count, element, is_text)
    }

    /// Returns a number of contiguous elements from an address on. Characters become text.
    fn side_by_side(
        &self,
        address: u64,
        count: u64,
        element: TypeRef,
        is_text: bool,
    ) -> Option<Contents> {
        let bytes = self.variables.sized(element).ok()?;
        let end = count
            .checked_mul(bytes)
            .and_then(|all| all.checked_add(address));
        let is_all = end.is_some_and(|end| end == address || self.is_there(end - 1));
        if count > 0 && !is_all {
            return Some(Items::damaged("its elements are outside memory"));
        }
        let text = is_text && (bytes == 1 || self.variables.wide(element).is_some());
        let sequence = Sequence::plain(address, count, text, element);
        Some(Contents::Sequence(sequence))
    }

    fn vector(&self, object: &Object) -> Option<Contents> {
        let name = self.name(object)?;
        if ["vector<bool,", "vector<bool>"]
            .iter()
            .any(|bits| name.starts_with(bits))
        {
            return self.vector_of_bits(object);
        }
        let (begin, element) = self.pointer(&self.part(object, "__begin_")?)?;
        let (end, _) = self.pointer(&self.part(object, "__end_")?)?;
        self.between(begin, end, element)
    }

    /// Returns the value of a node. For a map, splits it into key and value.
    fn entry(&self, node: &Object) -> Option<(Option<Object>, Object)> {
        if let Some(element) = self.part(node, "element") {
            return Some((None, element));
        }
        let value = self.part(node, "__value_")?;
        Some(match self.part(&value, "__cc_") {
            Some(pair) => {
                let key = self.part(&pair, "first")?;
                (Some(key), self.part(&pair, "second")?)
            }
            None => (None, value),
        })
    }

    fn tree(&self, object: &Object) -> Option<Contents> {
        let tree = self.part(object, "__tree_")?;
        let (first, _) = self.pointer(&self.part(&tree, "__begin_node_")?)?;
        let count = self.number(&self.paired(&tree, "__pair3_", "__size_")?)?;
        let node = self.node_type(tree.type_ref, "__tree_node<")?;
        let link = |address: u64, name: &str| {
            let (to, _) = self.pointer(&self.part(&self.at(node, address)?, name)?)?;
            Some(to)
        };
        // Returns the next node in order, as libc++ finds it.
        let next = |mut at: u64| {
            let right = link(at, "__right_")?;
            if right != 0 {
                at = right;
                for _ in 0..LINKS {
                    match link(at, "__left_")? {
                        0 => return Some(at),
                        left => at = left,
                    }
                }
                return None;
            }
            for _ in 0..LINKS {
                let parent = link(at, "__parent_")?;
                // The end node has only a left child.
                if self.word(parent)? == at {
                    return Some(parent);
                }
                at = parent;
            }
            None
        };
        let end = self.paired(&tree, "__pair1_", "__end_node_")?.address();
        self.linked(node, (first, end), count, next)
    }

    /// Returns the elements of a chain of nodes, starting with the first node. The address `end`
    /// marks the end of the chain. There is no node at this address.
    fn linked(
        &self,
        node: TypeRef,
        (first, end): (u64, Option<u64>),
        count: u64,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Option<Contents> {
        let mut items = Items {
            count,
            ..Items::default()
        };
        let mut at = Some(first);
        let mut seen = HashSet::new();
        for _ in 0..count.min(self.most) {
            if at.is_some_and(|at| !seen.insert(at)) {
                items.damaged = Some("its links form a cycle");
                break;
            }
            let found = at.filter(|at| *at != 0 && Some(*at) != end && self.is_there(*at));
            let entry = found.and_then(|at| self.entry(&self.at(node, at)?));
            let Some(entry) = entry else {
                items.damaged = Some("a link is invalid");
                break;
            };
            items.found.push(entry);
            at = found.and_then(&next);
        }
        Some(Contents::Items(items))
    }

    fn hash_table(&self, object: &Object) -> Option<Contents> {
        let table = self.part(object, "__table_")?;
        let begin = self.paired(&table, "__p1_", "__first_node_")?;
        let (first, _) = self.pointer(&self.part(&begin, "__next_")?)?;
        let count = self.number(&self.paired(&table, "__p2_", "__size_")?)?;
        let node = self.node_type(table.type_ref, "__hash_node<")?;
        self.linked(node, (first, None), count, |at| {
            let next = self.part(&self.at(node, at)?, "__next_")?;
            self.pointer(&next).map(|(to, _)| to)
        })
    }

    fn list(&self, object: &Object) -> Option<Contents> {
        let (first, _) = self.pointer(&self.parts(object, &["__end_", "__next_"])?)?;
        let count = self.number(&self.paired(object, "__size_alloc_", "__size_")?)?;
        let node = self.node_type(object.type_ref, "__list_node<")?;
        let end = self.part(object, "__end_")?.address();
        self.linked(node, (first, end), count, |at| {
            let next = self.part(&self.at(node, at)?, "__next_")?;
            self.pointer(&next).map(|(to, _)| to)
        })
    }

    fn deque(&self, object: &Object) -> Option<Contents> {
        let element = self.argument(object.type_ref, "_Tp")?;
        let map = self.part(object, "__map_")?;
        let (blocks, _) = self.pointer(&self.part(&map, "__begin_")?)?;
        let start = self.number(&self.part(object, "__start_")?)?;
        let count = self.number(&self.paired(object, "__size_", "__size_")?)?;
        let bytes = self
            .variables
            .sized(element)
            .ok()
            .filter(|bytes| *bytes > 0)?;
        let in_block = if bytes < 256 { 4096 / bytes } else { 16 };
        let mut items = Items {
            count,
            ..Items::default()
        };
        for index in 0..count.min(self.most) {
            let index = start.checked_add(index)?;
            let block = blocks.checked_add(index / in_block * 4)?;
            let found = self.word(block).and_then(|block| {
                let at = block.checked_add(index % in_block * bytes)?;
                self.at(element, at).filter(|_| self.is_there(at))
            });
            let Some(found) = found else {
                items.damaged = Some("a block is outside memory");
                break;
            };
            items.found.push((None, found));
        }
        Some(Contents::Items(items))
    }

    fn array(&self, object: &Object) -> Option<Contents> {
        // An array without elements has another member in their place.
        match number_at_end(&self.name(object)?)? {
            0 => Some(Contents::Items(Items::default())),
            _ => Some(Contents::Held(Some(self.part(object, "__elems_")?))),
        }
    }

    fn optional(&self, object: &Object) -> Option<Contents> {
        let engaged = self.number(&self.part(object, "__engaged_")?)?;
        Some(match engaged {
            0 => Contents::Held(None),
            1 => Contents::Held(Some(self.part(object, "__val_")?)),
            _ => Items::damaged("its flag is neither true nor false"),
        })
    }

    fn smart_pointer(&self, object: &Object) -> Option<Contents> {
        let held = self.part(object, "__ptr_")?;
        let pointer = self.part(&held, "__value_").unwrap_or(held);
        let (address, to) = self.pointer(&pointer)?;
        self.pointing(address, to)
    }

    fn hash_map(&self, object: &Object) -> Option<Contents> {
        self.raw_table(&self.parts(object, &["base", "table"])?, true)
    }

    fn hash_set(&self, object: &Object) -> Option<Contents> {
        self.raw_table(&self.parts(object, &["base", "map", "table"])?, false)
    }

    /// Reads a table of hashbrown. It has control bytes, preceded by the elements in reverse order.
    fn raw_table(&self, table: &Object, is_map: bool) -> Option<Contents> {
        let element = self.argument(table.type_ref, "T")?;
        let bytes = self.variables.sized(element).ok()?;
        let inner = self.part(table, "table")?;
        let mask = self.number(&self.part(&inner, "bucket_mask")?)?;
        let count = self.number(&self.part(&inner, "items")?)?;
        let (control, _) = self.pointer(&self.part(&inner, "ctrl")?)?;
        if count > mask.saturating_add(1) {
            return Some(Items::damaged("it has more elements than its capacity"));
        }
        let mut items = Items {
            count,
            ..Items::default()
        };
        let wanted = count.min(self.most);
        for bucket in 0..=mask {
            if items.found.len() as u64 == wanted {
                break;
            }
            let mut full = [0];
            if !self.machine.memory(control.checked_add(bucket)?, &mut full) {
                items.damaged = Some("its table is outside memory");
                break;
            }
            if full[0] & 0x80 != 0 {
                continue;
            }
            let at = bytes
                .checked_mul(bucket + 1)
                .and_then(|far| control.checked_sub(far));
            let pair = self.at(element, at?)?;
            let (key, value) = (self.part(&pair, "__0")?, self.part(&pair, "__1")?);
            items.found.push(if is_map {
                (Some(key), value)
            } else {
                (None, key)
            });
        }
        Some(Contents::Items(items))
    }

    fn b_tree(&self, object: &Object) -> Option<Contents> {
        let set = self.part(object, "map");
        let map = set.as_ref().unwrap_or(object);
        let (key, value) = (
            self.argument(map.type_ref, "K")?,
            self.argument(map.type_ref, "V")?,
        );
        let count = self.number(&self.part(map, "length")?)?;
        let mut items = Items {
            count,
            ..Items::default()
        };
        if count == 0 {
            return Some(Contents::Items(items));
        }
        let root = self.some(&self.part(map, "root")?)??;
        let height = self.number(&self.part(&root, "height")?)?;
        let (node, leaf) = self.pointer(&self.part(&root, "node")?)?;
        let leaf_bytes = self.variables.sized(leaf).ok()?;
        let wanted = count.min(self.most) as usize;
        // This stack contains nodes with the next part to visit, which is a child or the key after
        // it.
        let mut way = vec![(node, height, 0)];
        while let Some((at, height, next)) = way.pop() {
            if items.found.len() == wanted {
                break;
            }
            let node = self.at(leaf, at).filter(|_| at != 0 && self.is_there(at));
            let length = node
                .as_ref()
                .and_then(|node| self.number(&self.part(node, "len")?));
            let (Some(node), Some(length)) = (node, length.filter(|length| *length <= 11)) else {
                items.damaged = Some("a node is invalid");
                break;
            };
            let (index, is_key) = match height {
                0 => (next, true),
                _ => (next / 2, next % 2 == 1),
            };
            if index > length || (is_key && index == length) {
                continue;
            }
            way.push((at, height, next + 1));
            if is_key {
                let nth = |name: &str, of: TypeRef| {
                    let array = self.part(&node, name)?;
                    let bytes = self.variables.sized(of).ok()?;
                    self.at(of, array.address()?.checked_add(index * bytes)?)
                };
                let found = (nth("keys", key)?, nth("vals", value));
                items.found.push(match (set.is_some(), found) {
                    (false, (key, Some(value))) => (Some(key), value),
                    (_, (key, _)) => (None, key),
                });
            } else if way.len() > LINKS {
                items.damaged = Some("its nodes form a cycle");
                break;
            } else {
                // The children follow the members that leaves have.
                let child = at.checked_add(leaf_bytes)?.checked_add(index * 4)?;
                way.push((self.word(child).unwrap_or(0), height - 1, 0));
            }
        }
        if items.damaged.is_none() && items.found.len() < wanted {
            items.damaged = Some("it has fewer elements than its count");
        }
        Some(Contents::Items(items))
    }
}

/// Returns the number in the last argument of a type's name, such as 3 in `span<int, 3UL>`.
fn number_at_end(name: &str) -> Option<u64> {
    let last = name.rsplit([',', '<']).next()?;
    last.trim_matches(|sign: char| !sign.is_ascii_digit())
        .parse()
        .ok()
}
