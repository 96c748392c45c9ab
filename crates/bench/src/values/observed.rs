//! Counts executions, origins of variables and writes to memory while the machine follows the run,
//! and samples values.

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Caller, NodeCode, Observer, Range};
use afterimage_program::Program;
use anyhow::Result;
use serde::Serialize;

use super::build::Built;
use super::facts::Facts;
use super::shadow::Pages;
use super::variables::{Uses, Variables};
use crate::paths::random::Random;
use crate::paths::subject::Subject;

/// The number of values to compare.
const SAMPLES: u64 = 3_000;

/// Everything observed while the run was followed.
pub(crate) struct Observed {
    /// The number of executions of each node.
    pub counts: Vec<u64>,
    pub uses: Uses,
    /// The number of host calls.
    pub host_calls: u64,
    /// The size of the guest's memories at the end, in bytes.
    pub guest: u64,
    /// The size of the builder's shadow of the guest's memories.
    pub shadow: u64,
    pub samples: Vec<Sample>,
    /// The number of statements executed until the beginning of each epoch, and until the end.
    pub statements: Vec<u64>,
}

/// A value that the machine computed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    #[serde(skip)]
    pub function: FuncId,
    #[serde(skip)]
    pub op: OpId,
    #[serde(skip)]
    pub node: NodeId,
    /// The number of the node's execution.
    pub number: u64,
    /// The time of the node's first block.
    pub time: u64,
    /// The instruction's position in the node.
    pub inst: usize,
    pub low: u64,
    pub high: u64,
}

struct Watcher<'a> {
    facts: &'a Facts,
    program: &'a Program,
    counts: Vec<u64>,
    variables: Variables,
    memories: Vec<Pages>,
    host_calls: u64,
    statements: u64,
    node: NodeId,
    /// The time of the current node, if a value that it computes is wanted.
    wanted: Option<u64>,
    random: Random,
    samples: Vec<Sample>,
}

impl Watcher<'_> {
    fn written(&mut self, range: Range) {
        let memory = range.memory as usize;
        if self.memories.len() <= memory {
            self.memories.resize_with(memory + 1, Pages::default);
        }
        self.memories[memory].write(range);
    }
}

impl Observer for Watcher<'_> {
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.node = node;
        self.counts[node.index()] += 1;
        let of = &self.facts.nodes[node];
        self.statements += of.totals.statements;
        self.variables.node(code.variables as usize, &of.asked);
    }

    fn write(&mut self, _: usize, range: Range) {
        self.written(range);
    }

    fn copy(&mut self, _: usize, _: Range, to: Range) {
        self.written(to);
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        for &(variable, _) in &code.outputs {
            self.variables.write(variable);
        }
        let giving = &self.facts.nodes[self.node].giving;
        if giving.is_empty() {
            return;
        }
        let Some(time) = self.wanted.take() else {
            return;
        };
        let chosen = self.random.up_to(giving.len() as u64) as usize - 1;
        let inst = giving[chosen] as usize;
        let register = code.first_result() as usize + inst;
        self.samples.push(Sample {
            function: code.function,
            op: code.insts[inst].op,
            node: self.node,
            number: self.counts[self.node.index()],
            time,
            inst,
            low: low[register],
            high: high.get(register).copied().unwrap_or(0),
        });
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        let ty = self.program.function(function).map(|function| function.ty);
        let parameters = ty.map_or(0, |ty| self.program.types[ty].params.len());
        self.variables.enter(by == Caller::Host, parameters);
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.variables.leave();
        if let Some((first, count)) = results {
            self.variables.give(first, count, false);
        }
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        self.variables.give(first, count, true);
    }

    fn host_call(&mut self) {
        self.host_calls += 1;
    }

    fn host_write(&mut self, range: Range) {
        self.written(range);
    }

    fn caught(&mut self, first: u32, count: u32) {
        self.variables.catch(first, count);
    }
}

/// Follows the first `blocks` blocks, until the node with the last block ends.
pub(crate) fn observe(
    subject: &Subject,
    facts: &Facts,
    built: &Built,
    blocks: u64,
) -> Result<Observed> {
    let mut random = Random::new();
    let mut times: Vec<u64> = (0..SAMPLES).map(|_| random.up_to(blocks)).collect();
    times.sort_unstable();
    let mut times = times.into_iter().peekable();
    let mut machine = super::follow::machine(subject)?;
    let mut watcher = Watcher {
        facts,
        program: &subject.program,
        counts: vec![0; facts.nodes.len()],
        variables: Variables::default(),
        memories: Vec::new(),
        host_calls: 0,
        statements: 0,
        node: NodeId::new(0),
        wanted: None,
        random,
        samples: Vec::new(),
    };
    let mut marks = built.epochs.iter().map(|epoch| epoch.before).peekable();
    let mut statements = Vec::new();
    let mut cursor = subject.path.cursor();
    while let Some(visit) = cursor.next()? {
        if visit.start > blocks {
            break;
        }
        while marks.next_if(|&before| before < visit.start).is_some() {
            statements.push(watcher.statements);
        }
        // If a node has no value, the next node supplies the sample.
        while times.next_if(|&time| time <= visit.last()).is_some() {
            watcher.wanted = Some(visit.start);
        }
        if watcher.wanted.is_some() {
            watcher.wanted = Some(visit.start);
        }
        machine.step(visit.node, visit.length, &mut watcher)?;
    }
    statements.push(watcher.statements);
    let memories = machine.state.memories.iter();
    Ok(Observed {
        counts: watcher.counts,
        uses: watcher.variables.uses,
        host_calls: watcher.host_calls,
        guest: memories.map(|memory| memory.bytes.len() as u64).sum(),
        shadow: watcher.memories.iter().map(Pages::shadow).sum(),
        samples: watcher.samples,
        statements,
    })
}
