//! A run, followed once, as sketches of its statements.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, PrimaryMap};
use afterimage_machine::{Code, Inst, NodeCode, NodeEnd, Observer, Range};
use afterimage_matching::{Active, Class, Entered, Instance, Sketch, Statement, Version};
use afterimage_trace::LogReader;
use afterimage_wpp::{Node, Segments, Visit};
use rustc_hash::{FxHashMap, FxHasher};
use wasmparser::ValType;

use super::code::{Known, operators};
use super::contexts::Contexts;
use super::keeper::{Keeper, Kept, Stretch};
use super::producers::Producers;
use super::written::Written;
use crate::steps::{Follower, Plan, PlanKind, Plans, Run, StepsError};
use crate::values::Types;

/// Where a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// In which function.
    pub function: FuncId,
    /// Which operator.
    pub op: OpId,
}

/// A version of a program as it was executed, and where its statements are.
#[derive(Debug, Default)]
pub struct Sketched {
    /// The statements.
    pub version: Version,
    /// Where each is: ascending, unless statements are told apart by calls.
    pub places: Vec<Place>,
    /// How many statements were executed, all executions counted.
    pub executed: u64,
    /// By context and operator, which statement it is. Without contexts those are the functions, in the order in which they were entered.
    pub(super) numbers: FxHashMap<(u32, OpId), u32>,
    /// The context of each statement.
    pub(super) contexts: Vec<u32>,
}

impl Sketched {
    /// By statement of the same run, told apart by calls, which one it is here; `None` if it is another run.
    pub(super) fn numbers_of(&self, apart: &Self) -> Option<Vec<u32>> {
        let places = apart.places.iter();
        let known = places.map(|place| Some(self.places.binary_search(place).ok()? as u32));
        known.collect()
    }
}

/// What is written of a statement that is executed.
#[derive(Clone, Copy, Debug)]
enum From {
    /// The value in this register.
    Register(u32),
    /// Whether the value in this register is 0 or not, and what is compared.
    Truth(u32, Compared),
    /// Nothing but that it was executed.
    Nothing,
}

/// The registers that a test compares; constants are left out, because optimisers write them in several ways.
#[derive(Clone, Copy, Debug)]
struct Compared(u32, Option<u32>);

/// What an execution gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// What is the same in both versions if they do the same.
    pub compared: u64,
    /// What a person wants to see.
    pub value: u64,
    /// Of tests and branches what they compare.
    pub operands: Option<u64>,
    /// What it took, if [`Take::TAKEN`].
    pub taken: Taken,
}

/// What an execution of a computation took: up to three operands, none if they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    values: [u64; 3],
    count: u8,
    /// By operand, in bits, whether it is no constant.
    variables: u8,
}

impl Taken {
    /// The operands.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.values.into_iter().take(usize::from(self.count))
    }

    /// Those that are no constants.
    pub fn variables(&self) -> impl Iterator<Item = u64> {
        let bits = self.variables;
        let numbered = (0..).zip(self.all());
        numbered.filter_map(move |(at, value)| (bits >> at & 1 == 1).then_some(value))
    }
}

/// The registers of up to three operands.
#[derive(Clone, Copy, Debug, Default)]
struct Operands {
    registers: [u32; 3],
    count: u8,
    /// How many registers of the node, from the first, are variables and constants; and how many of these are variables.
    constants: (u32, u32),
}

impl Operands {
    /// Those of an instruction that computes numbers.
    fn of(code: &NodeCode, inst: &Inst) -> Self {
        let count = match inst.code {
            Code::Scalar(_) | Code::Select => inst.code.operands() as u8,
            _ => 0,
        };
        Self {
            registers: [inst.a, inst.b, inst.c],
            count,
            constants: (code.variables, code.first_result()),
        }
    }

    fn taken(&self, low: &[u64]) -> Taken {
        let mut taken = Taken {
            count: self.count,
            ..Taken::default()
        };
        let registers = &self.registers[..usize::from(self.count)];
        for (at, register) in registers.iter().enumerate() {
            taken.values[at] = low[*register as usize];
            let is_constant = (self.constants.0..self.constants.1).contains(register);
            taken.variables |= u8::from(!is_constant) << at;
        }
        taken
    }
}

