//! Reads and writes slices in a recording.

use std::collections::BTreeMap;

use afterimage_ids::{FuncId, OpId, OrigOffset, grouped};
use afterimage_machine::Range;
use afterimage_program::Program;
use afterimage_slice::{Criterion, Follows, Reach, Slice, Want};
use afterimage_trace::{Kind, TraceError, TraceFile, TraceWriter};
use serde::{Deserialize, Serialize};

use super::exercised::Direction;
use super::question::{Algorithm, Origin, Question};

/// The maximum size of a stored slice, in bytes.
const LARGEST: u64 = 1 << 28;
/// The maximum number of bytes of memory that a stored question may cover. `LAST_BYTE` limits the
/// addresses of these bytes.
const MOST_BYTES: u64 = 1 << 24;
const LAST_BYTE: u64 = 1 << 34;
/// The version of the stored form.
const VERSION: u32 = 3;

/// A slice, with its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSlice {
    /// The question that the slice answers.
    pub question: Question,
    /// The question in words. When a slice is read, the words are [made](in_words) from the
    /// question. The words in the file are only for people who inspect the file.
    pub about: String,
    /// The offsets of the operators that the question is about, or of the operators at the
    /// question's place.
    pub offsets: Vec<OrigOffset>,
    /// The number of blocks that the run executed, and the number of different paths. They identify
    /// the path that the question is about.
    pub path: (u64, u64),
    /// The answer to the question.
    pub slice: Slice,
}

/// The reason why a slice cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] TraceError),
    /// The stored text is damaged.
    #[error("{0}; keep it again under the same name")]
    Damaged(String),
    /// The question is about more bytes than can be stored.
    #[error("a kept slice can cover at most {MOST_BYTES} bytes of memory, below 0x{LAST_BYTE:x}")]
    TooLarge,
}

/// Appends a slice to a file. The slice becomes part of the file with the commit.
///
/// # Errors
/// Returns an error if the file cannot be written or the name is longer than 255 bytes. Also fails
/// if the question is about more than 2^24 bytes of memory, about addresses from 2^34 on, or about
/// a memory with a number above 64.
pub fn save(out: &TraceWriter, name: &str, saved: &SavedSlice) -> Result<(), SavedError> {
    if !is_bounded(&saved.question) {
        return Err(SavedError::TooLarge);
    }
    let text = serde_json::to_vec(&Stored::from(saved));
    let text = text.map_err(|error| SavedError::Damaged(error.to_string()))?;
    Ok(out.whole(Kind::SLICE, Some(name), &text)?)
}

/// Whether a question covers so little memory that computing its slice takes no more memory than
/// the run.
fn is_bounded(question: &Question) -> bool {
    let criteria = question
        .criteria
        .iter()
        .chain(question.from.iter().flat_map(|from| &from.criteria));
    let wants = criteria.flat_map(|criterion| &criterion.wants);
    let mut bytes = 0u64;
    for want in wants {
        if let Want::Bytes(range, _) = want {
            let behind = range.address.checked_add(range.length);
            if behind.is_none_or(|behind| behind > LAST_BYTE) || range.memory > 64 {
                return false;
            }
            bytes = bytes.saturating_add(range.length);
        }
    }
    bytes <= MOST_BYTES
}

/// Reads the slices of a file, by name. If several slices share a name, the last counts. A slice
/// that is damaged or belongs to another program appears as an error.
///
/// # Errors
/// Returns an error if the file's sections cannot be listed.
pub fn saved_slices(
    file: &TraceFile,
    program: &Program,
) -> Result<BTreeMap<String, Result<SavedSlice, SavedError>>, TraceError> {
    let all = named(file)?.into_iter().map(|(name, position)| {
        let saved = read(file, position, program).map_err(SavedError::Damaged);
        (name, saved)
    });
    Ok(all.collect())
}

/// Returns the positions of the complete sections, by name.
fn named(file: &TraceFile) -> Result<BTreeMap<String, usize>, TraceError> {
    let sections = file.sections()?.into_iter().enumerate();
    let own = sections.filter(|(_, section)| section.kind == Kind::SLICE && section.complete);
    let named = own.map(|(position, section)| (section.name.unwrap_or_default(), position));
    Ok(named.collect())
}

