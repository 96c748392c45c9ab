//! Collects static facts about a node's executions, that is, about its statements, values and
//! operands.

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, PrimaryMap};
use afterimage_machine::{Code, NodeCode, NodeEnd, Operand};
use afterimage_program::BlockEnd;
use afterimage_replay::values::{Kind, Statement, Types};
use afterimage_wet::{ReadFrom, read_from};
use anyhow::{Context, Result};
use rustc_hash::FxHashMap;
use serde::Serialize;
use wasmparser::ValType;

use super::observed::Observed;
use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::subject::Subject;

/// The totals of one or many executions of a node.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Totals {
    /// The number of instructions of the machine, which are operators that compute, read, write or
    /// decide. Constants, moves, calls, returns and jumps do not count.
    pub statements: u64,
    pub blocks: u64,
    pub calls: u64,
    pub returns: u64,
    pub jumps: u64,
    /// Statements that produce a value.
    pub values: u64,
    /// The sum of the true widths of these values, in bytes.
    pub width: u64,
    pub loads: u64,
    pub stores: u64,
    /// Reads of memory and globals with labels in the trace.
    pub reads: u64,
    /// Operands that are results of the same block (OPT-1a).
    pub in_block: u64,
    /// Operands that are results of another block of the node (OPT-2b).
    pub in_node: u64,
    /// Operands that are variables already used as another operand of the node (OPT-2a).
    pub again: u64,
    /// Operands of calls and returns, which are not statements here.
    pub passed: u64,
}

impl Totals {
    /// Returns the number of statements, including calls, returns and jumps.
    pub(crate) fn all_statements(&self) -> u64 {
        self.statements + self.calls + self.returns + self.jumps
    }

    fn add(&mut self, other: &Self, times: u64) {
        for (sum, value) in self.fields_mut().into_iter().zip(other.fields()) {
            *sum += value * times;
        }
    }

    fn fields(mut self) -> [u64; 14] {
        self.fields_mut().map(|field| *field)
    }

    fn fields_mut(&mut self) -> [&mut u64; 14] {
        [
            &mut self.statements,
            &mut self.blocks,
            &mut self.calls,
            &mut self.returns,
            &mut self.jumps,
            &mut self.values,
            &mut self.width,
            &mut self.loads,
            &mut self.stores,
            &mut self.reads,
            &mut self.in_block,
            &mut self.in_node,
            &mut self.again,
            &mut self.passed,
        ]
    }
}

/// Facts about a node.
#[derive(Debug, Default)]
pub(crate) struct OfNode {
    pub totals: Totals,
    /// The variables that are operands of the node's statements, without duplicates.
    pub asked: Vec<u32>,
    /// The positions of the instructions that produce a value.
    pub giving: Vec<u32>,
    /// For each instruction, the number of its operator among the program's operators that access
    /// memory; 0 for others.
    pub accesses: Vec<u32>,
}

/// Facts about all nodes.
pub(crate) struct Facts {
    pub nodes: PrimaryMap<NodeId, OfNode>,
    /// The number of operators that access memory, plus one.
    pub accesses: usize,
}

impl Facts {
    pub(crate) fn of(subject: &Subject) -> Result<Self> {
        let machine = super::follow::machine(subject)?;
        let types = Types::new(&subject.program, &subject.bytes);
        let mut widths: FxHashMap<(FuncId, OpId), u64> = FxHashMap::default();
        let mut accesses: FxHashMap<(FuncId, OpId), u32> = FxHashMap::default();
        let mut nodes = PrimaryMap::new();
        for (node, code) in machine.codes().iter() {
            let mut of = of_node(subject, code)?;
            let blocks = &subject.path.nodes()[node].blocks;
            of.totals.blocks = blocks.len() as u64;
            if let Some(function) = subject.program.function(code.function) {
                let ends = blocks.iter().map(|&block| function.cfg.blocks[block].end);
                of.totals.jumps = ends.filter(|&end| end == BlockEnd::Jump).count() as u64;
            }
            for &giving in &of.giving {
                let op = code.insts[giving as usize].op;
                let width = widths.entry((code.function, op)).or_insert_with(|| {
                    let types = types.of(code.function, op);
                    width(types.and_then(|(_, results)| results.first().copied()))
                });
                of.totals.width += *width;
            }
            for inst in &code.insts {
                let next = accesses.len() as u32 + 1;
                of.accesses.push(match inst.code {
                    Code::Load(_) | Code::LoadVector(_) | Code::Store(_) | Code::StoreVector(_) => {
                        *accesses.entry((code.function, inst.op)).or_insert(next)
                    }
                    _ => 0,
                });
            }
            nodes.push(of);
        }
        Ok(Self {
            nodes,
            accesses: accesses.len() + 1,
        })
    }

