//! Parses module bytes into a [`Program`].
//!
//! Every function is read to validate it and to build its control-flow graph. Functions are read in
//! parallel. If the module uses exceptions, the first reading finds the calls between functions. A
//! second reading then builds the graphs, once the calls that may throw are known.

use std::ops::Range;

use afterimage_ids::{EntityRef, EntitySet, FuncId, OpId, OrigOffset, PrimaryMap, TypeId};
use wasmparser::{
    AbstractHeapType, CompositeInnerType, ConstExpr, Element, ElementItems, ExternalKind,
    FuncToValidate, FuncValidatorAllocations, FunctionBody, HeapType, MemoryType, Operator, Parser,
    Payload, RefType, TableInit, TypeRef, ValType, ValidPayload, Validator, ValidatorResources,
    WasmModuleResources,
};

use crate::calls::{CallFacts, CallScan, MayThrow};
use crate::cfg_builder::CfgBuilder;
use crate::error::{ParseError, SUPPORTED, offset};
use crate::operators::Operators;
use crate::program::Resources;
use crate::ssa::is_out_of_bounds;
use crate::{Cfg, Function, FunctionType, Import, Program};

impl Program {
    /// Parses and validates a module, and builds the control-flow graph of every function. Time and
    /// space are linear in the module, except for sorting.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a valid module, or use an unsupported feature (see
    /// [`ParseError`]). The supported features are WebAssembly 2.0, tail calls, exceptions,
    /// multiple memories, 64-bit memories, extended constants, relaxed SIMD, and atomic operators
    /// on memories that are not shared. A module may import only functions, because a recorder can
    /// supply no other imports.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.is_empty() {
            return Err(ParseError::Empty);
        }
        if !bytes.starts_with(b"\0asm") {
            return Err(ParseError::NotWasm);
        }
        if Parser::is_component(bytes) {
            return Err(ParseError::Component);
        }
        if u32::try_from(bytes.len()).is_err() {
            return Err(ParseError::TooLarge {
                bytes: bytes.len() as u64,
            });
        }

        let mut module = Module::default();
        let mut unread = Vec::new();
        let sections = module.sections(bytes, &mut unread);
        // An error in a function takes precedence over an error after the functions.
        module.bodies(&unread)?;
        sections?;
        Ok(module.finish(bytes))
    }
}

/// The parts read so far.
#[derive(Default)]
struct Module {
    types: PrimaryMap<TypeId, FunctionType>,
    imports: Vec<Import>,
    /// The type of every function, imports first.
    function_types: Vec<TypeId>,
    globals: Vec<ValType>,
    tags: Vec<TypeId>,
    tables: u32,
    /// Whether some table contains exceptions.
    keeps_exceptions: bool,
    memories: u32,
    exports: Vec<(String, FuncId)>,
    exports_table: bool,
    exports_reference: bool,
    start: Option<FuncId>,
    address_taken: EntitySet<FuncId>,
    bodies: Vec<Body>,
    facts: Vec<CallFacts>,
    /// The functions' graphs, if nothing can throw an exception.
    graphs: Vec<Cfg>,
    resources: Option<ValidatorResources>,
}

/// A function that is still to be validated.
type Unread<'b> = (FuncToValidate<ValidatorResources>, FunctionBody<'b>);

/// The code of a function.
struct Body {
    range: Range<OrigOffset>,
    operators: u32,
    out_of_bounds: Box<[OpId]>,
    waits: Box<[OpId]>,
}

/// The facts found in a function's operators.
struct Read {
    body: Body,
    facts: CallFacts,
    address_taken: Vec<FuncId>,
    /// The function's graph, if no call throws.
    graph: Option<Cfg>,
}

/// Scratch space that is reused for each function.
#[derive(Default)]
struct Room {
    scan: CallScan,
    allocations: FuncValidatorAllocations,
}

/// The size in bytes up to which one thread reads the functions of a module, because starting other
/// threads would take as long.
const SHORT: usize = 1 << 16;

