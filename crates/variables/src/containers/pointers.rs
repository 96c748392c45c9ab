//! Reads Rust's reference-counted pointers, and pointers with a length or a method table. The
//! members have the names of Rust 1.95.

use super::{Contents, DEEPEST, Items, Reader};
use crate::object::Object;
use crate::types::{TypeKind, TypeRef};

/// The contents of a pointer in addition to its address.
enum Extra {
    Nothing,
    Length(u64),
    /// The address of a method table, which starts with the drop function, the size and the
    /// alignment.
    Methods(u64),
}

/// The size in bytes of the two counts before a shared value.
const COUNTS: u64 = 8;

impl Reader<'_, '_> {
    /// Returns a pointer's target address, its target type, and its extra word.
    fn fat_pointer(&self, object: &Object) -> Option<(u64, TypeRef, Extra)> {
        let mut object = object.clone();
        for _ in 0..DEEPEST {
            let plain = self.variables.plain(object.type_ref).ok()?;
            let described = self.variables.describe(plain).ok()?;
            if let TypeKind::Pointer { to, .. } = described.kind {
                return Some((self.number(&object)?, to, Extra::Nothing));
            }
            if let Some(data) = self.part(&object, "data_ptr") {
                let (address, to) = self.pointer(&data)?;
                let length = self.number(&self.part(&object, "length")?)?;
                return Some((address, to, Extra::Length(length)));
            }
            let inside = self.part(&object, "pointer")?;
            if let Some(methods) = self.part(&object, "vtable") {
                let (address, to) = self.pointer(&inside)?;
                let (methods, _) = self.pointer(&methods)?;
                return Some((address, to, Extra::Methods(methods)));
            }
            object = inside;
        }
        None
    }

    /// Reads an `Rc` or an `Arc`.
    pub(super) fn counted(&self, object: &Object) -> Option<Contents> {
        self.shared(object, "it has no owner")
    }

    /// Reads a `Weak`, whose value may no longer exist.
    pub(super) fn weak(&self, object: &Object) -> Option<Contents> {
        let (address, ..) = self.fat_pointer(&self.part(object, "ptr")?)?;
        // Weak::new() has no target.
        if address == u64::from(u32::MAX) {
            return Some(Contents::Text("dangling".to_owned()));
        }
        match self.shared(object, "")? {
            Contents::Items(items) if items.damaged == Some("") => {
                Some(Contents::Text("dropped".to_owned()))
            }
            found => Some(found),
        }
    }

    /// Reads a reference-counted value, which follows its counts in memory. `unowned` is the note
    /// for a value without owners.
    fn shared(&self, object: &Object, unowned: &'static str) -> Option<Contents> {
        let (address, inner, extra) = self.fat_pointer(&self.part(object, "ptr")?)?;
        let whole = self.at(inner, address)?;
        // The counts come first, regardless of the order of members in the source.
        match self.word(address) {
            None => return Some(Items::damaged("its value is outside memory")),
            Some(0) => return Some(Items::damaged(unowned)),
            Some(_) => {}
        }
        let value = self
            .part(&whole, "value")
            .or_else(|| self.part(&whole, "data"))?;
        match extra {
            Extra::Nothing => self.pointing(value.address()?, value.type_ref),
            Extra::Length(count) => {
                let name = self.name(object)?;
                let arguments = name.split_once('<')?.1;
                let own = arguments.split([',', '>']).next()?;
                let last = own.rsplit("::").next()?;
                let is_text = ["str", "Path", "OsStr"].contains(&last);
                self.side_by_side(value.address()?, count, value.type_ref, is_text)
            }
            Extra::Methods(methods) => {
                let align = self.word(methods.checked_add(8)?)?;
                if !align.is_power_of_two() {
                    return Some(Items::damaged("its table of methods is invalid"));
                }
                let at = address.checked_add(COUNTS.next_multiple_of(align))?;
                self.of_methods(at, methods)
            }
        }
    }

    /// Reads a `&dyn Trait` or a `Box<dyn Trait>`.
    pub(super) fn trait_object(&self, object: &Object) -> Option<Contents> {
        match self.fat_pointer(object)? {
            (address, _, Extra::Methods(methods)) => self.of_methods(address, methods),
            _ => None,
        }
    }

    /// Reads a value with a method table. rustc's description of the table gives the value's type.
    fn of_methods(&self, address: u64, methods: u64) -> Option<Contents> {
        let (name, concrete) = self.variables.concrete(methods)?;
        Some(Contents::Pointer {
            address,
            to: self.at(concrete, address)?,
            named: Some(name),
        })
    }

    /// Reads a `Ref` or a `RefMut` as the value that it borrows.
    pub(super) fn borrow(&self, object: &Object) -> Option<Contents> {
        self.part(object, "borrow")?;
        match self.fat_pointer(&self.part(object, "value")?)? {
            (address, to, Extra::Nothing) => self.pointing(address, to),
            (address, to, Extra::Length(count)) => {
                let is_text = self.name(object)?.ends_with("<str>");
                self.side_by_side(address, count, to, is_text)
            }
            (address, _, Extra::Methods(methods)) => self.of_methods(address, methods),
        }
    }
}
