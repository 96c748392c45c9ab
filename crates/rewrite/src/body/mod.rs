//! Rewrites one function body.
//!
//! Operators are copied byte for byte wherever nothing has to change, which is nearly everywhere.
//! The copied stretches form the offset map. New code appears between them:
//!
//! ```wat
//! ;; a probe on the taken edge of `br_if $l` that carries a value
//! (if (param i32) (result i32) (then PROBE (br $l)))
//!
//! ;; on one target of `br_table $a $b`
//! (block $land (param i32) (br_table $land $b))  PROBE (br $a)
//!
//! ;; when an exception leaves a call
//! (block $done (result i32)
//!   (block $land (result exnref)
//!     (try_table (result i32) (catch_all_ref $land) (call $f))
//!     (br $done))
//!   PROBE (throw_ref))
//! ```
//! Probes leave the operand stack unchanged, use only added locals, and touch only their own
//! memory.

mod branches;
mod probes;

use std::ops::Range;

use afterimage_ids::{EntityRef, OpId, OrigOffset};
use afterimage_program::{Effect, Function, Program};
use wasm_encoder::{BlockType, Catch, Encode, Instruction, MemArg};
use wasmparser::{FunctionBody, Operator, RefType, ValType};

use crate::RewriteError;
use crate::actions::{Action, Actions, Step};
use crate::captures::{Capture, Captures};
use crate::carry::Carriers;
use crate::hinges::Hinges;
use crate::layout::{Layout, MARK_AT};
use crate::map::{BodyMap, OriginalPlace, Run};
use crate::marks::Marks;
use crate::path_probes::PathPlaces;
use crate::shared::SharedLocals;
use crate::types::{TypePool, val_type};

/// The state shared by all bodies of a module.
pub(crate) struct Context<'a> {
    pub program: &'a Program,
    pub bytes: &'a [u8],
    pub types: &'a mut TypePool,
    /// The types of the tags, as indices of function types.
    pub tags: &'a [u32],
    /// For each table, whether its index is 64 bits wide.
    pub tables64: &'a [bool],
    pub layout: Layout,
    /// The index of the probes' memory.
    pub memory: u32,
    /// Whether the module is for other engines. Direct calls to imports then set and clear a flag
    /// that means "inside a host call".
    pub external: bool,
    /// The module's globals for path probes, if it has any.
    pub path_places: Option<PathPlaces>,
    /// Whether the function being rewritten keeps no part of its path in a local, so that a trap in
    /// it loses nothing.
    pub path_in_memory: bool,
    /// The number of branches between two hinges, if the function being rewritten gets hinges.
    pub hinges: Option<u32>,
    /// The locals that replace the values carried by labels of the function being rewritten.
    pub carriers: Option<Carriers>,
    /// The type of the function that takes snapshots, and its table, if snapshots are taken.
    pub snapshots: Option<(u32, u32)>,
    /// Whether the guest itself must report that a half of the ring is full, because no fault does.
    pub tells_full: bool,
    /// The definitions for captures. They are present if activations capture themselves.
    pub captures: Option<Captures>,
    /// The range of offsets in which the engine must not merge a load with the operator that uses
    /// its value.
    pub apart: Option<Range<OrigOffset>>,
    /// The place of the marks, if writes are marked.
    pub marks: Option<Marks>,
}