#[derive(Clone, Copy, Debug)]
struct Told {
    /// How many instructions must be done before.
    after: u32,
    statement: u32,
    block: u32,
    from: From,
}

#[derive(Debug, Default)]
struct Template {
    told: Vec<Told>,
    /// What each takes, if [`Take::TAKEN`].
    operands: Vec<Operands>,
    /// By instruction, the statement; `u32::MAX` for none.
    of_inst: Vec<u32>,
    /// The call with which the node ends.
    call: Option<OpId>,
    /// It has a statement with a number.
    numbered: bool,
}

/// A statement while the run is followed, and what is kept of it.
#[derive(Debug)]
pub(crate) struct Collected<K> {
    pub place: Place,
    /// Through which calls it is executed.
    pub context: u32,
    /// Its number in a version that is known.
    pub number: u32,
    /// Where it accessed memory last.
    pub address: u64,
    /// How a test was decided first.
    decided: Option<bool>,
    kept: K,
}

/// What is done with the values that statements give.
pub(crate) trait Take {
    /// What is kept of each statement, besides where it is.
    type Kept;

    /// It wants to know what computations took.
    const TAKEN: bool = false;

    /// Of a statement that was not executed yet.
    fn begin(class: Class) -> Self::Kept;

    /// The number of a statement in the version that is known, if there is one.
    fn number(&self, _: u32, _: Place) -> u32 {
        u32::MAX
    }

    fn take(&mut self, statement: &mut Collected<Self::Kept>, given: Given, time: u64);

    /// A statement accesses memory, before it is told what it gives.
    #[inline(always)]
    fn access(&mut self, _: &mut Collected<Self::Kept>, _: u64) {}

    /// An activation of a function begins.
    #[inline(always)]
    fn enter(&mut self, _: FuncId, _: u64, _: &[u64]) {}

    /// A statement with this position among those that were collected writes.
    #[inline(always)]
    fn write(&mut self, _: u32, _: Range) {}

    /// It reads.
    #[inline(always)]
    fn read(&mut self, _: u32, _: Range) {}

    /// Memory is copied.
    fn copy(&mut self, _: Range, _: Range) {}

    /// The host writes.
    fn host_write(&mut self, _: Range) {}
}

/// The sketches of a statement.
#[derive(Debug)]
struct Summary {
    values: Box<Sketch>,
    operands: Option<Box<Sketch>>,
    addresses: Option<Box<Sketch>>,
    first: u64,
    last: u64,
    active: Active,
}

/// Sketches them.
#[derive(Default)]
struct Sketches {
    executed: u64,
    /// Which part of the run it is.
    window: usize,
    written: Written,
    entered: FxHashMap<FuncId, Entered>,
}

impl Take for Sketches {
    type Kept = Summary;

    fn begin(class: Class) -> Summary {
        let tests = matches!(class, Class::Test | Class::Branch);
        Summary {
            values: Box::default(),
            operands: tests.then(Box::default),
            addresses: class.accesses_memory().then(Box::default),
            first: 0,
            last: 0,
            active: Active::default(),
        }
    }

    #[inline(always)]
    fn take(&mut self, statement: &mut Collected<Summary>, given: Given, time: u64) {
        let kept = &mut statement.kept;
        if kept.values.count == 0 {
            kept.first = time;
        }
        kept.last = time;
        kept.active.set(self.window);
        self.executed += 1;
        kept.values.add(given.compared);
        if let (Some(operands), Some(value)) = (kept.operands.as_mut(), given.operands) {
            operands.add(value);
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected<Summary>, address: u64) {
        if let Some(addresses) = statement.kept.addresses.as_mut() {
            addresses.add(address);
        }
    }

    fn enter(&mut self, function: FuncId, time: u64, parameters: &[u64]) {
        let entered = self.entered.entry(function).or_insert_with(|| Entered {
            first: time,
            count: 0,
            ty: 0,
            parameters: vec![Sketch::default(); parameters.len()],
        });
        entered.count += 1;
        for (sketch, value) in entered.parameters.iter_mut().zip(parameters) {
            sketch.add(*value);
        }
    }

    #[inline(always)]
    fn write(&mut self, statement: u32, range: Range) {
        self.written.write(Some(statement), range);
    }

    #[inline(always)]
    fn read(&mut self, statement: u32, range: Range) {
        self.written.read(statement, range);
    }

    fn copy(&mut self, from: Range, to: Range) {
        self.written.copy(from, to);
    }

    fn host_write(&mut self, range: Range) {
        self.written.write(None, range);
    }
}

impl Take for Keeper {
    type Kept = ();

