//! A run, followed once, as sketches of its statements.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, PrimaryMap};
use afterimage_machine::{Code, NodeCode, NodeEnd, Observer, Range};
use afterimage_matching::{Active, Class, Sketch, Statement, Version};
use afterimage_trace::LogReader;
use afterimage_wpp::{Node, Segments, Visit};
use rustc_hash::FxHashMap;

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
    /// Whether the value in this register is 0 or not.
    Truth(u32),
    /// Nothing but that it was executed.
    Nothing,
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
struct Collected {
    place: Place,
    class: Class,
    operator: u64,
    values: Sketch,
    addresses: Option<Box<Sketch>>,
    first: u64,
    last: u64,
    active: Active,
    /// How a test was decided first.
    decided: Option<bool>,
}

/// What is done with the values that statements give.
trait Take {
    fn take(&mut self, statement: &mut Collected, compared: u64, value: u64, time: u64);
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
    fn take(&mut self, statement: &mut Collected, compared: u64, _: u64, time: u64) {
        if statement.values.count == 0 {
            statement.first = time;
        }
        statement.last = time;
        statement.active.set(self.window);
        self.executed += 1;
        statement.values.add(compared);
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected, address: u64) {
        if let Some(addresses) = statement.addresses.as_mut() {
            addresses.add(address);
        }
    }
}

impl Take for Keeper {
    fn take(&mut self, statement: &mut Collected, compared: u64, value: u64, time: u64) {
        self.add(statement.place, compared, value, time);
    }

    fn access(&mut self, _: &mut Collected, _: u64) {}
}

struct Sketcher<T> {
    taker: T,
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
            let (compared, value) = match told.from {
                From::Register(register) => (low[register as usize], low[register as usize]),
                From::Nothing => (0, 0),
                From::Truth(register) => {
                    let value = low[register as usize];
                    let truth = value as u32 != 0;
                    let decided = *statement.decided.get_or_insert(truth);
                    (u64::from(truth != decided), value)
                }
            };
            self.taker.take(statement, compared, value, time);
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
    while let Some(visit) = walk.follower.next()? {
        walk.sketcher.taker.window = Active::window(visit.start, length);
        walk.execute(visit)?;
    }
    Ok(walk.finish())
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

struct Walk<'a, S: Segments, T> {
    follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    run: Run<'a, S>,
    nodes: &'a PrimaryMap<NodeId, Node>,
    templates: Vec<Option<Rc<Template>>>,
    known: HashMap<FuncId, Vec<Known>>,
    numbers: HashMap<(FuncId, OpId), u32>,
    sketcher: Sketcher<T>,
}

impl<'a, S: Segments, T: Take> Walk<'a, S, T>
where
    S::Error: std::error::Error + 'static,
{
    fn new(run: Run<'a, S>, log: LogReader, taker: T) -> Result<Self, StepsError<S::Error>> {
        Ok(Self {
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            run,
            nodes: run.path.nodes(),
            templates: vec![None; run.path.nodes().len()],
            known: HashMap::new(),
            numbers: HashMap::new(),
            sketcher: Sketcher::new(taker),
        })
    }

    fn execute(&mut self, visit: Visit) -> Result<(), StepsError<S::Error>> {
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
            addresses: statement.addresses,
            ordinal: statement.place.op.as_u32(),
            first: statement.first,
            last: statement.last,
            active: statement.active,
            producers: producers.of(statement.place.function, statement.place.op),
        });
        Sketched {
            version: Version {
                length: self.run.path.length(),
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
            statements.push(Collected {
                place: Place {
                    function,
                    op: item.op,
                },
                class: operator.class,
                operator: operator.operator,
                values: Sketch::default(),
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
                        Class::Test | Class::Branch => From::Truth(register),
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
