//! Makes sketches of a run's statements by following it once.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use afterimage_ids::{EntityRef, FuncId, OpId};
use afterimage_machine::Range;
use afterimage_matching::{Active, Class, Entered, Sketch, Statement, Version};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use rustc_hash::{FxHashMap, FxHasher};

use super::batches::follow_taking;
use super::code::OperatorFacts;
use super::contexts::Contexts;
use super::keeper::{Keeper, Kept, Stretch};
use super::producers::Producers;
use super::take::{Collected, ComparedValue, StatementSite, Take, Taking};
use super::walk::{Walk, Walked};
use super::written::Written;
use afterimage_replay::steps::{Run, StepsError};
use afterimage_replay::values::Types;

/// A version of a program that was executed, with the places of its statements.
#[derive(Debug, Default)]
pub struct Sketched {
    /// The version, with the sketches of its statements.
    pub version: Version,
    /// The place of each statement. Places are ascending unless statements are separated by calls.
    pub places: Vec<StatementSite>,
    /// The total number of executions of all statements.
    pub executed: u64,
    /// The statement of each operator in each context. Without contexts, the first number is the
    /// function's number in the order of entry.
    pub(super) numbers: FxHashMap<(u32, OpId), u32>,
    /// The context of each statement.
    pub(super) contexts: Vec<u32>,
}

impl Sketched {
    /// Returns, for each statement of `apart`, its number in `self`. `apart` has the statements of
    /// the same run, separated by calls. Returns `None` if the runs differ.
    pub(super) fn numbers_of(&self, apart: &Self) -> Option<Vec<u32>> {
        let places = apart.places.iter();
        let known = places.map(|place| Some(self.places.binary_search(place).ok()? as u32));
        known.collect()
    }
}

/// The collected sketches of a statement.
#[derive(Debug)]
struct Summary {
    values: Box<Sketch>,
    operands: Option<Box<Sketch>>,
    addresses: Option<Box<Sketch>>,
    first: u64,
    last: u64,
    active: Active,
}

/// A receiver of values that sketches statements.
#[derive(Default)]
struct Sketches {
    executed: u64,
    /// The length of the run.
    length: u64,
    /// The number of the current part of the run.
    window: usize,
    /// The time at which the next part begins.
    behind: u64,
    written: Written,
    entered: FxHashMap<FuncId, Entered>,
}

impl Sketches {
    /// Creates sketches for a run of this length.
    fn of(length: u64) -> Self {
        Self {
            length,
            ..Self::default()
        }
    }
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
    fn take(&mut self, statement: &mut Collected<Summary>, given: ComparedValue, time: u64) {
        let kept = &mut statement.kept;
        if kept.values.count == 0 {
            kept.first = time;
        }
        kept.last = time;
        if time >= self.behind {
            self.window = Active::window(time, self.length);
            self.behind = Active::behind(self.window, self.length);
        }
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

/// Follows a run from beginning to end and sketches every statement, on another thread if possible.
/// Jumps and returns are not sketched, because they have no values.
///
/// Time is linear in the run. Needs memory for the machine, one more byte for each byte that the
/// guest writes to, and 1,000 to 2,000 bytes for each executed statement.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn version<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<Sketched, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    in_contexts(run, log, None)
}

/// Like [`version`], but treats functions that do not stand alone as inlined. Their statements are
/// separated by the calls through which they are executed. `standing` is `None` if all functions
/// stand alone.
pub(super) fn in_contexts<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    standing: Option<&HashSet<FuncId>>,
) -> Result<Sketched, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let sketches = Sketches::of(run.path.length());
    let walked = follow_taking(run, log, sketches, standing)?;
    Ok(finish(run, walked))
}

/// Follows a run and keeps executions of chosen statements.
pub(super) fn values_of<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    standing: Option<&HashSet<FuncId>>,
    stretches: &[Stretch],
) -> Result<Vec<Vec<Kept>>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let keeper = Taking::new(Keeper::new(stretches));
    let walked = Walk::within(run, log, keeper, standing)?.follow_known()?;
    Ok(walked.listener.taker.kept())
}

/// Sorts the statements by their order in the program, and finds where their operands come from.
fn finish<S: Segments>(run: Run<'_, S>, walked: Walked<Taking<Sketches>>) -> Sketched {
    let Walked {
        listener,
        contexts,
        known: all_known,
        stack,
    } = walked;
    let Sketches {
        written,
        entered,
        executed,
        ..
    } = listener.taker;
    let statements = listener.statements.into_iter();
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
    let places: Vec<StatementSite> = statements.iter().map(|s| s.place).collect();
    let numbered = (0..).zip(&statements);
    let numbers: FxHashMap<(u32, OpId), u32> = numbered
        .map(|(number, statement)| ((statement.context, statement.place.op), number))
        .collect();
    let of = statements.iter().map(|statement| statement.context);
    let of = Vec::from_iter(of);
    let types = Types::new(run.program, run.module);
    let producers = Producers::new(run.program, &types, &all_known, &numbers, &contexts);
    let written = written.by_number(&collected);
    let known = |place: StatementSite| &all_known[&place.function][place.op.index()];
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
            offset: if known.class.accesses_memory() {
                known.immediate
            } else {
                0
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
        let defined = run.program.function(function);
        defined
            .map(|defined| run.program.types.get(defined.ty))
            .hash(&mut hasher);
        entered.ty = hasher.finish();
        (function.as_u32(), entered)
    };
    let entered = entered.into_iter();
    let version = Version {
        entered: entered.map(|(f, entered)| typed(f, entered)).collect(),
        length: run.path.length(),
        stack,
        statements: statements.collect(),
        bodies: bodies(&all_known, &contexts),
    };
    Sketched {
        version,
        places,
        executed,
        numbers,
        contexts: of,
    }
}

/// The factor by which each intermediate copy weakens the evidence that a statement wrote another
/// statement's input.
const COPIED: f32 = 0.8;
/// The maximum number of writers kept for one reader.
const WRITERS: usize = 32;

/// Returns, for each load, the stores that wrote its data, directly or through copies, ascending
/// and with their weights. `written` contains the stores of each load; `sources` contains the loads
/// that each store copies.
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

/// Returns the operators of the functions that stand alone.
fn bodies(
    known: &HashMap<FuncId, Vec<OperatorFacts>>,
    contexts: &Contexts,
) -> FxHashMap<u32, Box<[u64]>> {
    let standing = known.iter();
    let standing = standing.filter(|(function, _)| contexts.known_root(**function).is_some());
    let functions = standing.map(|(function, known)| {
        let operators = known.iter().map(|known| known.operator);
        (function.as_u32(), operators.collect())
    });
    functions.collect()
}