    const TAKEN: bool = true;

    fn begin(_: Class) {}

    fn number(&self, context: u32, place: Place) -> u32 {
        self.number_of(context, place)
    }

    fn take(&mut self, statement: &mut Collected<()>, given: Given, time: u64) {
        self.add(statement.number, given, time);
    }
}

pub(crate) struct Sketcher<T: Take> {
    pub taker: T,
    statements: Vec<Collected<T::Kept>>,
    template: Rc<Template>,
    start: u64,
    contexts: Contexts,
    /// The function whose activation begins, and how many parameters it has.
    begins: Option<(FuncId, usize)>,
}

impl<T: Take> Sketcher<T> {
    fn new(taker: T, contexts: Contexts) -> Self {
        Self {
            taker,
            contexts,
            statements: Vec::new(),
            template: Rc::default(),
            start: 0,
            begins: None,
        }
    }

    #[inline(always)]
    fn told(&mut self, executed: usize, low: &[u64]) {
        for (at, told) in self.template.told.iter().enumerate() {
            if told.after as usize > executed {
                break;
            }
            let statement = &mut self.statements[told.statement as usize];
            let time = self.start + u64::from(told.block);
            let taken = match T::TAKEN {
                true => self.template.operands[at].taken(low),
                false => Taken::default(),
            };
            let given = match told.from {
                From::Register(register) => Given {
                    compared: low[register as usize],
                    value: low[register as usize],
                    operands: None,
                    taken,
                },
                From::Nothing => Given {
                    compared: 0,
                    value: 0,
                    operands: None,
                    taken,
                },
                From::Truth(register, Compared(a, b)) => {
                    let value = low[register as usize];
                    let truth = value as u32 != 0;
                    let decided = *statement.decided.get_or_insert(truth);
                    let a = low[a as usize];
                    // Operands may be exchanged, and what they are the addresses of may lie elsewhere.
                    let operands = b.map_or(a, |b| a.abs_diff(low[b as usize]));
                    Given {
                        compared: u64::from(truth != decided),
                        value,
                        operands: Some(operands),
                        taken,
                    }
                }
            };
            self.taker.take(statement, given, time);
        }
    }

    #[inline(always)]
    fn accessed(&mut self, inst: usize, range: Range) -> Option<u32> {
        let at = self.template.of_inst.get(inst).copied()?;
        let known = self.statements.get_mut(at as usize)?;
        self.taker.access(known, range.address);
        Some(at)
    }
}

impl<T: Take> Observer for Sketcher<T> {
    fn variables(&mut self, _: &NodeCode, low: &[u64], _: &[u64]) {
        if let Some((function, parameters)) = self.begins.take() {
            let parameters = low.get(..parameters).unwrap_or(low);
            self.taker.enter(function, self.start, parameters);
        }
    }

    fn read(&mut self, inst: usize, range: Range) {
        if let Some(statement) = self.accessed(inst, range) {
            self.taker.read(statement, range);
        }
    }

    fn write(&mut self, inst: usize, range: Range) {
        if let Some(statement) = self.accessed(inst, range) {
            self.taker.write(statement, range);
        }
    }

    fn copy(&mut self, _: usize, from: Range, to: Range) {
        self.taker.copy(from, to);
    }

    fn host_write(&mut self, range: Range) {
        self.taker.host_write(range);
    }

    fn leave(&mut self, _: Option<(u32, u32)>) {
        if !self.contexts.is_flat() {
            self.contexts.leave();
        }
    }

