//! Hashes everything that a run computes into three 128-bit numbers.
//!
//! In functions with replaced operators, a register may mean different things in the two modules.
//! So the steps of the operators are hashed instead of the registers. The result does not depend on
//! how the path is cut into nodes, which may differ between two recordings. Blocks, values and
//! accesses are hashed separately, each in the order of the run. If two runs have equal numbers
//! after the same block, they acted equally up to that block, unless two 128-bit hashes collide.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_machine::{GlobalBits, NodeCode, Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::{Node, Segments, Visit};
use wasmparser::ValType;

use super::{DiffError, Side};
use afterimage_replay::steps::{Plan, PlanKind, Plans, Step, Steps, Wanted, What};

/// A sequence of numbers, folded into two independent polynomials over its mixed elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sequence(u64, u64);

impl Sequence {
    #[inline(always)]
    fn add(&mut self, element: u64) {
        // Makes zeros count, although `mix` maps 0 to 0.
        let mixed = mix(element.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.0 = self
            .0
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(mixed);
        self.1 = (self.1 ^ mixed.rotate_left(32))
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .rotate_left(29);
    }
}

/// Applies the finalizer of splitmix64 (Steele, Lea and Flood 2014), a bijection.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The numbers folded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Folded {
    blocks: Sequence,
    values: Sequence,
    accesses: Sequence,
}

/// A register to fold after the instruction that writes it.
#[derive(Clone, Copy, Debug)]
struct FoldedRegister {
    inst: u32,
    register: u32,
    /// Whether the register contains a vector.
    wide: bool,
}

/// The registers to fold when a node is executed. They contain results, and the operands of
/// instructions without results.
#[derive(Debug, Default)]
struct Template {
    blocks: Vec<u64>,
    told: Vec<FoldedRegister>,
}

impl Template {
    fn new(node: &Node, code: &NodeCode, plan: &Plan) -> Self {
        let function = u64::from(node.function.as_u32()) << 32;
        let blocks = node.blocks.iter();
        let blocks = blocks.map(|block| function | u64::from(block.as_u32()));
        let mut told = Vec::new();
        for item in &plan.items {
            let PlanKind::Inst(at) = item.kind else {
                continue;
            };
            let inst = at as u32;
            let known = &code.insts[at];
            if known.code.gives() {
                told.push(FoldedRegister {
                    inst,
                    register: code.first_result() + inst,
                    wide: item.result() == Some(ValType::V128),
                });
                continue;
            }
            let registers = [known.a, known.b, known.c];
            let operands = registers.into_iter().take(known.code.operands());
            told.extend(
                operands
                    .enumerate()
                    .map(|(index, register)| FoldedRegister {
                        inst,
                        register,
                        wide: item.operand(index) == Some(ValType::V128),
                    }),
            );
        }
        Self {
            blocks: blocks.collect(),
            told,
        }
    }
}

#[derive(Default)]
struct Folder {
    folded: Folded,
    template: Rc<Template>,
    written: Vec<Range>,
    /// Whether the host reads the bytes reported next.
    reads: bool,
}

impl Folder {
    #[inline(always)]
    fn registers(&mut self, executed: usize, low: &[u64], high: &[u64]) {
        for told in &self.template.told {
            if told.inst as usize >= executed {
                break;
            }
            self.folded.values.add(low[told.register as usize]);
            if told.wide {
                let high = high.get(told.register as usize).copied();
                self.folded.values.add(high.unwrap_or(0));
            }
        }
    }

    #[inline(always)]
    fn access(&mut self, range: Range) {
        self.folded.accesses.add(range.address);
        self.folded
            .accesses
            .add(range.length << 8 | u64::from(range.memory));
    }

    fn bytes_of(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.folded.values.add(u64::from_le_bytes(word));
        }
    }

    fn step(&mut self, step: &Step) {
        let mut hasher = DefaultHasher::new();
        step.hash(&mut hasher);
        self.folded.values.add(hasher.finish());
    }

    fn bits(&mut self, values: &[GlobalBits]) {
        for &(low, _) in values {
            self.folded.values.add(low);
        }
    }
}

impl Observer for Folder {
    fn read(&mut self, _: usize, range: Range) {
        self.access(range);
    }

    fn write(&mut self, _: usize, range: Range) {
        self.access(range);
    }

