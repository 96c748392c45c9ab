//! Opens the units of a module.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use gimli::{EndianSlice, LittleEndian, Unit, UnitHeader, UnitType};

use super::{Debug, EntryId, Slice};
use crate::DebugError;
use crate::abbreviations::Budget;
use crate::sections::Sections;

impl<'a> Debug<'a> {
    /// Reads the units' headers and root entries. O(debug sections).
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, DebugError> {
        let sections = Sections::read(bytes);
        if sections.custom(".debug_info").is_empty() {
            return Err(crate::missing::without(&sections));
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
            in_info: 0,
            signatures: HashMap::new(),
            prologues: Default::default(),
            attributes: Default::default(),
            foreign_locals: OnceLock::new(),
            warnings,
        };
        debug.read_units();
        Ok(debug)
    }

    fn read_units(&mut self) {
        let mut budgets = Budgets {
            abbreviations: Budget::new(self.sections.custom(".debug_abbrev")),
            lines: LineBudget::new(&self.sections),
        };
        let mut headers = self.dwarf.units();
        while let (Some(header), true) = (self.header(headers.next()), budgets.lines.lasts) {
            self.read_unit(header, &mut budgets);
        }
        self.in_info = self.units.len();
        // Up to DWARF 4, type units have their own section.
        let mut headers = self.dwarf.type_units();
        while let (Some(header), true) = (self.header(headers.next()), budgets.lines.lasts) {
            self.read_unit(header, &mut budgets);
        }
    }

    fn header(
        &mut self,
        header: gimli::Result<Option<UnitHeader<Slice<'a>>>>,
    ) -> Option<UnitHeader<Slice<'a>>> {
        header.unwrap_or_else(|error| {
            self.warnings.push(format!("a unit's header: {error}"));
            None
        })
    }

    fn read_unit(&mut self, header: UnitHeader<Slice<'a>>, budgets: &mut Budgets<'a>) {
        let (section, at) = (header.section().name(), header.offset().0);
        let unit = budgets
            .abbreviations
            .table(header.debug_abbrev_offset())
            .and_then(|table| {
                Unit::new_with_abbreviations(&self.dwarf, header, table)
                    .map_err(|error| error.to_string())
            })
            .and_then(|mut unit| {
                // This crate does not need line tables.
                let program = unit.line_program.take();
                let pays = program.is_none_or(|program| budgets.lines.pays(program.header()));
                pays.then_some(unit)
                    .ok_or_else(|| "its line table is shared too often".into())
            });
        let unit = match unit {
            Ok(unit) => unit,
            Err(error) => {
                let warning = format!("unit at 0x{at:x} of {section}: {error}");
                self.warnings.push(warning);
                return;
            }
        };
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
}

/// Budgets for data that units may share.
struct Budgets<'a> {
    abbreviations: Budget<'a>,
    lines: LineBudget,
}

/// The budget for headers of line tables. A header is read once per unit, and hostile units could
/// all name one huge header.
struct LineBudget {
    seen: HashSet<usize>,
    left: usize,
    /// Whether any budget is left. If not, no further unit is read.
    lasts: bool,
}

impl LineBudget {
    fn new(sections: &Sections<'_>) -> Self {
        let size = |name| sections.custom(name).len();
        // Type units share the line table of their compilation unit.
        let units = size(".debug_info") + size(".debug_types");
        Self {
            seen: HashSet::new(),
            lasts: true,
            left: 16 * size(".debug_line") + 64 * units,
        }
    }

    /// Charges a header to the budget, and returns whether the budget suffices.
    fn pays(&mut self, header: &gimli::LineProgramHeader<Slice<'_>>) -> bool {
        if self.seen.insert(header.offset().0) {
            return true;
        }
        match self.left.checked_sub(header.header_length()) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.lasts = false;
                false
            }
        }
    }
}