/// Calls `of` with each index below `count`, and returns the results in order. Makes the calls in
/// parallel if there are enough `bytes`.
fn each<R: Default, T: Send>(
    bytes: usize,
    count: usize,
    of: impl Fn(&mut R, usize) -> T + Sync,
) -> Vec<T> {
    if bytes > SHORT {
        return afterimage_parallel::map_with(count, R::default, of);
    }
    let mut room = R::default();
    (0..count).map(|at| of(&mut room, at)).collect()
}

impl Module {
    /// Reads everything except the code of functions.
    fn sections<'b>(
        &mut self,
        bytes: &'b [u8],
        unread: &mut Vec<Unread<'b>>,
    ) -> Result<(), ParseError> {
        let mut validator = Validator::new_with_features(SUPPORTED);
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            match validator.payload(&payload)? {
                ValidPayload::Func(function, body) => {
                    self.resources
                        .get_or_insert_with(|| function.resources.clone());
                    unread.push((function, body));
                }
                _ => self.section(payload)?,
            }
        }
        Ok(())
    }

    /// Validates the functions.
    fn bodies(&mut self, unread: &[Unread<'_>]) -> Result<(), ParseError> {
        let bytes = unread.iter().map(|(_, body)| body.as_bytes().len()).sum();
        let nobody = self.nobody_throws();
        let all = each(bytes, unread.len(), |room, at| {
            let (function, body) = &unread[at];
            read(room, function, body, nobody.as_ref())
        });
        for each in all {
            let Read {
                body,
                facts,
                address_taken,
                graph,
            } = each?;
            self.bodies.push(body);
            self.facts.push(facts);
            self.address_taken.extend(address_taken);
            self.graphs.extend(graph);
        }
        Ok(())
    }

    fn section(&mut self, payload: Payload<'_>) -> Result<(), ParseError> {
        match payload {
            Payload::TypeSection(types) => {
                for group in types {
                    for (at, ty) in group?.into_types_and_offsets() {
                        let CompositeInnerType::Func(ty) = ty.composite_type.inner else {
                            let feature = "garbage collection".into();
                            return Err(ParseError::Unsupported {
                                feature,
                                offset: offset(at),
                            });
                        };
                        self.types.push(FunctionType {
                            params: ty.params().into(),
                            results: ty.results().into(),
                        });
                    }
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports_with_offsets() {
                    let (at, import) = import?;
                    self.import(import, offset(at))?;
                }
            }
            Payload::FunctionSection(functions) => {
                for ty in functions {
                    self.function_types.push(TypeId::from_u32(ty?));
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    let table = table?;
                    self.tables += 1;
                    self.keeps_exceptions |= is_exception(table.ty.element_type);
                    if let TableInit::Expr(init) = table.init {
                        self.constant(&init)?;
                    }
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories.into_iter_with_offsets() {
                    let (at, memory) = memory?;
                    if memory.shared {
                        return Err(ParseError::Unsupported {
                            feature: "shared memories".into(),
                            offset: offset(at),
                        });
                    }
                    self.memories += 1;
                }
            }
            Payload::TagSection(tags) => {
                for tag in tags {
                    self.tags.push(TypeId::from_u32(tag?.func_type_idx));
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    let global = global?;
                    self.globals.push(global.ty.content_type);
                    self.constant(&global.init_expr)?;
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    match export.kind {
                        ExternalKind::Func | ExternalKind::FuncExact => {
                            let function = FuncId::from_u32(export.index);
                            self.exports.push((export.name.to_string(), function));
                        }
                        ExternalKind::Table => self.exports_table = true,
                        ExternalKind::Global => {
                            let ty = self.globals.get(export.index as usize);
                            self.exports_reference |= matches!(ty, Some(ValType::Ref(_)));
                        }
                        ExternalKind::Memory | ExternalKind::Tag => {}
                    }
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(FuncId::from_u32(func)),
            Payload::ElementSection(elements) => {
                for element in elements {
                    self.element(element?)?;
                }
            }
            // Data, custom sections and the rest do not affect control flow.
            _ => {}
        }
        Ok(())
    }

    fn import(
        &mut self,
        import: wasmparser::Import<'_>,
        offset: OrigOffset,
    ) -> Result<(), ParseError> {
        let kind = match import.ty {
            TypeRef::Func(ty) => {
                let ty = TypeId::from_u32(ty);
                self.function_types.push(ty);
                self.imports.push(Import {
                    module: import.module.to_string(),
                    name: import.name.to_string(),
                    ty,
                });
                return Ok(());
            }
            TypeRef::Memory(_) => "memory",
            TypeRef::Table(_) => "table",
            TypeRef::Global(_) => "global",
            TypeRef::Tag(_) => "tag",
            TypeRef::FuncExact(_) => "function of exact type",
        };
        let (module, name) = (import.module, import.name);
        let feature = format!("an imported {kind}, {module:?} {name:?}").into();
        Err(ParseError::Unsupported { feature, offset })
    }

    fn element(&mut self, element: Element<'_>) -> Result<(), ParseError> {
        match element.items {
            ElementItems::Functions(functions) => {
                for function in functions {
                    self.address_taken.insert(FuncId::from_u32(function?));
                }
            }
            ElementItems::Expressions(_, expressions) => {
                for expression in expressions {
                    self.constant(&expression?)?;
                }
            }
        }
        Ok(())
    }

    /// Records the functions to which a constant expression refers.
    fn constant(&mut self, expression: &ConstExpr<'_>) -> Result<(), ParseError> {
        for operator in expression.get_operators_reader() {
            if let Operator::RefFunc { function_index } = operator? {
                self.address_taken.insert(FuncId::from_u32(function_index));
            }
        }
        Ok(())
    }

    /// Completes the program, and builds its graphs if they were not built while the code was read.
    fn finish(mut self, bytes: &[u8]) -> Program {
        if self.exports_table || self.exports_reference || self.imports_yield_references() {
            self.address_taken
                .extend(self.exports.iter().map(|(_, function)| *function));
        }
        let imports = self.imports.len();
        let (may_throw, graphs) = match self.nobody_throws() {
            Some(nobody) => (nobody, self.graphs),
            None => {
                let may_throw = MayThrow::compute(
                    &self.types,
                    &self.function_types,
                    imports,
                    &self.facts,
                    &self.address_taken,
                );
                let bodies = &self.bodies;
                let graphs = each(bytes.len(), bodies.len(), |(), at| {
                    build_cfg(bytes, &bodies[at].range, &may_throw)
                });
                (may_throw, graphs)
            }
        };
        let functions = self
            .bodies
            .into_iter()
            .zip(graphs)
            .enumerate()
            .map(|(i, (body, cfg))| {
                let id = FuncId::new(imports + i);
                Function {
                    id,
                    ty: self.function_types[id.index()],
                    cfg,
                    body: body.range,
                    operators: body.operators,
                    out_of_bounds: body.out_of_bounds,
                    waits: body.waits,
                    may_throw: may_throw.function(id),
                }
            })
            .collect();
        Program {
            types: self.types,
            imports: self.imports,
            functions,
            exports: self.exports,
            start: self.start,
            address_taken: self.address_taken,
            memories: self.memories,
            globals: self.globals,
            tags: self.tags,
            tables: self.tables,
            resources: Resources(self.resources),
            slots: Default::default(),
        }
    }

    /// Returns the result for a module in which nothing throws, if there are no tags and no
    /// exceptions come from outside. In that case, the only exception reference is null, and
    /// throwing it traps.
    fn nobody_throws(&self) -> Option<MayThrow> {
        let nobody = || MayThrow::nobody(self.function_types.len(), self.types.len());
        (self.tags.is_empty() && !self.may_be_given_exceptions()).then(nobody)
    }

    /// Whether an import or the host may pass in an exception, according to the types of functions,
    /// globals and tables.
    fn may_be_given_exceptions(&self) -> bool {
        let is_one = |ty: &ValType| matches!(ty, ValType::Ref(ty) if is_exception(*ty));
        let types = self.types.as_values_slice().iter();
        let mut values = types.flat_map(|ty| ty.params.iter().chain(&ty.results));
        values.any(is_one) || self.globals.iter().any(is_one) || self.keeps_exceptions
    }

    /// Whether a call to an import can return a reference that the module did not create.
    fn imports_yield_references(&self) -> bool {
        let is_reference = |ty: &ValType| matches!(ty, ValType::Ref(_));
        self.imports
            .iter()
            .any(|import| self.types[import.ty].results.iter().any(is_reference))
    }
}

fn is_exception(ty: RefType) -> bool {
    let exceptions = HeapType::Abstract {
        shared: false,
        ty: AbstractHeapType::Exn,
    };
    ty.heap_type() == exceptions
}

/// Validates a function, and builds its graph if nothing throws. If something may throw, records
/// the functions that it calls instead.
fn read(
    room: &mut Room,
    function: &FuncToValidate<ValidatorResources>,
    body: &FunctionBody<'_>,
    nobody: Option<&MayThrow>,
) -> Result<Read, ParseError> {
    let function = FuncToValidate {
        resources: function.resources.clone(),
        ..*function
    };
    let resources = function.resources.clone();
    let most = |memory| resources.memory_at(memory).map(|ty| most_bytes(&ty));
    let mut validator = function.into_validator(std::mem::take(&mut room.allocations));
    let mut reader = body.get_binary_reader();
    validator.read_locals(&mut reader)?;
    let mut reader = wasmparser::OperatorsReader::new(reader);
    let mut facts = CallFacts::default();
    let mut address_taken = Vec::new();
    let (mut out_of_bounds, mut waits) = (Vec::new(), Vec::new());
    let mut operators = 0;
    let start = offset(reader.original_position());
    let mut graph = nobody.map(|nobody| CfgBuilder::new(nobody, start));
    while !reader.eof() {
        let (operator, at) = reader.read_with_offset()?;
        validator.op(at, &operator)?;
        match &mut graph {
            None => room.scan.operator(&operator, &mut facts),
            Some(graph) => {
                let own = offset(at)..offset(reader.original_position());
                graph.operator(OpId::from_u32(operators), own, &operator);
            }
        }
        if let Operator::RefFunc { function_index } = operator {
            address_taken.push(FuncId::from_u32(function_index));
        }
        if is_out_of_bounds(&operator, most) {
            out_of_bounds.push(OpId::from_u32(operators));
        }
        if let Operator::MemoryAtomicWait32 { .. }
        | Operator::MemoryAtomicWait64 { .. }
        | Operator::MemoryAtomicNotify { .. } = operator
        {
            waits.push(OpId::from_u32(operators));
        }
        operators += 1;
    }
    reader.finish()?;
    room.allocations = validator.into_allocations();
    let range = body.range();
    Ok(Read {
        body: Body {
            range: offset(range.start)..offset(range.end),
            operators,
            out_of_bounds: out_of_bounds.into(),
            waits: waits.into(),
        },
        facts,
        address_taken,
        graph: graph.map(CfgBuilder::finish),
    })
}

/// Returns the size to which a memory can grow.
fn most_bytes(ty: &MemoryType) -> u128 {
    let page = ty.page_size_log2.unwrap_or(16);
    let address_space = if ty.memory64 { 1 << 64 } else { 1 << 32 };
    let most = ty.maximum.map(|pages| u128::from(pages) << page);
    most.unwrap_or(u128::MAX).min(address_space)
}

fn build_cfg(bytes: &[u8], body: &Range<OrigOffset>, may_throw: &MayThrow) -> Cfg {
    let mut operators = Operators::new(bytes, body);
    let mut builder = CfgBuilder::new(may_throw, operators.position());
    while let Some((op, at, operator)) = operators.next() {
        builder.operator(op, at..operators.position(), &operator);
    }
    builder.finish()
}
