//! The sections of a module, for adding entries.

use wasm_encoder::Encode;
use wasmparser::Parser;

pub const TYPE: u8 = 1;
pub const IMPORT: u8 = 2;
pub const FUNCTION: u8 = 3;
pub const TABLE: u8 = 4;
pub const MEMORY: u8 = 5;
pub const GLOBAL: u8 = 6;
pub const EXPORT: u8 = 7;
pub const CODE: u8 = 10;
/// Section ids in module order.
const ORDER: [u8; 13] = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11];

/// The end of a section at which to add entries.
#[derive(Clone, Copy)]
pub enum Side {
    First,
    Last,
}

/// A module's sections, except custom sections.
pub struct Sections {
    header: Vec<u8>,
    sections: Vec<(u8, Vec<u8>)>,
}

impl Sections {
    /// Reads the sections of a valid module.
    pub fn of(bytes: &[u8]) -> Self {
        let mut sections: Vec<(u8, Vec<u8>)> = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            if let Some((id, range)) = payload.expect("a module").as_section() {
                sections.push((id, bytes[range].to_vec()));
            }
        }
        // Custom sections do not matter here.
        sections.retain(|(id, _)| *id != 0);
        Self {
            header: bytes[..8].to_vec(),
            sections,
        }
    }

    pub fn remove(&mut self, id: u8) {
        self.sections.retain(|(other, _)| *other != id);
    }

    pub fn add(&mut self, id: u8, side: Side, entries: &[Vec<u8>]) {
        if entries.is_empty() {
            return;
        }
        let rank = |id: u8| ORDER.iter().position(|&other| other == id);
        let sections = &mut self.sections;
        let at = sections.partition_point(|(other, _)| rank(*other) < rank(id));
        if sections.get(at).is_none_or(|(other, _)| *other != id) {
            sections.insert(at, (id, vec![0]));
        }
        let section = &mut sections[at].1;
        let mut reader = wasmparser::BinaryReader::new(section, 0);
        let count = reader.read_var_u32().expect("a count");
        let rest = section[reader.original_position()..].to_vec();
        let mut more = Vec::new();
        (count + entries.len() as u32).encode(&mut more);
        match side {
            Side::First => more.extend(entries.concat().into_iter().chain(rest)),
            Side::Last => more.extend(rest.into_iter().chain(entries.concat())),
        }
        *section = more;
    }

    pub fn encoded(self) -> Vec<u8> {
        let mut module = self.header;
        for (id, section) in self.sections {
            module.push(id);
            section.as_slice().encode(&mut module);
        }
        module
    }
}