    /// Returns the totals of the observed run.
    pub(crate) fn totals(&self, observed: &Observed) -> Totals {
        let mut totals = Totals::default();
        for (node, of) in self.nodes.iter() {
            totals.add(&of.totals, observed.counts[node.index()]);
        }
        totals
    }
}

fn of_node(subject: &Subject, code: &NodeCode) -> Result<OfNode> {
    let function = subject.program.function(code.function);
    let function = function.context("the function of a node is not in the program")?;
    let mut of = OfNode::default();
    let totals = &mut of.totals;
    totals.statements = code.insts.len() as u64;
    for (position, inst) in code.insts.iter().enumerate() {
        if let Some(ReadFrom::Memory | ReadFrom::Global) = read_from(inst.code) {
            totals.reads += 1;
        }
        if inst.code.gives() {
            of.giving.push(position as u32);
        }
        match inst.code {
            Code::Load(_) | Code::LoadVector(_) => {
                totals.loads += 1;
            }
            Code::Store(_) | Code::StoreVector(_) => totals.stores += 1,
            _ => {}
        }
        let statement = Statement {
            kind: Kind::Inst(position),
            block: 0,
        };
        let block = function.block_of(inst.op);
        for operand in statement.operands(code) {
            match code.source(operand.register) {
                Operand::Constant(_) => {}
                Operand::Result(made) => {
                    if function.block_of(code.insts[made].op) == block {
                        totals.in_block += 1;
                    } else {
                        totals.in_node += 1;
                    }
                }
                Operand::Variable(variable) if of.asked.contains(&variable) => totals.again += 1,
                Operand::Variable(variable) => of.asked.push(variable),
            }
        }
    }
    totals.values = of.giving.len() as u64;
    let passed = match &code.end {
        NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => {
            totals.calls = 1;
            &arguments[..]
        }
        NodeEnd::Return(values) => {
            totals.returns = 1;
            &values[..]
        }
        _ => &[],
    };
    let constant = |&&register: &&u32| matches!(code.source(register), Operand::Constant(_));
    totals.passed = (passed.len() - passed.iter().filter(constant).count()) as u64;
    Ok(of)
}

/// Returns the number of bytes of a value.
fn width(ty: Option<ValType>) -> u64 {
    match ty {
        Some(ValType::V128) => 16,
        Some(ValType::I64 | ValType::F64) => 8,
        _ => 4,
    }
}

pub(crate) fn report(rows: &[Row]) -> String {
    let per = |title: &str, of: fn(&Totals) -> u64| {
        Column::fact(title, 3, move |row: &Row| {
            of(&row.facts) as f64 / row.statements()
        })
    };
    table(
        "The executed program. A statement is an instruction of the machine: an operator that computes, reads, writes or decides. Calls, returns and jumps are statements by the wider definition. The columns from `values` on are per statement; width: the mean width of a value in bytes",
        rows,
        name,
        &[
            Column::fact("Mstatements", 1, |row: &Row| row.statements() / 1e6),
            Column::fact("M wider", 1, |row: &Row| {
                row.facts.all_statements() as f64 / 1e6
            }),
            per("values", |t| t.values),
            Column::fact("width", 2, |row: &Row| {
                row.facts.width as f64 / row.facts.values as f64
            }),
            per("loads", |t| t.loads),
            per("stores", |t| t.stores),
            per("blocks", |t| t.blocks),
            per("calls", |t| t.calls),
            per("returns", |t| t.returns),
            per("jumps", |t| t.jumps),
            Column::fact("data dependences", 3, |row: &Row| {
                row.dependences.data() as f64 / row.statements()
            }),
        ],
    )
}