/// Rewrites a body. Returns the new body, without its size prefix, and its map.
pub(crate) fn rewrite_body(
    context: &mut Context<'_>,
    function: &Function,
    actions: &Actions,
) -> Result<(Vec<u8>, BodyMap), RewriteError> {
    let range = function.body.start.0 as usize..function.body.end.0 as usize;
    let bytes = context.bytes;
    let body = FunctionBody::new(wasmparser::BinaryReader::new(
        bytes.get(range.clone()).unwrap_or_default(),
        range.start,
    ));
    let reshaped = context.hinges.is_some() || context.carriers.is_some();
    let mut writer = Writer {
        out: Vec::with_capacity(range.len() + range.len() / 8 + 64),
        map: BodyMap::default(),
        scratch: 0,
        polls: 0,
        path: 0,
        hinges: context.hinges.map(Hinges::new),
        carriers: context.carriers.take(),
        capture: match &mut context.captures {
            Some(captures) if !reshaped => {
                Capture::of(context.program, bytes, captures, function, actions)?
            }
            _ => None,
        },
        written: match &context.marks {
            Some(marks) => marks.locals(&body)?,
            None => SharedLocals::default(),
        },
        frames: Vec::new(),
        results: context.types.get(function.ty.index() as u32).1.to_vec(),
        context,
    };
    let needs = Needs::of(actions);
    writer.locals(&body, function, &needs)?;
    let mut reader = body.get_binary_reader();
    skip_locals(&mut reader)?;

    writer.frames.push(Frame::new(None));
    let wrapped = !actions.unwind.is_empty();
    if wrapped {
        writer.open_unwind_wrapper()?;
    }
    writer.begin_captures();
    writer.steps(&actions.entry);

    let mut pending = actions.at.iter().peekable();
    let empty = Action::default();
    let mut operators = wasmparser::OperatorsReader::new(reader);
    let mut op = 0u32;
    while !operators.eof() {
        let (operator, start) = operators.read_with_offset()?;
        let end = operators.original_position();
        let id = OpId::from_u32(op);
        let action = match pending.peek() {
            Some((at, _)) if **at == id => pending.next().map_or(&empty, |(_, a)| a),
            _ => &empty,
        };
        writer.hinge(&operator);
        writer.operator(
            &operator,
            start..end,
            action,
            operators.eof().then_some(actions),
        )?;
        op += 1;
    }
    within(function, "bytes of code", writer.out.len(), 7_654_321)?;
    Ok((writer.out, writer.map))
}

/// Refuses a function that exceeds a limit shared by all engines (WebAssembly JavaScript Interface,
/// "Limits").
fn within(
    function: &Function,
    what: &'static str,
    found: usize,
    most: usize,
) -> Result<(), RewriteError> {
    let function = function.id.as_u32();
    (found <= most).then_some(()).ok_or(RewriteError::Limit {
        function,
        what,
        found,
        most,
    })
}

/// The locals that the steps of a function need.
#[derive(Default)]
struct Needs {
    poll: bool,
    loop_poll: bool,
    path: bool,
}

impl Needs {
    fn of(actions: &Actions) -> Self {
        let mut needs = Self::default();
        let mut see = |steps: &[Step]| {
            for step in steps {
                match step {
                    Step::Poll(_) => needs.poll = true,
                    Step::LoopPoll(_) => (needs.poll, needs.loop_poll) = (true, true),
                    Step::LoopSnapshot(_) => needs.loop_poll = true,
                    Step::Path(_) => needs.path = true,
                    Step::Snapshot(_) | Step::Count(_) | Step::Armed(_) | Step::Mark => {}
                }
            }
        };
        see(&actions.entry);
        see(&actions.unwind);
        for action in actions.at.values() {
            let lists = [&action.before, &action.after, &action.taken];
            let more = [&action.otherwise, &action.throw, &action.unwind];
            let keyed = action
                .table
                .values()
                .chain(action.catch.iter().map(|(_, steps)| steps));
            for steps in lists.into_iter().chain(more).chain(keyed) {
                see(steps);
            }
        }
        needs
    }
}

/// An open block of the original, and the number of added blocks opened just outside it.
#[derive(Clone, Debug)]
struct Frame {
    /// The block's type, or `None` for the function itself.
    ty: Option<wasmparser::BlockType>,
    is_loop: bool,
    extra: u32,
    /// The types of the values that enter the block through locals, and of the values that leave it
    /// through locals. Each list has either all of the values or none.
    through: (Vec<ValType>, Vec<ValType>),
    /// The sum of `extra` of this block and of the blocks around it.
    extras: u32,
    /// The steps at the beginning of the else-arm, if this is an `if`.
    otherwise: Vec<Step>,
    /// Whether this is an `if` without an `else` so far.
    is_if: bool,
    /// The code after the end of a `try_table` with probes on its handlers.
    landings: Option<Landings>,
    /// The number of added blocks just inside the function's own block.
    inside: u32,
}