    fn done(&mut self, _: &NodeCode, low: &[u64], _: &[u64]) {
        self.told(usize::MAX, low);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, low: &[u64], _: &[u64]) {
        self.told(executed, low);
    }
}

/// Notes which activations end, and nothing else.
struct Leaving<'c>(&'c mut Contexts);

impl Observer for Leaving<'_> {
    const REGISTERS: bool = false;

    fn leave(&mut self, _: Option<(u32, u32)>) {
        self.0.leave();
    }
}

/// Follows a run from its beginning to its end and sketches every statement. Jumps and returns are none: they have no values.
///
/// Time is linear in the run; memory is the machine's, 4 bytes for each 4 that the guest writes, and 1,000 to 2,000 bytes for each statement of the program that is executed.
///
/// # Errors
/// If the run cannot be followed.
pub fn version<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<Sketched, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    in_contexts(run, log, None)
}

/// The same, and tells statements of functions that do not stand by themselves apart by the calls through which they are executed. If all functions do, `standing` is `None`.
pub(super) fn in_contexts<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    standing: Option<&HashSet<FuncId>>,
) -> Result<Sketched, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut walk = Walk::within(run, log, Sketches::default(), standing)?;
    let length = run.path.length();
    walk.stack = stack_of(&run, &walk.follower);
    while let Some(visit) = walk.follower.next()? {
        walk.sketcher.taker.window = Active::window(visit.start, length);
        walk.execute(visit)?;
    }
    Ok(walk.finish())
}

/// Where the stack begins: LLVM's linker keeps the stack pointer in the first global.
fn stack_of<S: Segments>(run: &Run<'_, S>, follower: &Follower<'_, S>) -> u64 {
    let is_pointer = run.program.globals.first() == Some(&ValType::I32);
    let first = follower.machine.state.globals.first();
    first.filter(|_| is_pointer).map_or(0, |bits| bits.0)
}

/// Follows a run and keeps executions of some statements.
pub(super) fn values_of<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    standing: Option<&HashSet<FuncId>>,
    stretches: &[Stretch],
) -> Result<Vec<Vec<Kept>>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut walk = Walk::within(run, log, Keeper::new(stretches), standing)?;
    while let Some(visit) = walk.follower.next()? {
        walk.enter(visit);
        let template = walk.template(visit)?;
        match template.numbered {
            true => walk.execute_inside(visit, template)?,
            false => walk.pass(visit, template)?,
        }
    }
    Ok(walk.sketcher.taker.kept())
}

pub(crate) struct Walk<'a, S: Segments, T: Take> {
    pub follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    run: Run<'a, S>,
    nodes: &'a PrimaryMap<NodeId, Node>,
    /// By node and context.
    templates: FxHashMap<(NodeId, u32), Rc<Template>>,
    known: HashMap<FuncId, Vec<Known>>,
    numbers: FxHashMap<(u32, OpId), u32>,
    pub sketcher: Sketcher<T>,
    /// Where the stack begins, from which it grows down; 0 if that is not known.
    stack: u64,
}

