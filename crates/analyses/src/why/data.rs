//! Finds the parts of data segments that gave memory its initial contents.

use afterimage_machine::{MachineError, Range, State};
use afterimage_program::Program;
use wasmparser::{KnownCustom, Name, Parser, Payload};

/// A part of a data segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPart {
    /// The number of the data segment.
    pub segment: u32,
    /// The segment's name in the module, if it has one.
    pub name: Option<String>,
    /// The offset of the first byte in the segment.
    pub offset: u64,
    /// The segment's bytes from this offset on, up to a limit.
    pub bytes: Vec<u8>,
}

/// The number of bytes of a segment to show.
const SHOWN: usize = 16;

/// Finds the part of a data segment that initialises bytes of memory. If several segments cover the
/// first byte, the last segment counts. Returns `None` if no segment does. The bytes are then zero.
/// Time is linear in the size of the module.
///
/// # Errors
/// Returns an error if the module cannot be read.
pub fn data_of(
    program: &Program,
    module: &[u8],
    range: Range,
) -> Result<Option<DataPart>, MachineError> {
    let (_, initial) = State::of_module(program, module)?;
    let (segments, names) = segments(module)?;
    for filled in initial.iter().rev() {
        let held = segments
            .get(filled.segment as usize)
            .copied()
            .unwrap_or_default();
        let offset = range.address.checked_sub(filled.address);
        if filled.memory == range.memory
            && let Some(offset) = offset.filter(|offset| *offset < held.len() as u64)
        {
            return Ok(Some(part(filled.segment, offset, held, &names)));
        }
    }
    Ok(None)
}

/// Returns a part of a data segment.
///
/// # Errors
/// Returns an error if the module cannot be read.
pub fn data_in(module: &[u8], segment: u32, offset: u64) -> Result<DataPart, MachineError> {
    let (segments, names) = segments(module)?;
    let held = segments.get(segment as usize).copied().unwrap_or_default();
    Ok(part(segment, offset, held, &names))
}

fn part(segment: u32, offset: u64, held: &[u8], names: &[(u32, String)]) -> DataPart {
    let name = names.iter().find(|(index, _)| *index == segment);
    let rest = held.get(offset as usize..).unwrap_or_default();
    DataPart {
        segment,
        name: name.map(|(_, name)| name.clone()),
        offset,
        bytes: rest[..rest.len().min(SHOWN)].to_vec(),
    }
}

type Segments<'m> = (Vec<&'m [u8]>, Vec<(u32, String)>);

fn segments(module: &[u8]) -> Result<Segments<'_>, MachineError> {
    let (mut segments, mut names) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::DataSection(data) => {
                for segment in data {
                    segments.push(segment?.data);
                }
            }
            Payload::CustomSection(custom) => {
                let KnownCustom::Name(all) = custom.as_known() else {
                    continue;
                };
                // Names are only for people, so unreadable names are left out.
                for name in all.into_iter().map_while(Result::ok) {
                    if let Name::Data(map) = name {
                        let map = map.into_iter().map_while(Result::ok);
                        names.extend(map.map(|named| (named.index, named.name.to_owned())));
                    }
                }
            }
            _ => {}
        }
    }
    Ok((segments, names))
}
