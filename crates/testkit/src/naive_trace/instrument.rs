//! Makes a module report to its host everything that it does.

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{BlockId, FuncId, OpId, TypeId};
use afterimage_program::{BlockKind, Function, Program};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    BlockType, Catch, CodeSection, EntityType, ImportSection, Instruction, Module, SectionId,
    TypeSection, ValType,
};
use wasmparser::{FunctionBody, Operator};

type Result<T> = std::result::Result<T, reencode::Error>;

/// The host functions that a traced module imports, in this order after the original function
/// imports. Each has a module name, a field name, and its numbers of `i32` parameters and results.
pub const HOOKS: [(&str, &str, u32, u32); 6] = [
    ("naive_trace", "enter", 1, 1),
    ("naive_trace", "at", 2, 0),
    ("naive_trace", "decide", 1, 1),
    ("naive_trace", "catch", 3, 0),
    ("naive_trace", "leave", 1, 0),
    ("naive_trace", "tail", 1, 0),
];
const ENTER: u32 = 0;
const AT: u32 = 1;
const DECIDE: u32 = 2;
const CATCH: u32 = 3;
const LEAVE: u32 = 4;
const TAIL: u32 = 5;

/// A traced module.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The encoded module.
    pub module: Vec<u8>,
    /// The label depths of every `br_table`, by its block. The default label comes last.
    pub(super) tables: BTreeMap<(FuncId, BlockId), Vec<u32>>,
}

/// Makes a module report to its host everything that it does. `bytes` contains the module from
/// which `program` was parsed.
///
/// # Panics
/// Panics if the module cannot be read or rewritten.
pub fn instrument(bytes: &[u8], program: &Program) -> Traced {
    let mut tracer = Tracer {
        program,
        types: Types {
            base: program.types.len() as u32,
            added: Vec::new(),
            index: HashMap::new(),
        },
        hook_types: Vec::new(),
        bodies: Vec::new(),
        tables: BTreeMap::new(),
        next: 0,
        imports_done: false,
    };
    tracer.hook_types = HOOKS
        .iter()
        .map(|hook| {
            let values = |count| vec![ValType::I32; count as usize];
            tracer.types.function(values(hook.2), values(hook.3))
        })
        .collect();
    // Bodies are made first, because they add types, and the type section precedes the code.
    for function in &program.functions {
        let body = tracer
            .body(bytes, function)
            .expect("a body of a valid module");
        tracer.bodies.push(body);
    }
    let mut module = Module::new();
    let parser = wasmparser::Parser::new(0);
    tracer
        .parse_core_module(&mut module, parser, bytes)
        .expect("a valid module");
    Traced {
        module: module.finish(),
        tables: tracer.tables,
    }
}

struct Types {
    base: u32,
    added: Vec<(Vec<ValType>, Vec<ValType>)>,
    index: HashMap<(Vec<ValType>, Vec<ValType>), u32>,
}

impl Types {
    fn function(&mut self, params: Vec<ValType>, results: Vec<ValType>) -> u32 {
        let next = self.base + self.added.len() as u32;
        *self
            .index
            .entry((params, results))
            .or_insert_with_key(|key| {
                self.added.push(key.clone());
                next
            })
    }
}

struct Tracer<'a> {
    program: &'a Program,
    types: Types,
    hook_types: Vec<u32>,
    bodies: Vec<wasm_encoder::Function>,
    tables: BTreeMap<(FuncId, BlockId), Vec<u32>>,
    next: usize,
    imports_done: bool,
}

/// The function being traced.
struct Body<'a> {
    function: &'a Function,
    out: wasm_encoder::Function,
    /// The local that contains the activation's number.
    activation: u32,
    /// For each open block of the original, the number of added blocks directly around it and, for
    /// a `try_table`, its handlers.
    frames: Vec<(u32, Option<Handlers>)>,
}

/// The clauses of a `try_table`, with its operator and the label of each clause as seen from
/// outside the added blocks.
struct Handlers {
    op: OpId,
    labels: Vec<u32>,
}

impl Body<'_> {
    /// Converts a label of the original to the numbering with the added blocks.
    fn label(&self, depth: u32) -> u32 {
        depth
            + self
                .frames
                .iter()
                .rev()
                .take(depth as usize)
                .map(|f| f.0)
                .sum::<u32>()
    }
}