    fn copy(&mut self, _: usize, from: Range, to: Range) {
        self.access(from);
        self.access(to);
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.registers(code.insts.len(), low, high);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.registers(executed, low, high);
    }

    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        self.folded.blocks.add(!u64::from(function.as_u32()));
        self.bits(arguments);
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        self.bits(values);
    }

    fn host_read(&mut self, range: Range) {
        self.access(range);
        self.reads = true;
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.reads) {
            self.bytes_of(bytes);
        }
    }

    fn host_write(&mut self, range: Range) {
        self.access(range);
        self.written.push(range);
    }
}

/// The state of a run while it is hashed.
pub(super) struct Folding<'a, S: Segments> {
    steps: Steps<'a, S>,
    /// The functions for which the steps of operators are folded.
    stepped: &'a HashSet<FuncId>,
    plans: Plans<'a, S>,
    templates: Vec<Option<Rc<Template>>>,
    nodes: &'a afterimage_ids::PrimaryMap<afterimage_ids::NodeId, Node>,
    folder: Folder,
}

impl<'a, S: Segments> Folding<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    pub fn new(
        side: Side<'a, S>,
        log: LogReader,
        stepped: &'a HashSet<FuncId>,
    ) -> Result<Self, DiffError<S::Error>> {
        let nodes = side.run.path.nodes();
        Ok(Self {
            steps: Steps::before(side.run, log, Wanted::ALL)?,
            stepped,
            plans: Plans::new(side.run),
            templates: vec![None; nodes.len()],
            nodes,
            folder: Folder::default(),
        })
    }

    /// Returns the number of executed blocks.
    pub fn time(&self) -> u64 {
        self.steps.follower.machine.time()
    }

    pub fn folded(&self) -> Folded {
        self.folder.folded
    }

    /// Executes the next node. Returns `false` at the end.
    pub fn advance(&mut self) -> Result<bool, DiffError<S::Error>> {
        let Some(visit) = self.steps.follower.advance()? else {
            return Ok(false);
        };
        self.folder.template = self.template(visit)?;
        for at in 0..self.folder.template.blocks.len() {
            let block = self.folder.template.blocks[at];
            self.folder.folded.blocks.add(block);
        }
        if self.stepped.contains(&self.nodes[visit.node].function) {
            self.steps.execute(visit)?;
            for step in self.steps.taken() {
                self.folder.step(&step);
                if let What::HostRead(_, range) | What::HostWrite(_, range) = step.what {
                    self.folder.written.push(range);
                }
            }
        } else {
            let follower = &mut self.steps.follower;
            follower.execute(visit, &mut self.folder)?;
            if let Some(trap) = follower.machine.trap() {
                let text = trap.to_string();
                let bytes = text.bytes().map(u64::from);
                bytes.for_each(|byte| self.folder.folded.values.add(byte));
            }
        }
        for range in std::mem::take(&mut self.folder.written) {
            let memory = &self.steps.follower.machine.state.memories[range.memory as usize];
            let place = memory.range(range.address, range.length);
            let bytes = place.ok().and_then(|place| memory.bytes.get(place));
            self.folder.bytes_of(bytes.unwrap_or_default());
        }
        Ok(true)
    }

    fn template(&mut self, visit: Visit) -> Result<Rc<Template>, DiffError<S::Error>> {
        if let Some(Some(known)) = self.templates.get(visit.node.index()) {
            return Ok(Rc::clone(known));
        }
        let plan = self.plans.of(visit.node, &self.steps.follower)?;
        let code = &self.steps.follower.machine.codes()[visit.node];
        let template = Rc::new(Template::new(&self.nodes[visit.node], code, &plan));
        self.templates[visit.node.index()] = Some(Rc::clone(&template));
        Ok(template)
    }
}

#[cfg(test)]
mod tests {
    use super::Sequence;

    fn fold(elements: &[u64]) -> Sequence {
        let mut sequence = Sequence::default();
        elements.iter().for_each(|&element| sequence.add(element));
        sequence
    }

    #[test]
    fn the_order_of_elements_matters_in_both_lanes() {
        let (ab, ba) = (fold(&[3, 5]), fold(&[5, 3]));
        assert_ne!(ab.0, ba.0);
        assert_ne!(ab.1, ba.1);
    }

    #[test]
    fn a_change_stays_visible() {
        let mut elements: Vec<u64> = (0..1000).collect();
        let before = fold(&elements);
        elements[17] ^= 1;
        let after = fold(&elements);
        assert_ne!(before.0, after.0);
        assert_ne!(before.1, after.1);
    }
}