impl Frame {
    fn new(ty: Option<wasmparser::BlockType>) -> Self {
        Self {
            ty,
            is_loop: false,
            extra: 0,
            through: Default::default(),
            extras: 0,
            otherwise: Vec::new(),
            is_if: false,
            landings: None,
            inside: 0,
        }
    }
}

/// The blocks around a `try_table` that contain the probes of its handlers. The outermost block is
/// closed last.
#[derive(Clone, Debug, Default)]
struct Landings {
    /// The landings, from the innermost block outwards. Each has the steps, and the label at which
    /// to continue or `None` to rethrow. Labels are numbered as outside all of these blocks.
    blocks: Vec<(Vec<Step>, Option<u32>)>,
}

pub(crate) struct Writer<'a, 'b> {
    pub(crate) context: &'a mut Context<'b>,
    pub(crate) out: Vec<u8>,
    pub(crate) map: BodyMap,
    /// The local of type i64 for polls.
    scratch: u32,
    /// The local of type i32 that counts loop iterations.
    polls: u32,
    /// The local of type i64 for the pending bits of the path.
    path: u32,
    /// Decides where hinges go. It is present if the function gets hinges.
    pub(crate) hinges: Option<Hinges>,
    /// The locals for values carried by labels. They are present if these values go through locals.
    pub(crate) carriers: Option<Carriers>,
    /// The captures of the function. They are present if activations capture themselves.
    pub(crate) capture: Option<Capture>,
    /// The locals for the operands of operators that write memory.
    pub(crate) written: SharedLocals,
    frames: Vec<Frame>,
    /// The result types of the function.
    pub(crate) results: Vec<ValType>,
}

fn skip_locals(reader: &mut wasmparser::BinaryReader<'_>) -> Result<(), RewriteError> {
    for _ in 0..reader.read_var_u32()? {
        reader.read_var_u32()?;
        reader.read::<ValType>()?;
    }
    Ok(())
}

impl Writer<'_, '_> {
    fn locals(
        &mut self,
        body: &FunctionBody<'_>,
        function: &Function,
        needs: &Needs,
    ) -> Result<(), RewriteError> {
        let mut groups = Vec::new();
        let params = self.context.types.get(function.ty.index() as u32).0;
        let mut next = params.len() as u32;
        let mut types = params.to_vec();
        for local in body.get_locals_reader()? {
            let (count, ty) = local?;
            groups.push((count, val_type(ty)?));
            next += count;
            if self.hinges.is_some() {
                types.resize(next as usize, ty);
            }
        }
        if let Some(hinges) = &mut self.hinges {
            (hinges.local, hinges.types) = (next, types);
            next += 2;
            groups.push((1, wasm_encoder::ValType::I64));
            groups.push((1, wasm_encoder::ValType::I32));
        }
        if let Some(carriers) = &mut self.carriers {
            carriers.condition = next;
            next += 1;
            groups.push((1, wasm_encoder::ValType::I32));
            carriers.locals.place(&mut next, &mut groups)?;
        }
        if needs.poll {
            self.scratch = next;
            next += 1;
            groups.push((1, wasm_encoder::ValType::I64));
        }
        if needs.loop_poll {
            self.polls = next;
            next += 1;
            groups.push((1, wasm_encoder::ValType::I32));
        }
        if needs.path {
            self.path = next;
            next += 1;
            groups.push((1, wasm_encoder::ValType::I64));
        }
        self.written.place(&mut next, &mut groups)?;
        if let Some(capture) = &mut self.capture {
            capture.place(&mut next, &mut groups)?;
        }
        within(function, "locals", next as usize, 50_000)?;
        (groups.len() as u32).encode(&mut self.out);
        for (count, ty) in groups {
            count.encode(&mut self.out);
            ty.encode(&mut self.out);
        }
        Ok(())
    }

    pub(crate) fn put(&mut self, instruction: &Instruction<'_>) {
        instruction.encode(&mut self.out);
    }

    pub(crate) fn copy(&mut self, range: &Range<usize>) {
        let (new, orig, len) = (
            self.out.len() as u32,
            range.start as u32,
            range.len() as u32,
        );
        match self.map.runs.last_mut() {
            Some(last) if last.new + last.len == new && last.orig + last.len == orig => {
                last.len += len
            }
            _ => self.map.runs.push(Run { new, orig, len }),
        }
        self.out
            .extend_from_slice(&self.context.bytes[range.clone()]);
    }