impl<'a, S: Segments, T: Take> Walk<'a, S, T>
where
    S::Error: std::error::Error + 'static,
{
    pub fn new(run: Run<'a, S>, log: LogReader, taker: T) -> Result<Self, StepsError<S::Error>> {
        Self::within(run, log, taker, None)
    }

    /// With the functions that stand by themselves; `None` if all do.
    pub(super) fn within(
        run: Run<'a, S>,
        log: LogReader,
        taker: T,
        standing: Option<&HashSet<FuncId>>,
    ) -> Result<Self, StepsError<S::Error>> {
        let functions = run.program.functions.iter();
        let operators = functions.map(|function| function.operators as usize).sum();
        Ok(Self {
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            run,
            nodes: run.path.nodes(),
            templates: FxHashMap::default(),
            known: HashMap::new(),
            numbers: FxHashMap::default(),
            sketcher: Sketcher::new(taker, Contexts::new(standing.cloned(), operators)),
            stack: 0,
        })
    }

    pub fn execute(&mut self, visit: Visit) -> Result<(), StepsError<S::Error>> {
        self.enter(visit);
        let template = self.template(visit)?;
        self.execute_inside(visit, template)
    }

    /// Notes the activation that a node begins, if it does.
    fn enter(&mut self, visit: Visit) {
        if !self.follower.machine.begins_activation() {
            return;
        }
        let function = self.nodes[visit.node].function;
        let defined = self.run.program.function(function);
        let ty = defined.and_then(|defined| self.run.program.types.get(defined.ty));
        let parameters = ty.map_or(0, |ty| ty.params.len());
        self.sketcher.begins = Some((function, parameters));
        if self.sketcher.contexts.is_flat() {
            return;
        }
        let operators = defined.map_or(0, |function| function.operators);
        let call = self.sketcher.template.call;
        self.sketcher
            .contexts
            .enter(function, call, operators as usize);
    }

    fn execute_inside(
        &mut self,
        visit: Visit,
        template: Rc<Template>,
    ) -> Result<(), StepsError<S::Error>> {
        self.sketcher.template = template;
        self.sketcher.start = visit.start;
        self.follower.execute(visit, &mut self.sketcher)
    }

    /// Executes a node without telling its values to anybody.
    fn pass(&mut self, visit: Visit, template: Rc<Template>) -> Result<(), StepsError<S::Error>> {
        self.sketcher.template = template;
        match self.sketcher.contexts.is_flat() {
            true => self.follower.execute(visit, &mut ()),
            false => {
                let mut leaving = Leaving(&mut self.sketcher.contexts);
                self.follower.execute(visit, &mut leaving)
            }
        }
    }

    fn template(&mut self, visit: Visit) -> Result<Rc<Template>, StepsError<S::Error>> {
        let function = self.nodes[visit.node].function;
        let contexts = &mut self.sketcher.contexts;
        let context = match contexts.is_flat() {
            true => contexts.root(function),
            // The path has begun before: no activation is known.
            false => contexts
                .current()
                .unwrap_or_else(|| contexts.root(function)),
        };
        if let Some(known) = self.templates.get(&(visit.node, context)) {
            return Ok(Rc::clone(known));
        }
        let plan = self.plans.of(visit.node, &self.follower)?;
        if !self.known.contains_key(&function) {
            let defined = self.run.program.function(function);
            let defined = defined.ok_or(StepsError::NoBody(function))?;
            let all = operators(self.run.program, self.run.module, defined);
            self.known.insert(function, all);
        }
        let made = {
            let code = &self.follower.machine.codes()[visit.node];
            make(
                code,
                &plan,
                (function, context),
                &self.known[&function],
                &mut self.numbers,
                &mut self.sketcher.statements,
                &self.sketcher.taker,
            )
        };
        let made = Rc::new(made);
        self.templates
            .insert((visit.node, context), Rc::clone(&made));
        Ok(made)
    }
}

