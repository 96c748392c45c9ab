//! Computes the size that a run's trace would have in the original form of the papers.

use afterimage_ids::{NodeId, SecondaryMap};
use afterimage_machine::{NodeCode, Operand};
use afterimage_wet::{ReadFrom, read_from};
use afterimage_wpp::Segments;

use super::{Kind, RecordedValues, Statement, ValuesError};

/// The item that carries a control dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOf {
    /// Each statement, as in the paper.
    Statements,
    /// Each block.
    Blocks,
}

/// The parts of the original form of a whole execution trace (Zhang and Gupta 2005, section 2),
/// before inference and compression. `docs/VALUES.md` defines the counts of statements, values and
/// dependences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Original {
    /// The number of executed statements, each with a time and a control dependence.
    pub statements: u64,
    /// The number of values that the statements gave.
    pub values: u64,
    /// The number of data dependences, which are operands other than constants, and reads of memory
    /// and globals. A read counts once, even if its parts have several writers. Reads by memory
    /// copies are not counted, so this is a lower bound.
    pub data: u64,
    /// The number of executed blocks. One control dependence for each block could replace the
    /// control dependences of its statements.
    pub blocks: u64,
    /// The number of executed nodes of the path. If the statements of a node share one time, this
    /// is the number of stored times.
    pub nodes: u64,
}

impl Original {
    /// The size of a time, and of a value, in bytes.
    pub const WORD: u64 = 4;
    /// The size of a dependence in bytes.
    pub const LABEL: u64 = 8;

    /// Counts a whole run: the code of each node counts once for each execution of the node. Takes
    /// time linear in the code of the path's nodes, and in the nodes of its segments.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read, or belongs to another program.
    pub fn of(values: &RecordedValues<'_>) -> Result<Self, ValuesError> {
        let mut counts: SecondaryMap<NodeId, u64> = SecondaryMap::new();
        for summary in values.path().segments().summaries() {
            for &(node, count) in &summary.node_counts {
                counts[node] = counts[node].saturating_add(count);
            }
        }
        Self::of_nodes(values, &counts, true)
    }

    /// Counts parts of a run, each from a first to a last block. All nodes with a block in one of
    /// the parts count, as they do when values are stored for a window. Takes time linear in the
    /// nodes that are executed in the parts.
    ///
    /// # Errors
    /// Returns the same errors as [`of`](Self::of).
    pub fn of_windows(
        values: &RecordedValues<'_>,
        windows: &[(u64, u64)],
    ) -> Result<Self, ValuesError> {
        let mut windows = windows.to_vec();
        windows.sort_unstable();
        let mut counts: SecondaryMap<NodeId, u64> = SecondaryMap::new();
        let mut cursor = values.path().cursor();
        let mut counted = 0;
        for (first, last) in windows {
            let mut at = cursor
                .seek(first.max(counted + 1))
                .map_err(ValuesError::Path)?;
            while let Some(visit) = at.filter(|visit| visit.start <= last) {
                if visit.start > counted {
                    counts[visit.node] += 1;
                    counted = visit.last();
                }
                at = cursor.next().map_err(ValuesError::Path)?;
            }
        }
        Self::of_nodes(values, &counts, counted == values.path().length())
    }

    /// Counts nodes with the numbers of their executions. `ends` is true if the run's last node is
    /// among them.
    fn of_nodes(
        values: &RecordedValues<'_>,
        counts: &SecondaryMap<NodeId, u64>,
        ends: bool,
    ) -> Result<Self, ValuesError> {
        let path = values.path();
        let mut all = Self::default();
        for (node, known) in path.nodes().iter() {
            let count = counts[node];
            if count == 0 {
                continue;
            }
            let compiled = values.compiled(node)?;
            let once = Self {
                blocks: known.length(),
                nodes: 1,
                ..Self::of_instructions(&compiled.code, 0)
            };
            all.add(once, count);
        }
        // The run may have ended inside its last node.
        if ends
            && let Some(last) = values.at(path.length())?
            && let Some(executed) = values.stopped(last)?
        {
            let compiled = values.compiled(last.node)?;
            let missed = Self::of_instructions(&compiled.code, executed as usize);
            all.statements = all.statements.saturating_sub(missed.statements);
            all.values = all.values.saturating_sub(missed.values);
            all.data = all.data.saturating_sub(missed.data);
        }
        Ok(all)
    }

    /// Counts one execution of a node's instructions, from position `from` on.
    fn of_instructions(code: &NodeCode, from: usize) -> Self {
        let mut once = Self::default();
        for (position, inst) in code.insts.iter().enumerate().skip(from) {
            once.statements += 1;
            once.values += u64::from(inst.code.gives());
            let statement = Statement {
                kind: Kind::Inst(position),
                block: 0,
            };
            let operands = statement.operands(code).into_iter();
            let depends = |register| !matches!(code.source(register), Operand::Constant(_));
            once.data += operands.filter(|operand| depends(operand.register)).count() as u64;
            let reads = matches!(
                read_from(inst.code),
                Some(ReadFrom::Memory | ReadFrom::Global)
            );
            once.data += u64::from(reads);
        }
        once
    }

    fn add(&mut self, once: Self, times: u64) {
        let add = |sum: &mut u64, one: u64| *sum = sum.saturating_add(one.saturating_mul(times));
        add(&mut self.statements, once.statements);
        add(&mut self.values, once.values);
        add(&mut self.data, once.data);
        add(&mut self.blocks, once.blocks);
        add(&mut self.nodes, once.nodes);
    }

    /// Returns the size of all times in bytes.
    pub fn of_times(&self) -> u64 {
        self.statements.saturating_mul(Self::WORD)
    }

    /// Returns the size of all values in bytes.
    pub fn of_values(&self) -> u64 {
        self.values.saturating_mul(Self::WORD)
    }

    /// Returns the size of all dependences in bytes. `control` is the item that carries a control
    /// dependence.
    pub fn of_dependences(&self, control: ControlOf) -> u64 {
        let control = match control {
            ControlOf::Statements => self.statements,
            ControlOf::Blocks => self.blocks,
        };
        self.data
            .saturating_add(control)
            .saturating_mul(Self::LABEL)
    }

    /// Returns the total size in bytes.
    pub fn bytes(&self, control: ControlOf) -> u64 {
        let rest = self.of_times().saturating_add(self.of_values());
        rest.saturating_add(self.of_dependences(control))
    }
}