    pub(crate) fn slot(&self, address: u64) -> MemArg {
        MemArg {
            offset: address,
            align: 3,
            memory_index: self.context.memory,
        }
    }

    /// Wraps the whole body, in order to catch exceptions that leave the function.
    fn open_unwind_wrapper(&mut self) -> Result<(), RewriteError> {
        let results = self.results.clone();
        let outer = self
            .context
            .types
            .block(&[], &[ValType::Ref(RefType::EXNREF)])?;
        let inner = self.context.types.block(&[], &results)?;
        self.put(&Instruction::Block(outer));
        self.put(&Instruction::TryTable(
            inner,
            vec![Catch::AllRef { label: 0 }].into(),
        ));
        self.frames[0].inside = 2;
        Ok(())
    }

    fn operator(
        &mut self,
        operator: &Operator<'_>,
        range: Range<usize>,
        action: &Action,
        last: Option<&Actions>,
    ) -> Result<(), RewriteError> {
        self.steps(&action.before);
        self.before_captured(operator);
        match operator {
            Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => {
                let through = self.through_locals(*blockty);
                let (params, results) = through.clone();
                let is_if = matches!(operator, Operator::If { .. });
                if is_if {
                    self.keep_below(&params, false);
                } else {
                    self.keep(&params);
                }
                self.open(Frame {
                    is_loop: matches!(operator, Operator::Loop { .. }),
                    is_if,
                    otherwise: action.otherwise.clone(),
                    through,
                    ..Frame::new(Some(*blockty))
                });
                if params.is_empty() && results.is_empty() {
                    self.copy(&range);
                } else {
                    // The engine may merge an `if` with the load of its condition.
                    let place = OriginalPlace::Operator(OrigOffset(range.start as u32));
                    self.map.stops.push((self.out.len() as u32, place));
                    let empty = BlockType::Empty;
                    self.put(&match operator {
                        Operator::Block { .. } => Instruction::Block(empty),
                        Operator::Loop { .. } => Instruction::Loop(empty),
                        _ => Instruction::If(empty),
                    });
                }
                self.bring(&params);
            }
            Operator::Else => {
                let through = self.frames.last().map(|frame| frame.through.clone());
                let (params, results) = through.unwrap_or_default();
                self.keep(&results);
                self.copy(&range);
                self.bring(&params);
                let otherwise = self.frames.last_mut().map(|f| {
                    f.is_if = false;
                    std::mem::take(&mut f.otherwise)
                });
                self.steps(&otherwise.unwrap_or_default());
            }
            Operator::End => self.end(&range, last)?,
            Operator::TryTable { try_table } => self.try_table(try_table, &range, action)?,
            Operator::Br { relative_depth } => {
                self.keep(&self.carried_through(*relative_depth));
                if self.moved() {
                    self.put(&Instruction::Br(self.label(*relative_depth)));
                } else {
                    self.copy(&range);
                }
            }
            Operator::BrIf { relative_depth } => self.br_if(*relative_depth, &range, action)?,
            Operator::BrTable { targets } => self.br_table(targets, &range, action)?,
            Operator::Call { function_index } => {
                let host = self.context.external
                    && (*function_index as usize) < self.context.program.imports.len();
                if host {
                    self.mark_host_call(1);
                }
                let signature = |types: &TypePool, program: &Program| {
                    let (p, r) =
                        types.function(program, afterimage_ids::FuncId::from_u32(*function_index));
                    (p.to_vec(), r.to_vec())
                };
                self.call(&range, action, signature)?;
                if host {
                    self.mark_host_call(0);
                }
            }
            Operator::CallIndirect {
                type_index,
                table_index,
            } => {
                let index = if self
                    .context
                    .tables64
                    .get(*table_index as usize)
                    .copied()
                    .unwrap_or(false)
                {
                    ValType::I64
                } else {
                    ValType::I32
                };
                self.call(&range, action, |types, _| {
                    let (p, r) = types.get(*type_index);
                    let mut params = p.to_vec();
                    params.push(index);
                    (params, r.to_vec())
                })?;
            }
            Operator::MemoryAtomicWait32 { memarg }
            | Operator::MemoryAtomicWait64 { memarg }
            | Operator::MemoryAtomicNotify { memarg }
                if !self.context.external =>
            {
                self.wait(operator, memarg, OrigOffset(range.start as u32));
            }
            _ => {
                let marks = self.context.marks.as_ref();
                match marks.and_then(|marks| marks.write(operator)) {
                    Some(write) => self.marked(&write, &range),
                    None => self.copy(&range),
                }
                let start = OrigOffset(range.start as u32);
                let apart = self.context.apart.as_ref();
                let effect = Effect::of(operator);
                if apart.is_some_and(|loads| loads.contains(&start))
                    && (effect.is_load() || effect.is_store())
                {
                    // Each mark stores a different number, because the engine would drop one of two
                    // equal stores.
                    self.mark(i64::from(start.0));
                }
            }
        }
        self.after_captured(range.start, operator)?;
        self.steps(&action.after);
        Ok(())
    }