impl<S: Segments> Walk<'_, S, Sketches>
where
    S::Error: std::error::Error + 'static,
{
    /// Puts the statements in the order of the program, and finds out where their operands come from.
    fn finish(self) -> Sketched {
        let contexts = self.sketcher.contexts;
        let statements = self.sketcher.statements.into_iter();
        let statements = (0..).zip(statements);
        let mut statements = Vec::from_iter(statements.filter(|(_, s)| s.kept.values.count > 0));
        statements.sort_by_cached_key(|(_, statement)| {
            let root = contexts.of(statement.context).root;
            (
                root,
                contexts.position(statement.context, statement.place.op),
            )
        });
        let collected: FxHashMap<u32, u32> = (0..)
            .zip(&statements)
            .map(|(to, (at, _))| (*at, to))
            .collect();
        let statements = Vec::from_iter(statements.into_iter().map(|(_, statement)| statement));
        let places: Vec<Place> = statements.iter().map(|s| s.place).collect();
        let numbered = (0..).zip(&statements);
        let numbers: FxHashMap<(u32, OpId), u32> = numbered
            .map(|(number, statement)| ((statement.context, statement.place.op), number))
            .collect();
        let of = statements.iter().map(|statement| statement.context);
        let of = Vec::from_iter(of);
        let types = Types::new(self.run.program, self.run.module);
        let producers = Producers::new(self.run.program, &types, &self.known, &numbers, &contexts);
        let written = self.sketcher.taker.written.by_number(&collected);
        let known = |place: Place| &self.known[&place.function][place.op.index()];
        let sources = statements
            .iter()
            .map(|statement| match known(statement.place).class {
                Class::Store => producers.copied_from(statement.context, statement.place.op),
                _ => Vec::new(),
            });
        let mut writers = writers(&written, &Vec::from_iter(sources));
        let statements = (0..).zip(statements).map(|(number, statement)| {
            let (known, kept) = (known(statement.place), statement.kept);
            let context = contexts.of(statement.context);
            Statement {
                writers: writers.remove(&number).unwrap_or_default(),
                function: context.root.as_u32(),
                class: known.class,
                operator: known.operator,
                values: kept.values,
                operands: kept.operands,
                addresses: kept.addresses,
                exact: known.exact,
                offset: match known.class.accesses_memory() {
                    true => known.immediate,
                    false => 0,
                },
                depth: context.depth,
                ordinal: match context.caller {
                    None => statement.place.op.as_u32(),
                    Some(_) => Statement::INLINED,
                },
                first: kept.first,
                last: kept.last,
                active: kept.active,
                producers: producers.of(statement.context, statement.place.op),
            }
        });
        let typed = |function: FuncId, mut entered: Entered| {
            let mut hasher = FxHasher::default();
            let defined = self.run.program.function(function);
            defined
                .map(|defined| self.run.program.types.get(defined.ty))
                .hash(&mut hasher);
            entered.ty = hasher.finish();
            (function.as_u32(), entered)
        };
        let entered = self.sketcher.taker.entered.into_iter();
        let version = Version {
            entered: entered.map(|(f, entered)| typed(f, entered)).collect(),
            length: self.run.path.length(),
            stack: self.stack,
            statements: statements.collect(),
            bodies: bodies(&self.known, &contexts),
        };
        Sketched {
            version,
            places,
            executed: self.sketcher.taker.executed,
            numbers,
            contexts: of,
        }
    }
}

/// How much less it counts for each copy in between that a statement wrote what another one reads.
const COPIED: f32 = 0.8;
/// Most statements that are kept of those that wrote what one reads.
const WRITERS: usize = 32;

/// By load the stores that wrote what it reads, directly or through copies, ascending; and for how much that counts. `written` has the stores of each load, `sources` the loads that each store copies.
fn writers(
    written: &FxHashMap<u32, Vec<u32>>,
    sources: &[Vec<u32>],
) -> FxHashMap<u32, Box<[(u32, f32)]>> {
    let of = |&load: &u32| {
        let mut found: Vec<(u32, f32)> = Vec::new();
        let mut waiting = vec![(load, 1.0)];
        let mut next = 0;
        while let Some(&(load, counts)) = waiting.get(next) {
            next += 1;
            for &store in written.get(&load).into_iter().flatten() {
                if found.len() < WRITERS && found.iter().all(|(known, _)| *known != store) {
                    found.push((store, counts));
                    let copied = sources[store as usize].iter();
                    waiting.extend(copied.map(|&load| (load, counts * COPIED)));
                }
            }
        }
        found.sort_unstable_by_key(|(store, _)| *store);
        (load, found.into_boxed_slice())
    };
    written.keys().map(of).collect()
}

/// The operators of functions that stand by themselves.
fn bodies(known: &HashMap<FuncId, Vec<Known>>, contexts: &Contexts) -> FxHashMap<u32, Box<[u64]>> {
    let standing = known.iter();
    let standing = standing.filter(|(function, _)| contexts.known_root(**function).is_some());
    let functions = standing.map(|(function, known)| {
        let operators = known.iter().map(|known| known.operator);
        (function.as_u32(), operators.collect())
    });
    functions.collect()
}