impl Tracer<'_> {
    fn hook(&self, hook: u32) -> Instruction<'static> {
        Instruction::Call(self.program.imports.len() as u32 + hook)
    }

    fn body(&mut self, bytes: &[u8], function: &Function) -> Result<wasm_encoder::Function> {
        let range = function.body.start.0 as usize..function.body.end.0 as usize;
        let reader = wasmparser::BinaryReader::new(&bytes[range.clone()], range.start);
        let parsed = FunctionBody::new(reader);
        let mut locals = Vec::new();
        let mut activation = self.program.types[function.ty].params.len() as u32;
        for local in parsed.get_locals_reader()? {
            let (count, ty) = local?;
            locals.push((count, self.val_type(ty)?));
            activation += count;
        }
        locals.push((1, ValType::I32));
        let mut body = Body {
            function,
            out: wasm_encoder::Function::new(locals),
            activation,
            frames: Vec::new(),
        };

        body.out
            .instruction(&Instruction::I32Const(function.id.as_u32() as i32));
        body.out.instruction(&self.hook(ENTER));
        body.out.instruction(&Instruction::LocalSet(activation));
        self.report(&mut body, AT, &[function.cfg.graph.root().as_u32()]);
        let results = self.val_types(self.program.types[function.ty].results.to_vec())?;
        let whole = self.types.function(Vec::new(), results);
        // The function's label becomes the label of this block, so everything except tail calls
        // leaves at the block's end.
        body.out
            .instruction(&Instruction::Block(BlockType::FunctionType(whole)));

        let starts: HashMap<OpId, BlockId> = function
            .cfg
            .blocks
            .iter()
            .filter(|(id, block)| block.kind == BlockKind::Code && *id != function.cfg.graph.root())
            .map(|(id, block)| (block.ops.start, id))
            .collect();
        let mut operators = parsed.get_operators_reader()?;
        let mut op = OpId::from_u32(0);
        while !operators.eof() {
            if let Some(block) = starts.get(&op) {
                self.report(&mut body, AT, &[block.as_u32()]);
            }
            let operator = operators.read()?;
            if operators.eof() {
                body.out.instruction(&Instruction::End);
                self.report(&mut body, LEAVE, &[]);
                body.out.instruction(&Instruction::End);
            } else {
                self.operator(&mut body, op, operator)?;
            }
            op = OpId::from_u32(op.as_u32() + 1);
        }
        Ok(body.out)
    }

    /// Calls a hook with the activation's number and constants.
    fn report(&self, body: &mut Body<'_>, hook: u32, values: &[u32]) {
        body.out
            .instruction(&Instruction::LocalGet(body.activation));
        for &value in values {
            body.out.instruction(&Instruction::I32Const(value as i32));
        }
        body.out.instruction(&self.hook(hook));
    }

    fn operator(&mut self, body: &mut Body<'_>, op: OpId, operator: Operator<'_>) -> Result<()> {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } => body.frames.push((0, None)),
            Operator::If { .. } => {
                body.out.instruction(&self.hook(DECIDE));
                body.frames.push((0, None));
            }
            Operator::TryTable { try_table } => return self.try_table(body, op, &try_table),
            Operator::End => {
                body.out.instruction(&Instruction::End);
                if let Some((_, Some(handlers))) = body.frames.pop() {
                    self.handlers(body, &handlers);
                }
                return Ok(());
            }
            Operator::Br { relative_depth } => {
                body.out
                    .instruction(&Instruction::Br(body.label(relative_depth)));
                return Ok(());
            }
            Operator::BrIf { relative_depth } => {
                body.out.instruction(&self.hook(DECIDE));
                body.out
                    .instruction(&Instruction::BrIf(body.label(relative_depth)));
                return Ok(());
            }
            Operator::BrTable { targets } => {
                let mut depths = targets
                    .targets()
                    .collect::<std::result::Result<Vec<_>, _>>()?;
                depths.push(targets.default());
                if let Some(block) = body.function.block_of(op) {
                    self.tables
                        .insert((body.function.id, block), depths.clone());
                }
                let mut labels: Vec<u32> = depths.iter().map(|&depth| body.label(depth)).collect();
                let default = labels.pop().unwrap_or_default();
                body.out.instruction(&self.hook(DECIDE));
                body.out
                    .instruction(&Instruction::BrTable(labels.into(), default));
                return Ok(());
            }
            Operator::Return => {
                let whole = body.label(body.frames.len() as u32);
                body.out.instruction(&Instruction::Br(whole));
                return Ok(());
            }
            Operator::ReturnCall { .. } | Operator::ReturnCallIndirect { .. } => {
                self.report(body, TAIL, &[])
            }
            _ => {}
        }
        let same = self.instruction(operator)?;
        body.out.instruction(&same);
        Ok(())
    }

    /// Adds one block around a `try_table` for each of its clauses, and one block around all of
    /// them.
    fn try_table(
        &mut self,
        body: &mut Body<'_>,
        op: OpId,
        table: &wasmparser::TryTable,
    ) -> Result<()> {
        let (params, results) = match table.ty {
            wasmparser::BlockType::Empty => (Vec::new(), Vec::new()),
            wasmparser::BlockType::Type(ty) => (Vec::new(), vec![self.val_type(ty)?]),
            wasmparser::BlockType::FuncType(ty) => {
                let ty = &self.program.types[TypeId::from_u32(ty)];
                (
                    self.val_types(ty.params.to_vec())?,
                    self.val_types(ty.results.to_vec())?,
                )
            }
        };
        let whole = BlockType::FunctionType(self.types.function(params.clone(), results));
        let mut labels = Vec::new();
        let mut catches = Vec::new();
        let mut carried = Vec::new();
        for (i, clause) in table.catches.iter().enumerate() {
            let here = i as u32;
            let (label, tag, by_reference, catch) = match *clause {
                wasmparser::Catch::One { tag, label } => {
                    (label, Some(tag), false, Catch::One { tag, label: here })
                }
                wasmparser::Catch::OneRef { tag, label } => {
                    (label, Some(tag), true, Catch::OneRef { tag, label: here })
                }
                wasmparser::Catch::All { label } => {
                    (label, None, false, Catch::All { label: here })
                }
                wasmparser::Catch::AllRef { label } => {
                    (label, None, true, Catch::AllRef { label: here })
                }
            };
            let mut values = match tag {
                Some(tag) => self.val_types(
                    self.program.types[self.program.tags[tag as usize]]
                        .params
                        .to_vec(),
                )?,
                None => Vec::new(),
            };
            if by_reference {
                values.push(ValType::EXNREF);
            }
            labels.push(body.label(label));
            catches.push(catch);
            carried.push(values);
        }
        body.out.instruction(&Instruction::Block(whole));
        for values in carried.into_iter().rev() {
            let ty = self.types.function(params.clone(), values);
            body.out
                .instruction(&Instruction::Block(BlockType::FunctionType(ty)));
        }
        body.out
            .instruction(&Instruction::TryTable(whole, catches.into()));
        body.frames
            .push((labels.len() as u32 + 1, Some(Handlers { op, labels })));
        Ok(())
    }

    fn handlers(&self, body: &mut Body<'_>, handlers: &Handlers) {
        let count = handlers.labels.len() as u32;
        body.out.instruction(&Instruction::Br(count));
        for (i, label) in (0..).zip(&handlers.labels) {
            body.out.instruction(&Instruction::End);
            self.report(body, CATCH, &[handlers.op.as_u32(), i]);
            body.out.instruction(&Instruction::Br(label + count - i));
        }
        body.out.instruction(&Instruction::End);
    }

    fn imports(&mut self, imports: &mut ImportSection) {
        self.imports_done = true;
        for (hook, &ty) in HOOKS.iter().zip(&self.hook_types) {
            imports.import(hook.0, hook.1, EntityType::Function(ty));
        }
    }
}

impl Reencode for Tracer<'_> {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32> {
        let defined = function as usize >= self.program.imports.len();
        Ok(function + if defined { HOOKS.len() as u32 } else { 0 })
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<()> {
        reencode::utils::parse_type_section(self, types, section)?;
        for (params, results) in &self.types.added {
            types
                .ty()
                .function(params.iter().copied(), results.iter().copied());
        }
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<()> {
        reencode::utils::parse_import_section(self, imports, section)?;
        self.imports(imports);
        Ok(())
    }

    fn intersperse_section_hook(
        &mut self,
        module: &mut Module,
        after: Option<SectionId>,
        before: Option<SectionId>,
    ) -> Result<()> {
        if after == Some(SectionId::Type) && before != Some(SectionId::Import) && !self.imports_done
        {
            let mut imports = ImportSection::new();
            self.imports(&mut imports);
            module.section(&imports);
        }
        Ok(())
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, _: FunctionBody<'_>) -> Result<()> {
        code.function(&self.bodies[self.next]);
        self.next += 1;
        Ok(())
    }
}