    /// Stores a value that is never read. The engine does not move anything that may trap across
    /// this store.
    fn mark(&mut self, number: i64) {
        let slot = self.slot(MARK_AT);
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Const(number));
        self.put(&Instruction::I64Store(slot));
    }

    /// Replaces an operator that waits or notifies. The memory is not shared, so the replacement
    /// checks the address, then traps or returns 0. The engine is built without threads, so it has
    /// neither of these operators.
    fn wait(&mut self, operator: &Operator<'_>, memarg: &wasmparser::MemArg, at: OrigOffset) {
        let memory = MemArg {
            offset: memarg.offset,
            align: u32::from(memarg.max_align),
            memory_index: memarg.memory,
        };
        let notifies = matches!(operator, Operator::MemoryAtomicNotify { .. });
        // Drop the number of waiters, or the expected value and the timeout.
        self.put(&Instruction::Drop);
        if !notifies {
            self.put(&Instruction::Drop);
        }
        self.map
            .stops
            .push((self.out.len() as u32, OriginalPlace::Operator(at)));
        self.put(&match memarg.max_align {
            2 => Instruction::I32AtomicLoad(memory),
            _ => Instruction::I64AtomicLoad(memory),
        });
        self.put(&Instruction::Drop);
        if notifies {
            self.put(&Instruction::I32Const(0));
        } else {
            self.map
                .stops
                .push((self.out.len() as u32, OriginalPlace::Wait(at)));
            self.put(&Instruction::Unreachable);
        }
    }

    fn mark_host_call(&mut self, inside: i32) {
        let slot = MemArg {
            offset: crate::layout::IN_HOST_AT,
            align: 2,
            memory_index: self.context.memory,
        };
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I32Const(inside));
        self.put(&Instruction::I32Store(slot));
    }

    fn end(&mut self, range: &Range<usize>, last: Option<&Actions>) -> Result<(), RewriteError> {
        if let Some(actions) = last
            && self.frames[0].inside > 0
        {
            self.put(&Instruction::End);
            self.put(&Instruction::Return);
            self.put(&Instruction::End);
            self.steps(&actions.unwind);
            self.put(&Instruction::ThrowRef);
            self.copy(range);
            return Ok(());
        }
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        self.keep(&frame.through.1);
        if frame.is_if && !frame.otherwise.is_empty() {
            self.put(&Instruction::Else);
            self.steps(&frame.otherwise);
        }
        self.copy(range);
        self.bring(&frame.through.1);
        if let Some(landings) = frame.landings {
            let count = landings.blocks.len() as u32;
            // One more block surrounds the landing blocks. The results of the `try_table` itself
            // leave through it.
            self.put(&Instruction::Br(count));
            for (i, (steps, next)) in landings.blocks.into_iter().enumerate() {
                self.put(&Instruction::End);
                self.steps(&steps);
                match next {
                    Some(label) => self.put(&Instruction::Br(label + count - i as u32)),
                    None => self.put(&Instruction::ThrowRef),
                }
            }
            self.put(&Instruction::End);
        }
        Ok(())
    }
}
