//! Lists the contents of an epoch, with the bytes that each item takes.

use afterimage_ids::NodeId;

use super::read::Reader;
use super::{AGES, CUTS, Epoch, EpochError, FAR, LABELS, VECTORS};
use crate::def::Piece;

/// The kind of data about an input or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputForm {
    /// The origins of memory or globals that are read.
    Labels,
    /// The distant origin of a variable.
    Far,
    /// The values themselves.
    Values,
    /// The origins of copied memory.
    Copies,
}

/// The meaning of a stream's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The executions of the node. The numbers of the other streams belong to these executions.
    At,
    /// The indices of patterns, nodes or places.
    Choice,
    /// The distance back to the definition, in executions.
    Ages,
    /// The execution of the definition.
    Executions,
    /// Values, or their upper halves.
    Values,
    /// The lengths, counts and steps of copied runs.
    Runs,
}

/// A coded stream.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The meaning of the stream's numbers.
    pub role: Role,
    /// The count of numbers in the stream.
    pub length: u64,
    /// The bytes of the stream.
    pub bytes: &'a [u8],
    /// Whether another stream of the same node has the same bytes, so that they are not stored
    /// again.
    pub shared: bool,
}

/// One kind of data about one input or copy.
#[derive(Clone, Debug)]
pub struct Content<'a> {
    /// The node that has the input or the copy.
    pub node: NodeId,
    /// The kind of the stored data.
    pub told: InputForm,
    /// The number of executions that the data covers. For copies, this is the number of runs.
    pub count: u64,
    /// For labels, the patterns that occur.
    pub patterns: Vec<Box<[Piece]>>,
    /// The streams, in order. For labels, the choice comes first if there are several patterns. One
    /// stream follows for each piece of the longest pattern.
    pub parts: Vec<Part<'a>>,
}

impl<'a> Reader<'a> {
    fn part(&mut self, role: Role, length: u64) -> Result<Part<'a>, EpochError> {
        let (bytes, shared) = self.coded()?;
        Ok(Part {
            role,
            length,
            bytes,
            shared,
        })
    }

    fn dated(&mut self, length: u64) -> Result<Part<'a>, EpochError> {
        let role = match self.byte()? {
            AGES => Role::Ages,
            _ => Role::Executions,
        };
        self.part(role, length)
    }
}

impl Epoch {
    /// Returns all contents, in order. Takes O(entries and patterns), and decodes no stream.
    ///
    /// # Errors
    /// Returns an error if the epoch is damaged.
    pub fn contents(&self) -> Result<Vec<Content<'_>>, EpochError> {
        let mut contents = Vec::new();
        for &((node, slot), (start, end)) in &self.entries {
            let mut reader = Reader {
                all: &self.bytes[..end as usize],
                at: start as usize,
                epoch: self.number,
            };
            let mut add = |told, (count, patterns, parts)| {
                contents.push(Content {
                    node: NodeId::from_u32(node),
                    told,
                    count,
                    patterns,
                    parts,
                });
            };
            // See `slot_of_copy`.
            if slot % 2 == 1 {
                add(InputForm::Copies, copies(&mut reader)?);
                continue;
            }
            let flags = reader.byte()?;
            if flags & LABELS != 0 {
                add(InputForm::Labels, labels(&mut reader)?);
            }
            if flags & FAR != 0 {
                add(InputForm::Far, far(&mut reader)?);
            }
            if flags & CUTS != 0 {
                add(InputForm::Values, cuts(&mut reader, flags & VECTORS != 0)?);
            }
        }
        Ok(contents)
    }
}

/// The count, the patterns and the streams.
type Parts<'a> = (u64, Vec<Box<[Piece]>>, Vec<Part<'a>>);

fn labels<'a>(reader: &mut Reader<'a>) -> Result<Parts<'a>, EpochError> {
    let count = reader.number()?;
    reader.number()?;
    let patterns = reader.patterns()?;
    let mut parts = Vec::new();
    if patterns.len() > 1 {
        parts.push(reader.part(Role::Choice, count)?);
    }
    let most = patterns.iter().map(|pattern| pattern.len()).max();
    for piece in 0..most.unwrap_or(0) {
        let length = if piece == 0 { count } else { reader.number()? };
        parts.push(reader.dated(length)?);
    }
    Ok((count, patterns, parts))
}

fn far<'a>(reader: &mut Reader<'a>) -> Result<Parts<'a>, EpochError> {
    let count = reader.number()?;
    let mut parts = vec![reader.part(Role::At, count)?];
    let nodes = reader.count()?;
    for _ in 0..nodes {
        reader.number()?;
    }
    if nodes > 1 {
        parts.push(reader.part(Role::Choice, count)?);
    }
    parts.push(reader.dated(count)?);
    Ok((count, Vec::new(), parts))
}

fn cuts<'a>(reader: &mut Reader<'a>, vectors: bool) -> Result<Parts<'a>, EpochError> {
    let count = reader.number()?;
    let mut parts = vec![reader.part(Role::At, count)?];
    for _ in 0..=u8::from(vectors) {
        parts.push(reader.part(Role::Values, count)?);
    }
    Ok((count, Vec::new(), parts))
}

fn copies<'a>(reader: &mut Reader<'a>) -> Result<Parts<'a>, EpochError> {
    let count = reader.number()?;
    let runs = reader.number()?;
    let mut parts = vec![
        reader.part(Role::At, count)?,
        reader.part(Role::Runs, count)?,
        reader.part(Role::Runs, runs)?,
        reader.part(Role::Runs, runs)?,
    ];
    for _ in 0..reader.count()? {
        reader.origin()?;
    }
    for role in [Role::Choice, Role::Executions, Role::Runs] {
        parts.push(reader.part(role, runs)?);
    }
    Ok((runs, Vec::new(), parts))
}