/// What is written of a node's statements.
fn make<T: Take>(
    code: &NodeCode,
    plan: &Plan,
    (function, context): (FuncId, u32),
    known: &[Known],
    numbers: &mut FxHashMap<(u32, OpId), u32>,
    statements: &mut Vec<Collected<T::Kept>>,
    taker: &T,
) -> Template {
    let mut template = Template {
        told: Vec::new(),
        operands: Vec::new(),
        of_inst: vec![u32::MAX; code.insts.len()],
        call: None,
        numbered: false,
    };
    for item in &plan.items {
        let Some(operator) = known.get(item.op.index()) else {
            continue;
        };
        let number = *numbers.entry((context, item.op)).or_insert_with(|| {
            let place = Place {
                function,
                op: item.op,
            };
            statements.push(Collected {
                place,
                context,
                number: taker.number(context, place),
                address: Instance::NO_ADDRESS,
                decided: None,
                kept: T::begin(operator.class),
            });
            statements.len() as u32 - 1
        });
        template.numbered |= statements[number as usize].number != u32::MAX;
        let mut tell = |after: usize, from, operands: Operands| {
            template.told.push(Told {
                after: after as u32,
                statement: number,
                block: item.block,
                from,
            });
            if T::TAKEN {
                template.operands.push(operands);
            }
        };
        let none = Operands::default();
        match item.kind {
            PlanKind::Inst(at) => {
                template.of_inst[at] = number;
                let inst = &code.insts[at];
                let register = match inst.code {
                    _ if inst.code.gives() => code.first_result() + at as u32,
                    Code::Store(_) | Code::StoreVector(_) => inst.b,
                    _ if inst.code.operands() > 0 => inst.a,
                    _ => {
                        tell(at + 1, From::Nothing, none);
                        continue;
                    }
                };
                tell(
                    at + 1,
                    match operator.class {
                        Class::Test | Class::Branch => {
                            From::Truth(register, decided_by(code, known, register))
                        }
                        _ => From::Register(register),
                    },
                    Operands::of(code, inst),
                );
            }
            PlanKind::Call => {
                // Of a tail call the caller is gone when what it calls begins: that stands by itself.
                if let NodeEnd::Call { .. } = code.end {
                    template.call = Some(item.op);
                }
                let arguments = match &code.end {
                    NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => {
                        arguments
                    }
                    _ => continue,
                };
                if arguments.is_empty() {
                    tell(code.insts.len(), From::Nothing, none);
                }
                for &argument in arguments {
                    tell(code.insts.len(), From::Register(argument), none);
                }
            }
            PlanKind::Jump | PlanKind::Throw | PlanKind::Unreachable => {}
        }
    }
    template
}

/// The instruction that gives what is in a register, if one of the node does.
fn giver(code: &NodeCode, register: u32) -> Option<&Inst> {
    let at = register.checked_sub(code.first_result())?;
    code.insts.get(at as usize)
}

/// What a test compares.
fn operands(code: &NodeCode, test: &Inst) -> Compared {
    let constants = code.variables..code.first_result();
    match test.code.operands() {
        1 => Compared(test.a, None),
        _ if constants.contains(&test.b) => Compared(test.a, None),
        _ if constants.contains(&test.a) => Compared(test.b, None),
        _ => Compared(test.a, Some(test.b)),
    }
}

/// What the test compares by which a condition is decided; the condition itself if the node has no such test. Unoptimised code makes a condition 0 or 1 first, and may negate it.
fn decided_by(code: &NodeCode, known: &[Known], condition: u32) -> Compared {
    let known_of = |inst: &Inst| known.get(inst.op.index()).copied();
    let is_test = |register: u32| {
        let known = giver(code, register).and_then(known_of);
        known.is_some_and(|known| known.class == Class::Test || known.is_and)
    };
    let mut register = condition;
    while let Some(inst) = giver(code, register) {
        let Some(known) = known_of(inst) else { break };
        match (known.class, inst.code.operands()) {
            (Class::Test, 1) if is_test(inst.a) => register = inst.a,
            (Class::Test, _) => return operands(code, inst),
            _ if known.is_and && is_test(inst.a) => register = inst.a,
            _ => break,
        }
    }
    Compared(register, None)
}
