//! Finds the differences between two modules that are alike.

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_program::{BlockEnd, Callee, Cfg, Function, Program};
use wasmparser::{Operator, Parser, Payload};

/// The differences between two modules that are alike. Such modules have the same functions with
/// the same types, locals, numbers of operators and control flow. So the k-th operator of a
/// function corresponds to the k-th operator of that function in the other module. The runs can
/// then be compared block by block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    /// The operators that differ, in the order of the code.
    pub replaced: Vec<Replaced>,
    /// The data segments that differ in their bytes.
    pub data: Vec<OtherData>,
}

/// An operator that differs, perhaps only in an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator's position in the function.
    pub op: OpId,
}

/// A data segment of the same length with different bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherData {
    /// The number of the data segment.
    pub segment: u32,
    /// The offset of the first byte that differs.
    pub first: u64,
    /// The number of bytes that differ.
    pub bytes: u64,
}

impl Alike {
    /// The maximum number of differing operators in modules that are alike. If code or data has
    /// moved, hundreds of constants differ, because they are addresses.
    pub const MOST: usize = 64;
}

/// Returns the differences between two modules, or `None` if the modules are not alike. O(size of
/// the modules).
pub fn alike(a: Module<'_>, b: Module<'_>) -> Option<Alike> {
    if a.0.functions.len() != b.0.functions.len() {
        return None;
    }
    let data = other_data(a.1, b.1)?;
    let mut replaced = Vec::new();
    for (of_a, of_b) in a.0.functions.iter().zip(&b.0.functions) {
        if body(a, of_a) != body(b, of_b) {
            others((a, of_a), (b, of_b), &mut replaced)?;
        }
        if replaced.len() > Alike::MOST {
            return None;
        }
    }
    Some(Alike { replaced, data })
}

/// A parsed program and the bytes of its module.
pub type Module<'m> = (&'m Program, &'m [u8]);

fn body<'m>((_, bytes): Module<'m>, function: &Function) -> Option<&'m [u8]> {
    part(bytes, &function.body)
}

fn part<'m>(bytes: &'m [u8], range: &std::ops::Range<OrigOffset>) -> Option<&'m [u8]> {
    bytes.get(range.start.0 as usize..range.end.0 as usize)
}

/// Adds the operators of a function that differ from their counterparts. Returns `None` if the
/// functions have different numbers of operators, locals or control flow.
fn others(
    (a, of_a): (Module<'_>, &Function),
    (b, of_b): (Module<'_>, &Function),
    replaced: &mut Vec<Replaced>,
) -> Option<()> {
    let same = of_a.operators == of_b.operators && same_flow(&of_a.cfg, &of_b.cfg);
    if !same || locals(a, of_a) != locals(b, of_b) {
        return None;
    }
    let (mut x, mut y) = (a.0.operators(a.1, of_a), b.0.operators(b.1, of_b));
    while let (Some((op, from_x, first)), Some((_, from_y, second))) = (x.next(), y.next()) {
        let is_same = match (&first, &second) {
            // The bytes identify the targets of a `br_table`. The decoded operator also contains
            // the position, so it cannot be compared.
            (Operator::BrTable { .. }, Operator::BrTable { .. }) => {
                part(a.1, &(from_x..x.position())) == part(b.1, &(from_y..y.position()))
            }
            _ => first == second,
        };
        if !is_same {
            replaced.push(Replaced {
                function: of_b.id,
                op,
            });
        }
    }
    Some(())
}

/// Returns the declarations of a function's locals.
fn locals<'m>((program, bytes): Module<'m>, function: &Function) -> Option<&'m [u8]> {
    let first = program.operators(bytes, function).position();
    part(bytes, &(function.body.start..first))
}

/// Whether control flow is the same, apart from callees.
fn same_flow(a: &Cfg, b: &Cfg) -> bool {
    let end = |end: BlockEnd| match end {
        BlockEnd::Call(Callee::Direct(_)) => BlockEnd::Call(Callee::Direct(FuncId::from_u32(0))),
        BlockEnd::TailCall(Callee::Direct(_)) => {
            BlockEnd::TailCall(Callee::Direct(FuncId::from_u32(0)))
        }
        other => other,
    };
    let blocks = a.blocks.values().zip(b.blocks.values());
    a.blocks.len() == b.blocks.len()
        && a.edges.values().eq(b.edges.values())
        && blocks
            .into_iter()
            .all(|(x, y)| (x.kind, &x.ops, end(x.end)) == (y.kind, &y.ops, end(y.end)))
}

/// Returns the data segments that differ. Returns `None` if anything else outside the code and the
/// custom sections differs.
fn other_data(a: &[u8], b: &[u8]) -> Option<Vec<OtherData>> {
    let mut other = Vec::new();
    let (mut x, mut y) = (sections(a), sections(b));
    loop {
        match (x.next(), y.next()) {
            (None, None) => return Some(other),
            (Some(x), Some(y)) => {
                let (x, y) = (x?, y?);
                match (&x.1, &y.1) {
                    (Payload::DataSection(first), Payload::DataSection(second)) => {
                        if first.count() != second.count() {
                            return None;
                        }
                        let pairs = first.clone().into_iter().zip(second.clone());
                        for (segment, (first, second)) in (0..).zip(pairs) {
                            let (first, second) = (first.ok()?, second.ok()?);
                            let head = |module: &[u8], data: &wasmparser::Data<'_>| {
                                let end = data.range.end.checked_sub(data.data.len())?;
                                Some(module.get(data.range.start..end)?.to_vec())
                            };
                            if head(a, &first)? != head(b, &second)? {
                                return None;
                            }
                            other.extend(bytes_of(segment, first.data, second.data));
                        }
                    }
                    (first, second) => {
                        if (x.0, part_of(a, first)) != (y.0, part_of(b, second)) {
                            return None;
                        }
                    }
                }
            }
            _ => return None,
        }
    }
}

fn part_of<'m>(module: &'m [u8], section: &Payload<'_>) -> Option<&'m [u8]> {
    match section {
        Payload::CodeSectionStart { .. } => None,
        _ => module.get(section.as_section()?.1),
    }
}

/// Iterates over the sections that are not custom sections. Yields `None` for a section that cannot
/// be read.
fn sections(module: &[u8]) -> impl Iterator<Item = Option<(u8, Payload<'_>)>> {
    let payloads = Parser::new(0).parse_all(module);
    payloads.filter_map(|payload| match payload {
        Err(_) => Some(None),
        Ok(Payload::CustomSection(_)) => None,
        Ok(payload) => {
            let (id, _) = payload.as_section()?;
            Some(Some((id, payload)))
        }
    })
}

fn bytes_of(segment: u32, a: &[u8], b: &[u8]) -> Option<OtherData> {
    let different = |(x, y): (&u8, &u8)| x != y;
    let first = a.iter().zip(b).position(different)?;
    let bytes = a.iter().zip(b).filter(|&(x, y)| different((x, y))).count();
    Some(OtherData {
        segment,
        first: first as u64,
        bytes: bytes as u64,
    })
}
