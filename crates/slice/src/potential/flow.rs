//! Finds the potential dependences of a vertex, which are the dependences that the code allows.

use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_machine::{NodeEnd, Operand, Register, Taker};
use afterimage_program::BlockKind;

use super::Vertex;
use super::index::{Executed, NodePosition, is_dispatch, terminator};
use crate::domain::Why;
use crate::plan::{End, Kind};

type FlowEdges = Vec<(Why, Vertex)>;

impl Executed<'_> {
    /// Appends the vertices that a vertex may depend on directly.
    pub fn dependences(&mut self, vertex: Vertex, found: &mut FlowEdges) {
        let data = |operators: Option<&Vec<_>>, found: &mut FlowEdges| {
            let operators = operators.into_iter().flatten().copied();
            found.extend(operators.map(|operator| (Why::Data, Vertex::Operator(operator))));
        };
        match vertex {
            Vertex::Operator(operator) => {
                let places = self.places.get(&operator).cloned();
                for place in places.unwrap_or_default() {
                    match place.inst {
                        Some(inst) => self.inst(place.node, inst, found),
                        None => self.ended(place, found),
                    }
                }
            }
            Vertex::Variable(function, block, variable) => {
                self.variable(function, block, variable, found);
            }
            Vertex::Control(function, block) => self.decided(function, block, found),
            Vertex::Entry(function) => {
                let calls = self.callers(function).into_iter();
                let calls = calls.filter_map(|node| self.end(node));
                found.extend(calls.map(|call| (Why::Control, Vertex::Operator(call))));
            }
            Vertex::Parameter(function, number) => {
                for node in self.callers(function) {
                    let argument = match &self.nodes[node].plan.end {
                        End::Call { arguments, .. } => arguments.get(number as usize).copied(),
                        _ => None,
                    };
                    if let Some(argument) = argument {
                        let taker = Taker::Given(number);
                        self.value(node, argument, (Why::Data, taker), found);
                    }
                }
            }
            Vertex::Returned(function) => self.returned(function, found),
            Vertex::Memory(memory) => {
                data(self.stores.get(&memory), found);
                let calls = self.of_host.iter().filter_map(|&node| self.end(node));
                found.extend(calls.map(|call| (Why::Data, Vertex::Operator(call))));
            }
            Vertex::Global(global) => data(self.globals.get(&global), found),
            Vertex::Table(table) => data(self.tables.get(&table), found),
            Vertex::Size(memory) => data(self.sizes.get(&memory), found),
            Vertex::Threw => {
                let throws = self.throws.iter().filter_map(|&node| self.end(node));
                found.extend(throws.map(|throw| (Why::Control, Vertex::Operator(throw))));
            }
            Vertex::Thrown => {
                for &node in &self.throws {
                    match &self.nodes[node].plan.end {
                        End::Throw(values) => {
                            for (i, &value) in (0..).zip(values) {
                                self.value(node, value, (Why::Data, Taker::Given(i)), found);
                            }
                        }
                        End::Rethrow(exception) => {
                            self.value(node, *exception, (Why::Data, Taker::Given(0)), found);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Appends the origin of a node's register.
    fn value(
        &self,
        node: usize,
        register: Register,
        (why, taker): (Why, Taker),
        found: &mut FlowEdges,
    ) {
        let one = &self.nodes[node];
        let function = one.plan.function;
        let moved = one.plan.moved(taker).map(|block| one.plan.blocks[block]);
        found.extend(moved.map(|block| (Why::Moved, Vertex::Control(function, block))));
        found.extend(match one.code.source(register) {
            Operand::Constant(_) => None,
            Operand::Variable(variable) => {
                Some((why, Vertex::Variable(function, one.code.first, variable)))
            }
            Operand::Result(inst) => {
                let op = one.plan.ops.get(inst).copied();
                op.map(|op| (why, Vertex::Operator((function, op))))
            }
        });
    }

    fn memories(&self, found: &mut FlowEdges) {
        let all = 0..self.program.memories;
        found.extend(all.map(|memory| (Why::Data, Vertex::Memory(memory))));
    }

    fn inst(&self, node: usize, at: usize, found: &mut FlowEdges) {
        let plan = &self.nodes[node].plan;
        let position = plan.firsts.partition_point(|&first| first as usize <= at);
        if let Some(&block) = plan.blocks.get(position.saturating_sub(1)) {
            found.push((Why::Control, Vertex::Control(plan.function, block)));
        }
        let inst = plan.insts[at];
        let where_to = match inst.kind {
            Kind::Load | Kind::Store | Kind::Many => 1,
            Kind::Copy => 3,
            _ => 0,
        };
        for (number, &operand) in inst.operands().iter().enumerate() {
            let why = if number < where_to {
                Why::Address
            } else {
                Why::Data
            };
            let taker = Taker::Operand(at as u32, number as u8);
            self.value(node, operand, (why, taker), found);
        }
        match inst.kind {
            Kind::Load => found.push((Why::Data, Vertex::Memory(inst.memory.into()))),
            Kind::Copy => self.memories(found),
            Kind::GlobalGet => found.push((Why::Data, Vertex::Global(inst.number))),
            Kind::MemorySize | Kind::MemoryGrow => {
                found.push((Why::Data, Vertex::Size(inst.memory.into())));
            }
            Kind::TableGet | Kind::TableSet | Kind::TableGrow => {
                let tables = [inst.number, inst.other];
                found.extend(tables.map(|table| (Why::Data, Vertex::Table(table))));
            }
            _ => {}
        }
    }

    /// Appends the operands of a node's end.
    fn ended(&self, place: NodePosition, found: &mut FlowEdges) {
        let node = place.node;
        let plan = &self.nodes[node].plan;
        if let Some(&block) = plan.blocks.last() {
            found.push((Why::Control, Vertex::Control(plan.function, block)));
        }
        let (values, more) = match &plan.end {
            End::Next => return,
            End::Call {
                arguments,
                index,
                table,
            } => {
                found.extend(table.map(|table| (Why::Data, Vertex::Table(table))));
                if self.of_host.binary_search(&node).is_ok() {
                    self.memories(found);
                }
                (arguments, *index)
            }
            End::Return(values) | End::Throw(values) => (values, None),
            End::Rethrow(exception) => {
                return self.value(node, *exception, (Why::Data, Taker::Given(0)), found);
            }
        };
        for (i, &value) in (0..).zip(values) {
            self.value(node, value, (Why::Data, Taker::Given(i)), found);
        }
        if let Some(index) = more {
            self.value(node, index, (Why::Data, Taker::Index), found);
        }
    }

    /// Appends the possible values of a variable when control reaches a block where a node begins.
    fn variable(&mut self, function: FuncId, block: BlockId, variable: u32, found: &mut FlowEdges) {
        let Some(known) = self.program.function(function) else {
            return;
        };
        let ty = self.program.types.get(known.ty);
        let parameters = ty.map_or(0, |ty| ty.params.len() as u32);
        // Where the function begins, the variable may be a parameter.
        if block.as_u32() == 0 && variable < parameters {
            found.push((Why::Data, Vertex::Parameter(function, variable)));
        }
        let arrivals = self.arrivals(function, block);
        if arrivals.handles {
            found.push((Why::Data, Vertex::Thrown));
        }
        for &node in &arrivals.nodes {
            self.left(node, variable, found);
        }
    }

    /// Appends the possible values of a variable after a node's execution and its callee's return.
    fn left(&self, node: usize, variable: u32, found: &mut FlowEdges) {
        let one = &self.nodes[node];
        if let NodeEnd::Call { results, .. } = one.code.end {
            let given = results..results + self.results(&one.code.end);
            if given.contains(&variable) {
                self.called(node, found);
                return;
            }
        }
        match one.output(variable) {
            Some(register) => {
                self.value(node, register, (Why::Data, Taker::Output(variable)), found);
            }
            None => {
                let before = Vertex::Variable(one.plan.function, one.code.first, variable);
                found.push((Why::Data, before));
            }
        }
    }

    /// Appends the possible results of the call at a node's end.
    fn called(&self, node: usize, found: &mut FlowEdges) {
        let callees = self.callees(&self.nodes[node].code.end).into_iter();
        found.extend(callees.map(|callee| (Why::Data, Vertex::Returned(callee))));
        if self.of_host.binary_search(&node).is_ok()
            && let Some(call) = self.end(node)
        {
            found.push((Why::Data, Vertex::Operator(call)));
        }
    }

    fn returned(&mut self, function: FuncId, found: &mut FlowEdges) {
        let Some(known) = self.program.function(function) else {
            return;
        };
        let ty = self.program.types.get(known.ty);
        let returns = ty.map_or(0, |ty| ty.results.len() as u32);
        let mut blocks = known.cfg.blocks.values();
        if blocks.any(|block| matches!(block.kind, BlockKind::Dispatch(Some(_)))) {
            // The handler may be the label of the function itself.
            found.push((Why::Data, Vertex::Thrown));
        }
        let nodes = self.of_function.get(&function);
        for &node in nodes.into_iter().flatten() {
            let one = &self.nodes[node];
            match &one.plan.end {
                End::Return(values) => {
                    for (i, &value) in (0..).zip(values) {
                        self.value(node, value, (Why::Data, Taker::Given(i)), found);
                    }
                }
                End::Call { .. } if one.code.next.is_none() => {
                    self.called(node, found);
                    if let NodeEnd::Call { results, .. } = one.code.end {
                        let top = results + self.results(&one.code.end);
                        for variable in top.saturating_sub(returns)..results {
                            self.left(node, variable, found);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Appends the vertices that decide whether a block is executed or a dispatch is reached.
    fn decided(&mut self, function: FuncId, block: BlockId, found: &mut FlowEdges) {
        found.push((Why::Control, Vertex::Entry(function)));
        let Some((control, cfg)) = self.control(function) else {
            return;
        };
        let edges = control.controllers(block).iter();
        let edges = edges.map(|&edge| (cfg.graph.from(edge), cfg.graph.to(edge)));
        let edges: Vec<(BlockId, BlockId)> = edges.collect();
        let mut ends: Vec<OpId> = Vec::new();
        for (from, to) in edges {
            found.push((Why::Control, Vertex::Control(function, from)));
            if is_dispatch(cfg, from) || is_dispatch(cfg, to) {
                found.push((Why::Control, Vertex::Threw));
            }
            if !is_dispatch(cfg, from) {
                ends.extend(terminator(cfg, from));
            }
        }
        for op in ends {
            if self.has((function, op)) {
                found.push((Why::Control, Vertex::Operator((function, op))));
            }
        }
    }
}
