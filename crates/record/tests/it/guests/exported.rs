//! Exports everything in a module, so that the engine shows it.

use wasmparser::{ExternalKind, Parser, Payload};

/// The id of the export section.
const EXPORTS: u8 = 7;

/// Returns the module with its memories, tables and globals exported as well.
pub fn export_all(bytes: &[u8]) -> Vec<u8> {
    let (mut count, mut entries) = (0, Vec::new());
    let (mut memories, mut tables, mut globals) = (0, 0, 0);
    let mut sections = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.expect("a module");
        match &payload {
            Payload::MemorySection(section) => memories = section.count(),
            Payload::TableSection(section) => tables = section.count(),
            Payload::GlobalSection(section) => globals = section.count(),
            Payload::ExportSection(section) => {
                count = section.count();
                // The entries follow their count.
                let range = section.range();
                let whole = &bytes[range];
                let digits = whole.iter().take_while(|byte| **byte >= 0x80).count() + 1;
                entries = whole[digits..].to_vec();
            }
            _ => {}
        }
        if let Some((id, range)) = payload.as_section() {
            sections.push((id, bytes[range].to_vec()));
        }
    }
    let kinds = [
        (ExternalKind::Memory, 2, memories),
        (ExternalKind::Table, 1, tables),
        (ExternalKind::Global, 3, globals),
    ];
    for (kind, code, items) in kinds {
        for item in 0..items {
            let name = format!("all {kind:?} {item}");
            leb(name.len() as u32, &mut entries);
            entries.extend_from_slice(name.as_bytes());
            entries.push(code);
            leb(item, &mut entries);
            count += 1;
        }
    }
    let mut exports = Vec::new();
    leb(count, &mut exports);
    exports.append(&mut entries);
    sections.retain(|(id, _)| *id != EXPORTS);
    // After the type, import, function, table, memory, global and tag sections (tag has id 13).
    let before = |id: u8| id < EXPORTS || id == 13;
    let place = sections.iter().rposition(|(id, _)| *id != 0 && before(*id));
    sections.insert(place.map_or(0, |place| place + 1), (EXPORTS, exports));
    let mut module = bytes[..8].to_vec();
    for (id, section) in sections {
        module.push(id);
        leb(section.len() as u32, &mut module);
        module.extend_from_slice(&section);
    }
    module
}

fn leb(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
