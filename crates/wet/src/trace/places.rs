//! Finds the last writers of table elements and of the sizes of tables and memories.
//!
//! The trace stores nothing about these places. The path shows the instructions that write or read
//! them. The instructions' operands determine the elements of a table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId};
use afterimage_machine::{Code, Inst, NodeCode, NodeEnd};
use afterimage_program::Callee;
use afterimage_wpp::{Occurrences, Segments};
use rustc_hash::{FxHashMap, FxHashSet};
use wasmparser::Operator;

use super::{Compiled, Epochs, Failure, Instance, TraceError, WholeTrace, Writer};

/// A place that is not a byte of memory, a global, or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableOrSize {
    /// The elements of a table.
    Elements(u32),
    /// The size of a table.
    TableSize(u32),
    /// The size of a memory.
    MemorySize(u32),
}

/// Table elements, or a size, that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The place from which the instruction reads.
    pub place: TableOrSize,
    /// The number of adjacent elements, or 0 for a size.
    pub elements: u64,
    /// The last writer of the elements or the size.
    pub writer: Writer,
}

/// The maximum number of reported parts.
const MOST_PARTS: usize = 1 << 24;

/// The blocks that write a place, and the blocks that write or read it.
#[derive(Default)]
struct Blocks {
    setting: FxHashSet<(FuncId, BlockId)>,
    touching: FxHashSet<(FuncId, BlockId)>,
}

/// For each place, the blocks that write it, and the blocks that write or read it.
#[derive(Default)]
pub(super) struct Scanned(FxHashMap<TableOrSize, Blocks>);

/// The executions of nodes that write a place, and of nodes that write or read it.
pub(super) struct Sites<'a, S: Segments> {
    setting: Occurrences<'a, S>,
    pub(super) touching: Occurrences<'a, S>,
}

