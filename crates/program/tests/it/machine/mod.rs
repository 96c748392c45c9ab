//! Runs a function on tokens instead of numbers, with random branches, and follows the same run on
//! the values of `Ssa`. Both must see the same tokens.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, OpId, TypeId, ValueId};
use afterimage_program::{EdgeKind, Function, Program, Ssa, ValueDef};
use afterimage_testkit::modules::SplitMix64;
use wasmparser::{BlockType, Catch, Operator};

/// The identity of a value in a run, as the place and time of its creation.
type Token = (String, u64);

/// A frame of the control stack of a running machine.
struct Frame {
    height: usize,
    /// The number of values that a branch to the frame carries.
    arity: usize,
    /// The place where a branch to the frame continues.
    target: Target,
    try_table: Option<usize>,
}

#[derive(Clone, Copy)]
enum Target {
    After(usize),
    Loop(usize),
    Return,
}

pub struct Machine<'a> {
    program: &'a Program,
    function: &'a Function,
    ssa: &'a Ssa,
    ops: Vec<Operator<'a>>,
    /// The `end` of each opener, and the `else` of each `if`.
    end: HashMap<usize, usize>,
    otherwise: HashMap<usize, usize>,
    locals: Vec<Token>,
    stack: Vec<Token>,
    frames: Vec<Frame>,
    /// The current value of each value of `ssa`.
    env: HashMap<ValueId, Token>,
    block: BlockId,
    /// The last edge that was followed.
    came_by: Option<EdgeId>,
    clock: u64,
    compared: usize,
}

