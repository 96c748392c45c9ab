//! Opening the units of a module.

use std::collections::{HashMap, HashSet};

use gimli::{EndianSlice, LittleEndian, Unit, UnitType};

use super::{Debug, EntryId, Slice};
use crate::DebugError;
use crate::abbreviations::Budget;
use crate::sections::Sections;

impl<'a> Debug<'a> {
    /// Reads the units' headers and root entries. O(debug sections).
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, DebugError> {
        let sections = Sections::read(bytes);
        if sections.custom(".debug_info").is_empty() {
            return Err(DebugError::None);
        }
        let section = |id: gimli::SectionId| {
            let data = EndianSlice::new(sections.custom(id.name()), LittleEndian);
            Ok::<_, std::convert::Infallible>(data)
        };
        let Ok(dwarf) = gimli::Dwarf::load(section);
        let warnings = sections.failure.iter().cloned().collect();
        let mut debug = Self {
            sections,
            dwarf,
            units: Vec::new(),
            signatures: HashMap::new(),
            warnings,
        };
        debug.read_units();
        Ok(debug)
    }

    fn read_units(&mut self) {
        let mut abbreviations = Budget::new(self.sections.custom(".debug_abbrev"));
        let mut lines = LineBudget::new(self.sections.custom(".debug_line").len());
        let mut headers = self.dwarf.units();
        loop {
            let header = match headers.next() {
                Ok(Some(header)) => header,
                Ok(None) => break,
                Err(error) => {
                    self.warnings.push(format!(".debug_info: {error}"));
                    break;
                }
            };
            let at = header.offset().0;
            let unit = abbreviations
                .table(header.debug_abbrev_offset())
                .and_then(|table| {
                    Unit::new_with_abbreviations(&self.dwarf, header, table)
                        .map_err(|error| error.to_string())
                });
            match unit {
                Ok(mut unit) => {
                    // Line tables are read elsewhere; this crate needs none.
                    let program = unit.line_program.take();
                    if !program.is_none_or(|program| lines.pays(program.header())) {
                        self.warnings
                            .push(".debug_line: units share line tables".into());
                        break;
                    }
                    if let UnitType::Type {
                        type_signature,
                        type_offset,
                    } = unit.header.type_()
                    {
                        let id = EntryId {
                            unit: self.units.len() as u32,
                            offset: type_offset,
                        };
                        self.signatures.insert(type_signature.0, id);
                    }
                    self.units.push(unit);
                }
                Err(error) => self
                    .warnings
                    .push(format!("unit at 0x{at:x} of .debug_info: {error}")),
            }
        }
    }
}

/// Line tables are read once per unit with their header: hostile units could all name one huge header.
struct LineBudget {
    seen: HashSet<usize>,
    left: usize,
}

impl LineBudget {
    fn new(bytes: usize) -> Self {
        Self {
            seen: HashSet::new(),
            left: 16 * bytes,
        }
    }

    fn pays(&mut self, header: &gimli::LineProgramHeader<Slice<'_>>) -> bool {
        if self.seen.insert(header.offset().0) {
            return true;
        }
        match self.left.checked_sub(header.header_length()) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}