/// A set of positions, as ranges with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn new(range: Range<u64>) -> Self {
        let range = Some(range).filter(|range| !range.is_empty());
        Self(
            range
                .into_iter()
                .map(|range| (range.start, range.end))
                .collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the parts in a range, ascending. Time: O(log ranges + parts).
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let before = self.0.range(..range.start).next_back();
        let later = self.0.range(range.start..range.end.max(range.start));
        let all = before.into_iter().chain(later);
        let parts = all.map(|(&start, &end)| start.max(range.start)..end.min(range.end));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Removes the positions in a range, and returns their parts, ascending. Time: O(log ranges ×
    /// parts).
    pub(super) fn remove(&mut self, range: &Range<u64>) -> Vec<Range<u64>> {
        let parts = self.within(range);
        for part in &parts {
            let whole = self.0.range(..=part.start).next_back();
            let Some((&start, &end)) = whole else {
                continue;
            };
            self.0.remove(&start);
            if start < part.start {
                self.0.insert(start, part.start);
            }
            if part.end < end {
                self.0.insert(part.end, end);
            }
        }
        parts
    }
}

/// Returns the places that an instruction writes.
pub(super) fn sets(inst: &Inst) -> impl Iterator<Item = TableOrSize> + use<> {
    let table = inst.immediate as u32;
    let (first, second) = match inst.code {
        Code::TableSet | Code::TableFill | Code::TableCopy | Code::TableInit => {
            (Some(TableOrSize::Elements(table)), None)
        }
        Code::TableGrow => (
            Some(TableOrSize::Elements(table)),
            Some(TableOrSize::TableSize(table)),
        ),
        Code::MemoryGrow => (Some(TableOrSize::MemorySize(inst.memory.into())), None),
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

/// Returns the place that an instruction reads.
fn takes(inst: &Inst) -> Option<TableOrSize> {
    let table = inst.immediate as u32;
    Some(match inst.code {
        Code::TableGet => TableOrSize::Elements(table),
        Code::TableCopy => TableOrSize::Elements((inst.immediate >> 32) as u32),
        Code::TableSize | Code::TableGrow => TableOrSize::TableSize(table),
        Code::MemorySize | Code::MemoryGrow => TableOrSize::MemorySize(inst.memory.into()),
        _ => return None,
    })
}

/// Returns the place that the instruction at a position of a node reads. Without a position,
/// returns the place that the node's end reads.
pub(super) fn taken_by(code: &NodeCode, inst: Option<usize>) -> Option<TableOrSize> {
    match inst {
        Some(inst) => takes(code.insts.get(inst)?),
        None => match &code.end {
            NodeEnd::Call { callee, .. } | NodeEnd::TailCall { callee, .. } => match *callee {
                Callee::Indirect { table, .. } => Some(TableOrSize::Elements(table)),
                Callee::Direct(_) => None,
            },
            _ => None,
        },
    }
}

/// Returns the places that an operator writes, and the place that it reads.
fn of_operator(operator: &Operator<'_>) -> ([Option<TableOrSize>; 2], Option<TableOrSize>) {
    match *operator {
        Operator::TableGet { table } => ([None; 2], Some(TableOrSize::Elements(table))),
        Operator::TableSet { table }
        | Operator::TableFill { table }
        | Operator::TableInit { table, .. } => ([Some(TableOrSize::Elements(table)), None], None),
        Operator::TableCopy {
            dst_table,
            src_table,
        } => (
            [Some(TableOrSize::Elements(dst_table)), None],
            Some(TableOrSize::Elements(src_table)),
        ),
        Operator::TableSize { table } => ([None; 2], Some(TableOrSize::TableSize(table))),
        Operator::TableGrow { table } => {
            let sets = [TableOrSize::Elements(table), TableOrSize::TableSize(table)];
            (sets.map(Some), Some(TableOrSize::TableSize(table)))
        }
        Operator::MemorySize { mem } => ([None; 2], Some(TableOrSize::MemorySize(mem))),
        Operator::MemoryGrow { mem } => {
            let size = Some(TableOrSize::MemorySize(mem));
            ([size, None], size)
        }
        Operator::CallIndirect { table_index, .. }
        | Operator::ReturnCallIndirect { table_index, .. } => {
            ([None; 2], Some(TableOrSize::Elements(table_index)))
        }
        _ => ([None; 2], None),
    }
}

impl<'a, S: Segments, E: Epochs> WholeTrace<'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the last writers of the table elements or the size that an instruction reads, part
    /// by part, from the first element on. Without an instruction, returns the writers for the call
    /// at the node's end. The result is empty if the instruction reads no such place, or trapped.
    /// It omits elements that do not exist.
    ///
    /// The search distinguishes individual elements. A `memory.grow` or `table.grow` that failed
    /// also counts as a writer of the size, which it left unchanged. For elements, the search takes
    /// O(executions that have written to the table since). For sizes, it takes O(log n). The first
    /// query reads all operators of the functions that were executed.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete, or there are more than 2^24
    /// parts.
    pub fn taken(
        &self,
        instance: Instance,
        inst: Option<usize>,
    ) -> Result<Vec<Taken>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let Some(place) = taken_by(&compiled.code, inst) else {
            return Ok(Vec::new());
        };
        if let Some(inst) = inst {
            self.executed(instance, inst)?;
        }
        let range = self.range_taken(instance, &compiled, inst, place)?;
        let mut missing = Ranges::new(range);
        let mut found = Vec::new();
        let sites = self.sites(place)?;
        let (mut at, mut behind) = (instance, inst.unwrap_or(compiled.code.insts.len()));
        let before = instance.time.saturating_sub(1);
        let mut left = sites.setting.rank(before).map_err(TraceError::Path)?;
        while !missing.is_empty() {
            let compiled = self.compiled(at.node)?;
            let insts = compiled.code.insts[..behind].iter().enumerate();
            for (inst, one) in insts.rev() {
                if !sets(one).any(|set| set == place) {
                    continue;
                }
                let range = self.range_set(at, &compiled, inst, place)?;
                let writer = Writer::Write {
                    instance: at,
                    inst,
                    offset: 0,
                };
                let parts = missing.remove(&range);
                found.extend(parts.into_iter().map(|part| (part, writer)));
                if found.len() > MOST_PARTS {
                    return Err(TraceError::TooManyParts);
                }
            }
            let earlier = sites.setting.select(left).map_err(TraceError::Path)?;
            let Some(earlier) = earlier.filter(|_| left > 0) else {
                break;
            };
            left -= 1;
            let missing = TraceError::Damaged("an execution that does not exist");
            at = self.at(earlier.time)?.ok_or(missing)?;
            behind = self.compiled(at.node)?.code.insts.len();
        }
        let held = match place {
            TableOrSize::Elements(table) => {
                let table = self.initial.tables.get(table as usize);
                table.map_or(0, |table| table.elements.len() as u64)
            }
            TableOrSize::TableSize(_) | TableOrSize::MemorySize(_) => 1,
        };
        let initial = missing.within(&(0..held)).into_iter();
        found.extend(initial.map(|part| (part, Writer::Initial)));
        found.sort_by_key(|(part, _)| part.start);
        let mut all: Vec<(Range<u64>, Writer)> = Vec::new();
        for (part, writer) in found {
            match all.last_mut() {
                Some((last, by)) if last.end == part.start && *by == writer => last.end = part.end,
                _ => all.push((part, writer)),
            }
        }
        let all = all.into_iter().map(|(part, writer)| Taken {
            place,
            elements: length(place, &part),
            writer,
        });
        Ok(all.collect())
    }

    /// Returns the range of elements that an instruction, or the call at the node's end, reads.
    pub(super) fn range_taken(
        &self,
        instance: Instance,
        compiled: &Compiled,
        inst: Option<usize>,
        place: TableOrSize,
    ) -> Result<Range<u64>, Failure<S, E>> {
        let TableOrSize::Elements(_) = place else {
            return Ok(0..1);
        };
        let code = &compiled.code;
        let value = |register| Ok::<_, Failure<S, E>>(self.value(instance, register)?.0);
        let (first, count) = match (inst, &code.end) {
            (Some(inst), _) => match code.insts[inst] {
                Inst {
                    code: Code::TableCopy,
                    b,
                    c,
                    ..
                } => (value(b)?, value(c)?),
                Inst { a, .. } => (value(a)?, 1),
            },
            (
                None,
                NodeEnd::Call {
                    index: Some(index), ..
                }
                | NodeEnd::TailCall {
                    index: Some(index), ..
                },
            ) => (value(*index)?, 1),
            (None, _) => return Err(TraceError::Damaged("a call without an index")),
        };
        Ok(first..first.saturating_add(count))
    }

    /// Returns the range of elements that an instruction writes.
    pub(super) fn range_set(
        &self,
        instance: Instance,
        compiled: &Compiled,
        inst: usize,
        place: TableOrSize,
    ) -> Result<Range<u64>, Failure<S, E>> {
        let TableOrSize::Elements(_) = place else {
            return Ok(0..1);
        };
        let one = &compiled.code.insts[inst];
        let value = |register| Ok::<_, Failure<S, E>>(self.value(instance, register)?.0);
        let (first, count) = match one.code {
            Code::TableSet => (value(one.a)?, 1),
            Code::TableGrow => {
                let before = value(compiled.code.first_result() + inst as u32)?;
                // A table never has this many elements, so the growth was refused.
                if before as u32 == u32::MAX {
                    return Ok(0..0);
                }
                (before, value(one.b)?)
            }
            _ => (value(one.a)?, value(one.c)?),
        };
        Ok(first..first.saturating_add(count))
    }

    /// Returns the executions that write or read a place. The first call takes O(nodes of the
    /// path).
    pub(super) fn sites(&self, place: TableOrSize) -> Result<Rc<Sites<'a, S>>, Failure<S, E>> {
        if let Some(known) = self.sites.borrow().get(&place) {
            return Ok(Rc::clone(known));
        }
        let nothing = Blocks::default();
        let scanned = self.scanned.get_or_init(|| self.scan());
        let blocks = scanned.0.get(&place).unwrap_or(&nothing);
        let executions = |of: &FxHashSet<(FuncId, BlockId)>| {
            let nodes = self.path.nodes().iter().filter(|(_, node)| {
                let mut blocks = node.blocks.iter();
                blocks.any(|&block| of.contains(&(node.function, block)))
            });
            self.path.executions(nodes.map(|(id, _)| (id, 0)))
        };
        let sites = Rc::new(Sites {
            setting: executions(&blocks.setting)?,
            touching: executions(&blocks.touching)?,
        });
        self.sites.borrow_mut().insert(place, Rc::clone(&sites));
        Ok(sites)
    }

    /// For each place, returns the blocks of the executed functions that write or read it. Takes
    /// time linear in the operators of these functions.
    fn scan(&self) -> Scanned {
        let mut all = Scanned::default();
        let nodes = self.path.nodes().values();
        let functions = FxHashSet::from_iter(nodes.map(|node| node.function));
        for function in functions
            .into_iter()
            .filter_map(|id| self.program.function(id))
        {
            for (op, _, operator) in self.program.operators(self.bytes, function) {
                let (sets, takes) = of_operator(&operator);
                let Some(block) = function.block_of(op) else {
                    continue;
                };
                for set in sets.into_iter().flatten() {
                    all.0
                        .entry(set)
                        .or_default()
                        .setting
                        .insert((function.id, block));
                }
                for touched in sets.into_iter().chain([takes]).flatten() {
                    let blocks = all.0.entry(touched).or_default();
                    blocks.touching.insert((function.id, block));
                }
            }
        }
        all
    }

    /// Returns the execution that contains block `time`, and its node.
    pub(super) fn node_at(&self, time: u64) -> Result<(Instance, Rc<Compiled>), Failure<S, E>> {
        let missing = TraceError::Damaged("an execution that does not exist");
        let instance = self.at(time)?.ok_or(missing)?;
        Ok((instance, self.compiled(instance.node)?))
    }
}

/// Returns the number of elements to report for a part of a place.
pub(super) fn length(place: TableOrSize, part: &Range<u64>) -> u64 {
    match place {
        TableOrSize::Elements(_) => part.end - part.start,
        TableOrSize::TableSize(_) | TableOrSize::MemorySize(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn ranges_are_as_positions_one_by_one() {
        let mut random = 7u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let mut ranges = Ranges::new(2..40);
            let mut naive = Vec::from_iter((0..48).map(|i| (2..40).contains(&i)));
            for _ in 0..20 {
                let start = next(45);
                let range = start..start + next(9);
                let parts = ranges.within(&range);
                let held = parts.iter().cloned().flatten();
                let expected = range
                    .clone()
                    .filter(|&i| naive.get(i as usize) == Some(&true));
                assert!(held.eq(expected));
                if next(2) == 0 {
                    assert_eq!(ranges.remove(&range), parts);
                    range.for_each(|i| {
                        if let Some(held) = naive.get_mut(i as usize) {
                            *held = false;
                        }
                    });
                }
                assert_eq!(ranges.is_empty(), !naive.contains(&true));
            }
        }
    }
}
