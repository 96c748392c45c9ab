//! A run, followed once, as sketches of its statements.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, PrimaryMap};
use afterimage_machine::{Code, Inst, NodeCode, NodeEnd, Observer, Range};
use afterimage_matching::{Active, Class, Instance, Sketch, Statement, Version};
use afterimage_trace::LogReader;
use afterimage_wpp::{Node, Segments, Visit};
use rustc_hash::FxHashMap;
use wasmparser::ValType;

use super::code::{Known, operators};
use super::diverge::{Keeper, Kept, Stretch};
use super::producers::Producers;
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
    /// Where each is: ascending.
    pub places: Vec<Place>,
    /// How many statements were executed, all executions counted.
    pub executed: u64,
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
    /// By instruction, the statement; `u32::MAX` for none.
    of_inst: Vec<u32>,
}

/// A statement's sketches while the run is followed.
#[derive(Debug)]
pub(crate) struct Collected {
    pub place: Place,
    pub class: Class,
    /// Its number in a version that is known.
    pub number: u32,
    /// Where it accessed memory last.
    pub address: u64,
    /// What is added to the address that it takes.
    offset: u64,
    exact: u64,
    operator: u64,
    values: Sketch,
    operands: Option<Box<Sketch>>,
    addresses: Option<Box<Sketch>>,
    first: u64,
    last: u64,
    active: Active,
    /// How a test was decided first.
    decided: Option<bool>,
}

/// What is done with the values that statements give.
pub(crate) trait Take {
    /// The number of a statement in the version that is known, if there is one.
    fn number(&self, _: Place) -> u32 {
        u32::MAX
    }

    fn take(&mut self, statement: &mut Collected, given: Given, time: u64);
    fn access(&mut self, statement: &mut Collected, address: u64);
}

/// Sketches them.
#[derive(Default)]
struct Sketches {
    executed: u64,
    /// Which part of the run it is.
    window: usize,
}

impl Take for Sketches {
    #[inline(always)]
    fn take(&mut self, statement: &mut Collected, given: Given, time: u64) {
        if statement.values.count == 0 {
            statement.first = time;
        }
        statement.last = time;
        statement.active.set(self.window);
        self.executed += 1;
        statement.values.add(given.compared);
        if let (Some(operands), Some(value)) = (statement.operands.as_mut(), given.operands) {
            operands.add(value);
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected, address: u64) {
        if let Some(addresses) = statement.addresses.as_mut() {
            addresses.add(address);
        }
    }
}

impl Take for Keeper {
    fn take(&mut self, statement: &mut Collected, given: Given, time: u64) {
        self.add(statement.place, given.compared, given.value, time);
    }

    fn access(&mut self, _: &mut Collected, _: u64) {}
}

pub(crate) struct Sketcher<T> {
    pub taker: T,
    statements: Vec<Collected>,
    template: Rc<Template>,
    start: u64,
}

impl<T: Take> Sketcher<T> {
    fn new(taker: T) -> Self {
        Self {
            taker,
            statements: Vec::new(),
            template: Rc::default(),
            start: 0,
        }
    }

    #[inline(always)]
    fn told(&mut self, executed: usize, low: &[u64]) {
        for told in &self.template.told {
            if told.after as usize > executed {
                break;
            }
            let statement = &mut self.statements[told.statement as usize];
            let time = self.start + u64::from(told.block);
            let given = match told.from {
                From::Register(register) => Given {
                    compared: low[register as usize],
                    value: low[register as usize],
                    operands: None,
                },
                From::Nothing => Given {
                    compared: 0,
                    value: 0,
                    operands: None,
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
                    }
                }
            };
            self.taker.take(statement, given, time);
        }
    }

    #[inline(always)]
    fn accessed(&mut self, inst: usize, range: Range) {
        let statement = self.template.of_inst.get(inst).copied();
        if let Some(known) = statement.and_then(|at| self.statements.get_mut(at as usize)) {
            self.taker.access(known, range.address);
        }
    }
}

impl<T: Take> Observer for Sketcher<T> {
    fn read(&mut self, inst: usize, range: Range) {
        self.accessed(inst, range);
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.accessed(inst, range);
    }

    fn done(&mut self, _: &NodeCode, low: &[u64], _: &[u64]) {
        self.told(usize::MAX, low);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, low: &[u64], _: &[u64]) {
        self.told(executed, low);
    }
}

/// Follows a run from its beginning to its end and sketches every statement. Jumps and returns are none: they have no values.
///
/// Time is linear in the run; memory is the machine's and some 600 bytes for each statement of the program that is executed.
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
    let mut walk = Walk::new(run, log, Sketches::default())?;
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
    stretches: &[Stretch],
) -> Result<Vec<Vec<Kept>>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut walk = Walk::new(run, log, Keeper::new(stretches))?;
    while let Some(visit) = walk.follower.next()? {
        let template = walk.template(visit)?;
        let wanted = template.told.iter().any(|told| {
            let statement = &walk.sketcher.statements[told.statement as usize];
            walk.sketcher.taker.wants(statement.place)
        });
        match wanted {
            true => walk.execute(visit)?,
            false => walk.follower.execute(visit, &mut ())?,
        }
    }
    Ok(walk.sketcher.taker.kept())
}

pub(crate) struct Walk<'a, S: Segments, T> {
    pub follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    run: Run<'a, S>,
    nodes: &'a PrimaryMap<NodeId, Node>,
    templates: Vec<Option<Rc<Template>>>,
    known: HashMap<FuncId, Vec<Known>>,
    numbers: HashMap<(FuncId, OpId), u32>,
    pub sketcher: Sketcher<T>,
    /// Where the stack begins, from which it grows down; 0 if that is not known.
    stack: u64,
}