fn read(file: &TraceFile, position: usize, program: &Program) -> Result<SavedSlice, String> {
    let section = file.section(position).ok_or("it is missing")?;
    let bytes = section.all(LARGEST).map_err(|error| error.to_string())?;
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if stored.version != VERSION {
        return Err(format!(
            "it has version {}, which this program cannot read",
            stored.version
        ));
    }
    let mut saved = SavedSlice::try_from(stored)?;
    // A question about a variable or memory does not contain the place of the moment.
    if saved.question.algorithm != Algorithm::Full || saved.question.operators.is_empty() {
        saved.offsets.clear();
    }
    saved.about = in_words(&saved.question, &saved.offsets);
    let known = |function: FuncId, op: OpId| {
        let function = program.function(function);
        function.is_some_and(|function| function.block_of(op).is_some())
    };
    let (question, slice) = (&saved.question, &saved.slice);
    let add = |sum: u64, more: u64| sum.checked_add(more);
    let executions = slice.operators.values().try_fold(0, |sum, n| add(sum, *n));
    let initial = slice
        .initial
        .iter()
        .try_fold(0, |sum, range| add(sum, range.length));
    let criteria = question
        .criteria
        .iter()
        .chain(question.from.iter().flat_map(|from| &from.criteria));
    let mut starts = criteria.map(|criterion| criterion.start);
    let (blocks, _) = saved.path;
    if executions.is_none()
        || initial.is_none()
        || !is_bounded(question)
        || starts.any(|start| start > blocks)
        || blocks == u64::MAX
    {
        return Err("it refers to executions or bytes that the run does not have".to_owned());
    }
    let operators = saved
        .slice
        .operators
        .keys()
        .chain(&question.operators)
        .chain(question.from.iter().flat_map(|from| &from.operators));
    for &(function, op) in operators {
        if !known(function, op) {
            return Err(format!("the program has no {function}, {op}"));
        }
    }
    Ok(saved)
}

/// Expresses a question in words that depend on the question alone. `offsets` contains the offsets
/// of the operators that the question is about.
pub fn in_words(question: &Question, offsets: &[OrigOffset]) -> String {
    let is_full = question.algorithm == Algorithm::Full;
    let to = subject(question, &question.criteria, offsets);
    let kind = match question.algorithm {
        Algorithm::Full => "",
        Algorithm::Edges => ", by dependences that occurred at least once",
        Algorithm::Nodes => ", by the code",
    };
    if let Some(from) = &question.from {
        return format!(
            "how {} influenced {to}{kind}",
            subject(question, &from.criteria, &[])
        );
    }
    let within = match question.reach().depth() {
        Some(depth) if is_full => format!(" within {depth} dependences"),
        _ => String::new(),
    };
    match question.direction {
        Direction::Forward => format!("what depends on {to}{within}{kind}"),
        Direction::Backward => format!("what {to} depends on{within}{kind}"),
    }
}

/// Describes the subject of these criteria of a question in words.
fn subject(question: &Question, criteria: &[Criterion], offsets: &[OrigOffset]) -> String {
    let wants = criteria.iter().flat_map(|criterion| &criterion.wants);
    let mut all = Vec::new();
    for want in wants {
        let next = match *want {
            Want::Bytes(range, _) => {
                let Range {
                    memory, address, ..
                } = range;
                let last = address.saturating_add(range.length.saturating_sub(1));
                format!("0x{address:x}..0x{last:x} of memory {memory}")
            }
            Want::Global(global, _) => format!("global {global}"),
            Want::Variable(_) => "a variable".to_owned(),
            Want::Inst(_) | Want::End | Want::Block(_) => continue,
        };
        if !all.contains(&next) {
            all.push(next);
        }
    }
    let at = offsets.iter().map(|offset| format!("@{offset}"));
    let (mut at, what) = (Vec::from_iter(at), all.len());
    for list in [&mut all, &mut at] {
        if list.len() > SHOWN {
            let more = list.len() - SHOWN;
            list.truncate(SHOWN);
            list.push(format!("{more} more"));
        }
    }
    let place = match (what, at.is_empty()) {
        (0, true) => "statements".to_owned(),
        (0, false) => at.join(", "),
        (_, true) => all.join(", "),
        (_, false) => format!("{} at {}", all.join(", "), at.join(", ")),
    };
    // A slice by statements does not depend on the execution.
    let starts = criteria.iter().map(|criterion| criterion.start);
    let start = starts
        .min()
        .filter(|_| question.algorithm == Algorithm::Full);
    match start {
        Some(start) => format!("{place} (executed from t={} on)", grouped(start)),
        None => place,
    }
}