/// Runs a number of operators of a function, and returns the number of operands compared.
pub fn walk(
    program: &Program,
    bytes: &[u8],
    function: &Function,
    ssa: &Ssa,
    random: &mut SplitMix64,
) -> Result<usize, String> {
    let mut machine = Machine::new(program, bytes, function, ssa);
    let mut at = 0;
    for _ in 0..2000 {
        match machine.step(at, random)? {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(machine.compared)
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, bytes: &'a [u8], function: &'a Function, ssa: &'a Ssa) -> Self {
        let ops: Vec<_> = program
            .operators(bytes, function)
            .map(|(_, _, op)| op)
            .collect();
        let (mut end, mut otherwise, mut open) = (HashMap::new(), HashMap::new(), vec![]);
        for (i, op) in ops.iter().enumerate() {
            match op {
                Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::TryTable { .. } => open.push(i),
                Operator::Else => {
                    otherwise.insert(*open.last().unwrap(), i);
                }
                Operator::End => {
                    if let Some(opener) = open.pop() {
                        end.insert(opener, i);
                    }
                }
                _ => {}
            }
        }
        let token = |i: u32| (format!("local {i}"), 0);
        let mut env = HashMap::new();
        for (id, value) in &ssa.values {
            if let ValueDef::Param(i) | ValueDef::Initial(i) = value.def {
                env.insert(id, token(i));
            }
        }
        let used = ops.iter().filter_map(|op| match op {
            Operator::LocalGet { local_index }
            | Operator::LocalSet { local_index }
            | Operator::LocalTee { local_index } => Some(*local_index),
            _ => None,
        });
        let count = used.max().map_or(0, |max| max + 1);
        let results = program.types[function.ty].results.len();
        Self {
            program,
            function,
            ssa,
            ops,
            end,
            otherwise,
            locals: (0..count).map(token).collect(),
            stack: vec![],
            frames: vec![Frame {
                height: 0,
                arity: results,
                target: Target::Return,
                try_table: None,
            }],
            env,
            block: function.cfg.graph.root(),
            came_by: None,
            clock: 0,
            compared: 0,
        }
    }

    /// Runs one operator and returns the next one's position.
    fn step(&mut self, at: usize, random: &mut SplitMix64) -> Result<Option<usize>, String> {
        self.clock += 1;
        let op = OpId::from_u32(at as u32);
        let operator = self.ops[at].clone();
        let marker = matches!(
            operator,
            Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::TryTable { .. }
                | Operator::Else
                | Operator::End
        );
        if !marker {
            self.arrive(op)?;
        }
        let statement = self.ssa.statement_at(op);
        match &operator {
            Operator::Block { blockty } => self.open(*blockty, Target::After(at), None),
            Operator::Loop { blockty } => self.open(*blockty, Target::Loop(at), None),
            Operator::TryTable { try_table } => {
                self.open(try_table.ty, Target::After(at), Some(at));
            }
            // This is the end of the then-arm.
            Operator::Else => return self.branch(0).map(Some),
            Operator::End => {
                self.frames.pop();
                if self.frames.is_empty() {
                    return self.returns(EdgeKind::Fall);
                }
            }
            Operator::If { blockty } => {
                let condition = self.stack.pop();
                self.operands(statement, condition)?;
                self.open(*blockty, Target::After(at), None);
                if random.below(2) == 0 {
                    self.leave(EdgeKind::Else, op);
                    let end = self.end[&at];
                    return Ok(Some(self.otherwise.get(&at).map_or(end, |other| other + 1)));
                }
                self.leave(EdgeKind::Then, op);
            }
            Operator::Br { relative_depth } => {
                self.operands(statement, [])?;
                return self.take_branch(EdgeKind::Jump, op, *relative_depth);
            }
            Operator::BrIf { relative_depth } => {
                let condition = self.stack.pop();
                self.operands(statement, condition)?;
                if random.below(2) == 0 {
                    return self.take_branch(EdgeKind::Taken, op, *relative_depth);
                }
                self.leave(EdgeKind::NotTaken, op);
            }
            Operator::BrTable { targets } => {
                let index = self.stack.pop();
                self.operands(statement, index)?;
                let mut depths: Vec<u32> = targets.targets().map(Result::unwrap).collect();
                depths.push(targets.default());
                let depth = depths[random.below(depths.len())];
                return self.take_branch(EdgeKind::Table(depth), op, depth);
            }
            Operator::Return => {
                let results = self.results();
                self.operands(statement, results)?;
                return self.returns(EdgeKind::Return);
            }
            Operator::Unreachable => {
                self.operands(statement, [])?;
                return Ok(None);
            }
            Operator::Throw { tag_index } => {
                let ty = &self.program.types[self.program.tags[*tag_index as usize]];
                let carried = self.popn(ty.params.len());
                self.operands(statement, carried)?;
                return self.raise(EdgeKind::Throw, op, random);
            }
            Operator::ThrowRef => {
                let exception = self.stack.pop();
                self.operands(statement, exception)?;
                return self.raise(EdgeKind::Throw, op, random);
            }
            Operator::Call { function_index } => {
                let id = afterimage_ids::FuncId::from_u32(*function_index);
                let import = self.program.imports.get(*function_index as usize);
                let ty = import.map_or_else(|| self.program.function(id).unwrap().ty, |i| i.ty);
                return self.call(at, ty, false, random);
            }
            Operator::CallIndirect { type_index, .. } => {
                return self.call(at, TypeId::from_u32(*type_index), true, random);
            }
            Operator::ReturnCall { .. } | Operator::ReturnCallIndirect { .. } => {
                return Ok(None);
            }
            Operator::Drop => drop(self.stack.pop()),
            Operator::Nop => {}
            Operator::LocalGet { local_index } => {
                self.stack.push(self.locals[*local_index as usize].clone());
            }
            Operator::LocalSet { local_index } => {
                self.locals[*local_index as usize] = self.stack.pop().unwrap();
            }
            Operator::LocalTee { local_index } => {
                self.locals[*local_index as usize] = self.stack.last().unwrap().clone();
            }
            _ => self.plain(op, statement)?,
        }
        Ok(Some(at + 1))
    }

    /// Runs an operator that only computes. The statement gives its arity. Later operators check
    /// the arity, because they must find the expected stack.
    fn plain(&mut self, op: OpId, statement: Option<afterimage_ids::StmtId>) -> Result<(), String> {
        let Some(statement) = statement else {
            let mut constants = self.ssa.values.iter();
            let found = constants.find(|(_, value)| value.def == ValueDef::Constant(op));
            let (value, _) = found.ok_or_else(|| format!("no constant for {op}"))?;
            let token = (format!("constant {op}"), self.clock);
            self.env.insert(value, token.clone());
            self.stack.push(token);
            return Ok(());
        };
        let operands = self.popn(self.ssa.operands(statement).len());
        self.operands(Some(statement), operands)?;
        self.yields(statement);
        Ok(())
    }

    fn yields(&mut self, statement: afterimage_ids::StmtId) {
        let results = &self.ssa.statements[statement].results;
        for value in results.start.as_u32()..results.end.as_u32() {
            let token = (format!("result {statement} {value}"), self.clock);
            self.env.insert(ValueId::from_u32(value), token.clone());
            self.stack.push(token);
        }
    }

    fn call(
        &mut self,
        at: usize,
        ty: TypeId,
        indirect: bool,
        random: &mut SplitMix64,
    ) -> Result<Option<usize>, String> {
        let op = OpId::from_u32(at as u32);
        let statement = self.ssa.statement_at(op);
        let ty = &self.program.types[ty];
        let arguments = self.popn(ty.params.len() + usize::from(indirect));
        self.operands(statement, arguments)?;
        let may_throw = self.edge(EdgeKind::CallThrow, op).is_some();
        if may_throw && random.below(2) == 0 {
            return self.raise(EdgeKind::CallThrow, op, random);
        }
        let before = self.stack.len();
        self.yields(statement.ok_or("a call is a statement")?);
        if self.stack.len() != before + ty.results.len() {
            return Err(format!("{op} yields {} values", self.stack.len() - before));
        }
        self.leave(EdgeKind::CallReturn, op);
        Ok(Some(at + 1))
    }

    /// Throws an exception, finds its handler, and unwinds the control stack.
    fn raise(
        &mut self,
        kind: EdgeKind,
        op: OpId,
        random: &mut SplitMix64,
    ) -> Result<Option<usize>, String> {
        self.leave(kind, op);
        let tags = self.program.tags.len();
        let tag = random.below(tags + 1) as u32;
        while let Some(frame) = self.frames.pop() {
            let Some(at) = frame.try_table else { continue };
            let Operator::TryTable { try_table } = self.ops[at].clone() else {
                unreachable!()
            };
            let op = OpId::from_u32(at as u32);
            let clause = try_table.catches.iter().position(|catch| match *catch {
                Catch::One { tag: t, .. } | Catch::OneRef { tag: t, .. } => t == tag,
                _ => true,
            });
            let Some(clause) = clause else {
                self.leave(EdgeKind::Unwind, op);
                continue;
            };
            let params = |tag: u32| {
                self.program.types[self.program.tags[tag as usize]]
                    .params
                    .len()
            };
            let (caught, label) = match try_table.catches[clause] {
                Catch::One { tag, label } => (params(tag), label),
                Catch::OneRef { tag, label } => (params(tag) + 1, label),
                Catch::All { label } => (0, label),
                Catch::AllRef { label } => (1, label),
            };
            let kind = EdgeKind::Catch(clause as u32);
            let edge = self
                .edge(kind, op)
                .ok_or_else(|| format!("no edge for {kind:?} of {op}"))?;
            let tokens: Vec<Token> = (0..caught)
                .map(|i| (format!("caught {edge} {i}"), self.clock))
                .collect();
            for (id, value) in &self.ssa.values {
                if let ValueDef::Caught { edge: e, index } = value.def
                    && e == edge
                {
                    self.env.insert(id, tokens[index as usize].clone());
                }
            }
            self.stack.extend(tokens);
            return self.take_branch(kind, op, label);
        }
        Ok(None)
    }

    fn take_branch(
        &mut self,
        kind: EdgeKind,
        op: OpId,
        depth: u32,
    ) -> Result<Option<usize>, String> {
        let frame = self.frames.len() - 1 - depth as usize;
        if let Target::Return = self.frames[frame].target {
            return self.returns_over(self.edge(kind, op));
        }
        self.leave(kind, op);
        self.branch(depth).map(Some)
    }

    /// Moves the values that a branch carries, and continues at the label.
    fn branch(&mut self, depth: u32) -> Result<usize, String> {
        let index = self.frames.len() - 1 - depth as usize;
        let (height, arity, target) = {
            let frame = &self.frames[index];
            (frame.height, frame.arity, frame.target)
        };
        let carried = self.popn(arity);
        self.stack.truncate(height);
        self.stack.extend(carried);
        self.frames.truncate(index + 1);
        Ok(match target {
            // `end` pops the frame.
            Target::After(opener) => self.end[&opener],
            Target::Loop(opener) => opener + 1,
            Target::Return => self.ops.len() - 1,
        })
    }

    fn open(&mut self, ty: BlockType, target: Target, try_table: Option<usize>) {
        let (params, results) = match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(ty) => {
                let ty = &self.program.types[TypeId::from_u32(ty)];
                (ty.params.len(), ty.results.len())
            }
        };
        let arity = if let Target::Loop(_) = target {
            params
        } else {
            results
        };
        self.frames.push(Frame {
            height: self.stack.len() - params,
            arity,
            target,
            try_table,
        });
    }

    fn popn(&mut self, count: usize) -> Vec<Token> {
        self.stack.split_off(self.stack.len() - count)
    }

    fn results(&self) -> Vec<Token> {
        let count = self.program.types[self.function.ty].results.len();
        self.stack[self.stack.len() - count..].to_vec()
    }

    /// Runs a `return`, or the function's last `end`. At the last `end`, control may already be at
    /// EXIT, if there was no operator on the way.
    fn returns(&mut self, kind: EdgeKind) -> Result<Option<usize>, String> {
        let cfg = &self.function.cfg;
        let exit = cfg.graph.exit();
        if self.block == exit {
            return self.returns_over(self.came_by);
        }
        let mut out = cfg.graph.out_edges(self.block).iter().copied();
        let edge = out.find(|&e| cfg.edges[e].kind == kind && cfg.edges[e].to == exit);
        self.returns_over(edge)
    }

    fn returns_over(&mut self, edge: Option<EdgeId>) -> Result<Option<usize>, String> {
        let edge = edge.ok_or("no edge to EXIT")?;
        self.compare(
            self.ssa.returned(edge),
            &self.results(),
            &format!("returned over {edge}"),
        )?;
        Ok(None)
    }

    fn edge(&self, kind: EdgeKind, op: OpId) -> Option<EdgeId> {
        let cfg = &self.function.cfg;
        let mut edges = cfg.edges.iter();
        let found = edges.find(|(_, e)| e.from == self.block && e.kind == kind && e.op == Some(op));
        found.map(|(id, _)| id)
    }

    /// Follows an edge, where all φs take their values at once.
    fn follow(&mut self, edge: EdgeId) {
        let cfg = &self.function.cfg;
        let to = cfg.graph.to(edge);
        let position = cfg
            .graph
            .in_edges(to)
            .iter()
            .position(|&e| e == edge)
            .unwrap();
        let values: Vec<_> = self
            .ssa
            .phis(to)
            .iter()
            .map(|phi| (phi.value, self.env.get(&phi.operands[position]).cloned()))
            .collect();
        for (value, token) in values {
            self.env
                .insert(value, token.unwrap_or_else(|| ("undefined".into(), 0)));
        }
        (self.block, self.came_by) = (to, Some(edge));
    }

    fn leave(&mut self, kind: EdgeKind, op: OpId) {
        let edge = self
            .edge(kind, op)
            .unwrap_or_else(|| panic!("no edge {kind:?} of {op}"));
        self.follow(edge);
    }

    /// Falls into the operator's block, if control is not there already.
    fn arrive(&mut self, op: OpId) -> Result<(), String> {
        let block = self
            .function
            .block_of(op)
            .ok_or_else(|| format!("{op} is in no block"))?;
        let cfg = &self.function.cfg;
        if block != self.block {
            let out = cfg.graph.out_edges(self.block);
            let [edge] = *out else {
                return Err(format!("{} does not lead to {op}", self.block));
            };
            if cfg.edges[edge].kind != EdgeKind::Fall || cfg.edges[edge].to != block {
                return Err(format!("{edge} does not lead to {op}"));
            }
            self.follow(edge);
        }
        Ok(())
    }

    fn operands(
        &mut self,
        statement: Option<afterimage_ids::StmtId>,
        tokens: impl IntoIterator<Item = Token>,
    ) -> Result<(), String> {
        let statement = statement.ok_or("no statement")?;
        let tokens: Vec<_> = tokens.into_iter().collect();
        self.compare(
            self.ssa.operands(statement),
            &tokens,
            &format!("operands of {statement}"),
        )
    }

    fn compare(&mut self, values: &[ValueId], tokens: &[Token], what: &str) -> Result<(), String> {
        let seen: Vec<_> = values.iter().map(|value| self.env.get(value)).collect();
        let expected: Vec<_> = tokens.iter().map(Some).collect();
        self.compared += values.len();
        if seen == expected {
            return Ok(());
        }
        Err(format!(
            "{what}: {values:?} are {seen:?}, the stack has {expected:?}"
        ))
    }
}