impl<'a, S: Segments, T: Take> Walk<'a, S, T>
where
    S::Error: std::error::Error + 'static,
{
    pub fn new(run: Run<'a, S>, log: LogReader, taker: T) -> Result<Self, StepsError<S::Error>> {
        Ok(Self {
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            run,
            nodes: run.path.nodes(),
            templates: vec![None; run.path.nodes().len()],
            known: HashMap::new(),
            numbers: HashMap::new(),
            sketcher: Sketcher::new(taker),
            stack: 0,
        })
    }

    pub fn execute(&mut self, visit: Visit) -> Result<(), StepsError<S::Error>> {
        self.sketcher.template = self.template(visit)?;
        self.sketcher.start = visit.start;
        self.follower.execute(visit, &mut self.sketcher)
    }

    fn template(&mut self, visit: Visit) -> Result<Rc<Template>, StepsError<S::Error>> {
        if let Some(Some(known)) = self.templates.get(visit.node.index()) {
            return Ok(Rc::clone(known));
        }
        let plan = self.plans.of(visit.node, &self.follower)?;
        let function = self.nodes[visit.node].function;
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
                function,
                &self.known[&function],
                &mut self.numbers,
                &mut self.sketcher.statements,
                &self.sketcher.taker,
            )
        };
        let made = Rc::new(made);
        self.templates[visit.node.index()] = Some(Rc::clone(&made));
        Ok(made)
    }
}

impl<S: Segments> Walk<'_, S, Sketches>
where
    S::Error: std::error::Error + 'static,
{
    /// Puts the statements in the order of the program, and finds out where their operands come from.
    fn finish(self) -> Sketched {
        let mut statements = self.sketcher.statements;
        statements.retain(|statement| statement.values.count > 0);
        statements.sort_unstable_by_key(|statement| statement.place);
        let places: Vec<Place> = statements.iter().map(|s| s.place).collect();
        let numbered = (0..).zip(&places);
        let numbers: HashMap<(FuncId, OpId), u32> = numbered
            .map(|(number, place)| ((place.function, place.op), number))
            .collect();
        let types = Types::new(self.run.program, self.run.module);
        let producers = Producers::new(self.run.program, &types, &self.known, &numbers);
        let statements = statements.into_iter().map(|statement| Statement {
            function: statement.place.function.as_u32(),
            class: statement.class,
            operator: statement.operator,
            values: statement.values,
            operands: statement.operands,
            addresses: statement.addresses,
            exact: statement.exact,
            offset: statement.offset,
            ordinal: statement.place.op.as_u32(),
            first: statement.first,
            last: statement.last,
            active: statement.active,
            producers: producers.of(statement.place.function, statement.place.op),
        });
        Sketched {
            version: Version {
                length: self.run.path.length(),
                stack: self.stack,
                statements: statements.collect(),
                bodies: bodies(&self.known),
            },
            places,
            executed: self.sketcher.taker.executed,
        }
    }
}

/// The operators of functions.
fn bodies(known: &HashMap<FuncId, Vec<Known>>) -> FxHashMap<u32, Box<[u64]>> {
    let functions = known.iter().map(|(function, known)| {
        let operators = known.iter().map(|known| known.operator);
        (function.as_u32(), operators.collect())
    });
    functions.collect()
}

/// What is written of a node's statements.
fn make(
    code: &NodeCode,
    plan: &Plan,
    function: FuncId,
    known: &[Known],
    numbers: &mut HashMap<(FuncId, OpId), u32>,
    statements: &mut Vec<Collected>,
    taker: &impl Take,
) -> Template {
    let mut template = Template {
        told: Vec::new(),
        of_inst: vec![u32::MAX; code.insts.len()],
    };
    for item in &plan.items {
        let Some(operator) = known.get(item.op.index()) else {
            continue;
        };
        let number = *numbers.entry((function, item.op)).or_insert_with(|| {
            let accesses = matches!(operator.class, Class::Load | Class::Store);
            let place = Place {
                function,
                op: item.op,
            };
            statements.push(Collected {
                place,
                number: taker.number(place),
                address: Instance::NO_ADDRESS,
                class: operator.class,
                operator: operator.operator,
                exact: operator.exact,
                offset: if accesses { operator.immediate } else { 0 },
                values: Sketch::default(),
                operands: matches!(operator.class, Class::Test | Class::Branch).then(Box::default),
                addresses: accesses.then(Box::default),
                first: 0,
                last: 0,
                active: Active::default(),
                decided: None,
            });
            statements.len() as u32 - 1
        });
        let mut tell = |after: usize, from| {
            template.told.push(Told {
                after: after as u32,
                statement: number,
                block: item.block,
                from,
            });
        };
        match item.kind {
            PlanKind::Inst(at) => {
                template.of_inst[at] = number;
                let inst = &code.insts[at];
                let register = match inst.code {
                    _ if inst.code.gives() => code.first_result() + at as u32,
                    Code::Store(_) | Code::StoreVector(_) => inst.b,
                    _ if inst.code.operands() > 0 => inst.a,
                    _ => {
                        tell(at + 1, From::Nothing);
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
                );
            }
            PlanKind::Call => {
                let arguments = match &code.end {
                    NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => {
                        arguments
                    }
                    _ => continue,
                };
                if arguments.is_empty() {
                    tell(code.insts.len(), From::Nothing);
                }
                for &argument in arguments {
                    tell(code.insts.len(), From::Register(argument));
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