/// The number of places to list.
const SHOWN: usize = 4;

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    about: String,
    algorithm: StoredAlgorithm,
    forward: bool,
    /// Whether to follow control, addresses and data.
    follows: [bool; 3],
    criteria: Vec<StoredCriterion>,
    operators: Vec<(u32, u32)>,
    from: Option<Vec<StoredCriterion>>,
    /// The statements of `from`.
    #[serde(default)]
    from_operators: Vec<(u32, u32)>,
    offsets: Vec<u64>,
    blocks: u64,
    nodes: u64,
    /// For each operator in the slice, its function, its number, and the number of its executions.
    slice: Vec<(u32, u32, u64)>,
    /// The memory, address and length of each range of initial bytes.
    initial: Vec<(u32, u64, u64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredAlgorithm {
    Nodes,
    Edges,
    Full,
}

#[derive(Serialize, Deserialize)]
struct StoredCriterion {
    start: u64,
    depth: Option<u8>,
    wants: Vec<StoredWant>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredWant {
    Inst(usize),
    End,
    Variable(u32),
    /// The memory, the address, the length, and the number of instructions executed before the
    /// moment.
    Bytes(u32, u64, u64, usize),
    Global(u32, usize),
    Block(usize),
}

impl From<&Criterion> for StoredCriterion {
    fn from(criterion: &Criterion) -> Self {
        let wants = criterion.wants.iter().map(|want| match *want {
            Want::Inst(inst) => StoredWant::Inst(inst),
            Want::End => StoredWant::End,
            Want::Variable(variable) => StoredWant::Variable(variable),
            Want::Bytes(range, behind) => {
                StoredWant::Bytes(range.memory, range.address, range.length, behind)
            }
            Want::Global(global, behind) => StoredWant::Global(global, behind),
            Want::Block(block) => StoredWant::Block(block),
        });
        Self {
            start: criterion.start,
            depth: criterion.reach.depth(),
            wants: wants.collect(),
        }
    }
}

impl TryFrom<StoredCriterion> for Criterion {
    type Error = String;

    fn try_from(stored: StoredCriterion) -> Result<Self, String> {
        let reach = match stored.depth {
            None => Reach::ALL,
            Some(depth) => Reach::of_depth(depth).ok_or("it is too deep")?,
        };
        let wants = stored.wants.into_iter().map(|want| match want {
            StoredWant::Inst(inst) => Want::Inst(inst),
            StoredWant::End => Want::End,
            StoredWant::Variable(variable) => Want::Variable(variable),
            StoredWant::Bytes(memory, address, length, behind) => {
                let range = Range {
                    memory,
                    address,
                    length,
                };
                Want::Bytes(range, behind)
            }
            StoredWant::Global(global, behind) => Want::Global(global, behind),
            StoredWant::Block(block) => Want::Block(block),
        });
        Ok(Self {
            start: stored.start,
            wants: wants.collect(),
            reach,
        })
    }
}

impl From<&SavedSlice> for Stored {
    fn from(saved: &SavedSlice) -> Self {
        let SavedSlice {
            question, slice, ..
        } = saved;
        let criteria = |all: &[Criterion]| all.iter().map(StoredCriterion::from).collect();
        let of_ids = |(function, op): &(FuncId, OpId)| (function.as_u32(), op.as_u32());
        let Follows {
            control,
            addresses,
            data,
        } = question.follows;
        let counts = slice.operators.iter().map(|(operator, &count)| {
            let (function, op) = of_ids(operator);
            (function, op, count)
        });
        let initial = slice.initial.iter();
        Self {
            version: VERSION,
            about: saved.about.clone(),
            algorithm: match question.algorithm {
                Algorithm::Nodes => StoredAlgorithm::Nodes,
                Algorithm::Edges => StoredAlgorithm::Edges,
                Algorithm::Full => StoredAlgorithm::Full,
            },
            forward: question.direction == Direction::Forward,
            follows: [control, addresses, data],
            criteria: criteria(&question.criteria),
            operators: question.operators.iter().map(of_ids).collect(),
            from: question.from.as_ref().map(|from| criteria(&from.criteria)),
            from_operators: {
                let from = question.from.iter().flat_map(|from| &from.operators);
                from.map(of_ids).collect()
            },
            offsets: saved.offsets.iter().map(|offset| offset.0.into()).collect(),
            blocks: saved.path.0,
            nodes: saved.path.1,
            slice: counts.collect(),
            initial: initial.map(|r| (r.memory, r.address, r.length)).collect(),
        }
    }
}

impl TryFrom<Stored> for SavedSlice {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let criteria = |all: Vec<StoredCriterion>| -> Result<Vec<Criterion>, String> {
            all.into_iter().map(Criterion::try_from).collect()
        };
        let of_ids = |(function, op)| (FuncId::from_u32(function), OpId::from_u32(op));
        let [control, addresses, data] = stored.follows;
        let offsets = stored.offsets.into_iter().map(u32::try_from);
        let offsets = offsets.collect::<Result<Vec<_>, _>>();
        let offsets = offsets.map_err(|_| "a place after the end of any module")?;
        let executions = |operators: Vec<(u32, u32, u64)>| {
            let all = operators.into_iter();
            all.map(|(function, op, count)| (of_ids((function, op)), count))
                .collect()
        };
        Ok(Self {
            question: Question {
                algorithm: match stored.algorithm {
                    StoredAlgorithm::Nodes => Algorithm::Nodes,
                    StoredAlgorithm::Edges => Algorithm::Edges,
                    StoredAlgorithm::Full => Algorithm::Full,
                },
                direction: if stored.forward {
                    Direction::Forward
                } else {
                    Direction::Backward
                },
                follows: Follows {
                    control,
                    addresses,
                    data,
                },
                criteria: criteria(stored.criteria)?,
                operators: stored.operators.into_iter().map(of_ids).collect(),
                from: match stored.from {
                    None => None,
                    Some(from) => Some(Origin {
                        criteria: criteria(from)?,
                        operators: stored.from_operators.into_iter().map(of_ids).collect(),
                    }),
                },
            },
            about: stored.about,
            offsets: offsets.into_iter().map(OrigOffset).collect(),
            path: (stored.blocks, stored.nodes),
            slice: Slice {
                operators: executions(stored.slice),
                initial: {
                    let range = |(memory, address, length)| Range {
                        memory,
                        address,
                        length,
                    };
                    stored.initial.into_iter().map(range).collect()
                },
            },
        })
    }
}
