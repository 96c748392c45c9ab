//! Finds when a condition about variables holds.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_present::document::objects::Function;
use afterimage_present::values::{
    ConditionInstance, ConditionReport, ConditionValue, VariableMissing,
};
use afterimage_profile::location::Place;
use afterimage_program::{Names, SourceMap};
use afterimage_record::Progress;
use afterimage_replay::state::{
    Begun, Bodies, Condition, ConditionNumber, Evaluated, FunctionScopes, Held, Limits, Moment,
    NumberType, Object, Occasion, Path, PathError, Rank, Shape, Truth, TypeRef, Variables, Watch,
    follow_to,
};
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::ValuesQuery;
use super::changed::changed;
use super::variable::{is_of_types, known, named_place, never, occasions, unwatched};
use crate::Session;
use crate::monitor::Work;
use crate::steps::follow;

/// Asks when a condition about variables holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionQuery {
    /// The condition: `fee < 0 && a->balance > 10`.
    pub condition: String,
    /// The place and the moments.
    #[serde(flatten)]
    pub values: ValuesQuery,
    /// The times to report, among the times at which the condition holds.
    pub wanted: Wanted,
}

/// A selection of the times at which a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// All times. Only the first times are listed.
    #[default]
    All,
    /// The first time.
    First,
    /// The last time.
    Last,
    /// Only the number of times.
    Count,
}

/// The smallest and the largest number of moments to examine in one pass. The first passes are
/// short, because the answer may be among the first moments. Later passes are longer, because each
/// pass begins by restoring memory.
const AT_ONCE: RangeInclusive<u64> = 1 << 12..=1 << 16;

/// The limits for the part of a string that is compared.
const LIMITS: Limits = Limits {
    string: 1 << 12,
    ..Limits::DEFAULT
};

/// The result at a moment: whether the condition holds, and the values of the variables if it holds
/// and times are listed.
pub(crate) type Found = (Truth, Vec<Result<Held, PathError>>);

impl ConditionQuery {
    /// Creates a query for all times at which a condition holds at a place.
    pub fn new(condition: impl Into<String>, at: impl Into<String>) -> Self {
        Self {
            condition: condition.into(),
            values: ValuesQuery::new(at),
            wanted: Wanted::All,
        }
    }

    pub(crate) fn answer(&self, session: &Session) -> Result<ConditionReport> {
        let (text, query) = (&self.condition, &self.values);
        let condition: Condition = text
            .parse()
            .map_err(|error| anyhow!("--where '{text}': {error}"))?;
        let source = session.source_map();
        let names = session.program_names();
        let place = named_place(session, names, source, query)?;
        let variables = session.variables()?;
        let first_path = first_variable(session, (&condition, &place.place), variables, names)?;
        let Some(first_path) = first_path else {
            bail!("--where '{text}' names no variable, so it either always or never holds");
        };
        let values = session.values()?;
        let (all, happened) = occasions(session, &values, names, source, place.place.clone())?;
        let count = all.count();
        let by = |time| Ok(all.by(time)?);
        let (first, last) = place.which.range(count, (&place.at, happened), by)?;
        let listed = match self.wanted {
            Wanted::All => query.most(place.which),
            Wanted::First | Wanted::Last => 1,
            Wanted::Count => 0,
        };
        let changed = match place.place {
            Place::Line(line, _) if first <= last => {
                let samples = [first, last].map(|number| all.get(&values, number));
                let samples = samples.into_iter().filter_map(Result::transpose);
                let samples = samples.collect::<Result<Vec<_>, _>>()?;
                let variables = condition.paths.iter().map(|(name, _)| name.as_str());
                let variables = Vec::from_iter(variables);
                let of = (&condition, first_path);
                changed(session, source, &variables, (line, &samples), |moments| {
                    texts(session, names, of, moments)
                })?
            }
            Place::Function(_) | Place::Operator(..) | Place::Line(..) => None,
        };
        let total = (last + 1).saturating_sub(first);
        let doing = "testing each execution";
        let work = match self.wanted.is_one() {
            true => Work::Search(doing),
            false => Work::Question(doing),
        };
        let scan = Scan {
            session,
            condition: &condition,
            first_path,
            place: &place.place,
            names,
            source,
            listed,
            wanted: self.wanted,
            progress: session.monitor().begin(work, Some(total)),
            shared: Mutex::new(Shared::new(first..=last, self.wanted == Wanted::Last)),
        };
        let shared = scan.run(total)?;
        let mut tally = Tally::default();
        for part in shared.parts.into_values() {
            tally.merge(part, listed);
            if self.wanted.is_one() && tally.holds > 0 {
                break;
            }
        }
        let checked = shared.reasons.check(&condition);
        checked.with_context(|| format!("--where '{text}'"))?;
        let unknown = tally.unknown.into_iter();
        let unknown = unknown.map(|(unavailable, times)| VariableMissing { unavailable, times });
        Ok(ConditionReport {
            condition: text.clone(),
            at: place.at,
            count,
            looked_at: tally.looked_at,
            holds: tally.holds,
            unknown: unknown.collect(),
            more: match self.wanted {
                Wanted::Count => 0,
                _ => tally.holds - tally.instances.len() as u64,
            },
            instances: tally.instances,
            changed,
            happened,
        })
    }
}

/// Returns the first path in a condition that begins with a variable.
///
/// # Errors
/// Returns an error if the condition refers to something unknown at the place.
pub(crate) fn first_variable<'c>(
    session: &Session,
    (condition, place): (&'c Condition, &Place),
    variables: &Variables<'_>,
    names: &Names,
) -> Result<Option<&'c Path>> {
    let mut first = None;
    for (written, path) in &condition.paths {
        match known(session, variables, path, names, place) {
            Ok(()) if !is_empty_optional(written) => first = first.or(Some(path)),
            Ok(()) => {}
            Err(why) if constant(variables, (written, path)).is_none() => return Err(why),
            Err(_) => {}
        }
    }
    Ok(first)
}

/// Returns the text of each of a condition's variables at each of these moments.
fn texts(
    session: &Session,
    names: &Names,
    (condition, first_path): (&Condition, &Path),
    moments: &[Occasion],
) -> Result<Vec<Vec<Option<String>>>> {
    let (loaded, values) = (session.module(), session.values()?);
    let variables = Variables::open(&loaded.bytes)?;
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let called = |function: FuncId| names.short(function);
    let (program, path) = (&loaded.program, first_path.clone());
    let watch = Watch::new(program, &bodies, &values, &variables, &called, path);
    let look = Look::new(condition, &variables, true);
    let found = watch.at_each(
        moments,
        |halts, show| follow(session, |run, log| Ok(follow_to(run, log, halts, show)?)),
        |moment, scopes| {
            let held = (0..condition.paths.len()).map(|at| look.held(at, moment, scopes, true));
            Vec::from_iter(held.map(|held| held.ok().map(|held| held.text)))
        },
    );
    let rows = found.map_err(unwatched)?.into_iter();
    Ok(rows.map(|row| row.value.unwrap_or_default()).collect())
}

impl Wanted {
    fn is_one(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }
}

/// A scan of all times at a place, on all processors. Each thread takes chunks of the times until
/// none is left.
struct Scan<'s> {
    session: &'s Session,
    condition: &'s Condition,
    first_path: &'s Path,
    place: &'s Place,
    names: &'s Names,
    source: &'s SourceMap<'s>,
    /// The maximum number of times to list.
    listed: u64,
    wanted: Wanted,
    progress: Progress,
    shared: Mutex<Shared>,
}

/// The data shared by the threads of a scan.
struct Shared {
    /// The numbers of the times that no thread has taken yet.
    left: RangeInclusive<u64>,
    backwards: bool,
    /// The number of chunks taken so far.
    taken: usize,
    /// The results of the chunks, by number.
    parts: BTreeMap<usize, Tally>,
    reasons: Reasons,
    looked_at: u64,
}

impl Shared {
    fn new(left: RangeInclusive<u64>, backwards: bool) -> Self {
        Self {
            left,
            backwards,
            taken: 0,
            parts: BTreeMap::new(),
            reasons: Reasons::default(),
            looked_at: 0,
        }
    }

    /// Prevents threads from taking further chunks.
    fn stop(&mut self) {
        self.left = RangeInclusive::new(1, 0);
    }

    /// Returns the next chunk and its number. Chunks double in length up to a maximum. They get
    /// shorter near the end, so that all threads have work until then.
    fn take(&mut self, threads: usize) -> Option<(usize, RangeInclusive<u64>)> {
        let (&first, &last) = (self.left.start(), self.left.end());
        if self.left.is_empty() {
            return None;
        }
        let (least, most) = AT_ONCE.into_inner();
        let share = (last - first) / (2 * threads as u64);
        let doubled = least << self.taken.min(32);
        let more = doubled.min(most).min(share).max(least) - 1;
        let chunk = if self.backwards {
            last.saturating_sub(more).max(first)..=last
        } else {
            first..=last.min(first.saturating_add(more))
        };
        self.left = if self.backwards {
            first..=chunk.start() - 1
        } else {
            chunk.end() + 1..=last
        };
        self.taken += 1;
        Some((self.taken - 1, chunk))
    }
}

impl Scan<'_> {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Examines the place at `total` times, on several threads.
    fn run(self, total: u64) -> Result<Shared> {
        let chunks = usize::try_from(total.div_ceil(*AT_ONCE.start())).unwrap_or(usize::MAX);
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(chunks);
        let failed = Mutex::new(None);
        let work = || {
            if let Err(error) = self.work(threads) {
                // The other threads end after the chunks that they have taken.
                self.shared().stop();
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // If no thread can be started, this thread does all the work.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(self
                .shared
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Takes and examines chunks until none is left. Each thread runs this.
    fn work(&self, threads: usize) -> Result<()> {
        let (session, names) = (self.session, self.names);
        let loaded = session.module();
        // Each thread has its own `Variables`, because threads that share caches wait for each
        // other.
        let variables = Variables::open(&loaded.bytes)?;
        let values = session.values()?;
        let (all, _) = occasions(session, &values, names, self.source, self.place.clone())?;
        let bodies = Bodies::new(&loaded.program, &loaded.bytes);
        let called = |function: FuncId| names.short(function);
        let (program, path) = (&loaded.program, self.first_path.clone());
        let watch = Watch::new(program, &bodies, &values, &variables, &called, path);
        let look = Look::new(self.condition, &variables, self.listed > 0);
        loop {
            let taken = self.shared().take(threads);
            let Some((position, numbers)) = taken else {
                let reasons = look.reasons.into_inner();
                self.shared().reasons.merge(reasons);
                return Ok(());
            };
            let mut wanted = Vec::with_capacity((numbers.end() - numbers.start() + 1) as usize);
            for number in numbers {
                wanted.extend(all.get(&values, number)?);
            }
            let rows = watch.at_each(
                &wanted,
                |halts, show| follow(session, |run, log| Ok(follow_to(run, log, halts, show)?)),
                |moment, scopes| look.found(moment, scopes),
            );
            let mut rows = rows.map_err(unwatched)?;
            if self.wanted == Wanted::Last {
                rows.reverse();
            }
            let mut tally = Tally::default();
            for row in rows {
                tally.add(row, self);
                if self.wanted.is_one() && tally.holds > 0 {
                    break;
                }
            }
            let mut shared = self.shared();
            if self.wanted.is_one() && tally.holds > 0 {
                shared.stop();
            }
            shared.looked_at += tally.looked_at;
            (self.progress)(shared.looked_at);
            shared.parts.insert(position, tally);
        }
    }
}

/// The counts and the listed times of a chunk.
#[derive(Default)]
struct Tally {
    looked_at: u64,
    holds: u64,
    unknown: BTreeMap<String, u64>,
    instances: Vec<ConditionInstance>,
}

impl Tally {
    fn add(&mut self, row: Evaluated<Found>, scan: &Scan<'_>) {
        self.looked_at += 1;
        let (truth, held) = match row.value {
            Ok(found) => found,
            Err(why) => (Truth::Unknown(why.to_string()), Vec::new()),
        };
        match truth {
            Truth::False => return,
            Truth::Unknown(why) => {
                *self.unknown.entry(why).or_default() += 1;
                return;
            }
            Truth::True => self.holds += 1,
        }
        if (self.instances.len() as u64) < scan.listed {
            let named = scan.condition.paths.iter().zip(held);
            let named = named.filter(|(_, held)| !held.as_ref().is_ok_and(|it| it.is_constant));
            self.instances.push(ConditionInstance {
                number: row.number,
                t: row.time,
                function: Function::new(scan.names, row.function),
                values: named.map(|((name, _), held)| value(name, held)).collect(),
            });
        }
    }

    /// Adds the results of the next chunk, and keeps at most `listed` instances in total.
    fn merge(&mut self, next: Self, listed: u64) {
        self.looked_at += next.looked_at;
        self.holds += next.holds;
        for (why, times) in next.unknown {
            *self.unknown.entry(why).or_default() += times;
        }
        let room = listed.saturating_sub(self.instances.len() as u64);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.instances.extend(next.instances.into_iter().take(room));
    }
}

/// The reason why each path of a condition never had a value. The outer value is `None` if the path
/// was not examined. The inner value is `None` if the path had a value, or if the reasons differed.
#[derive(Default)]
struct Reasons(Vec<Option<Option<PathError>>>);

impl Reasons {
    fn none(condition: &Condition) -> Self {
        Self(vec![None; condition.paths.len()])
    }

    /// Records whether a path had a value and, if not, why.
    fn seen(&mut self, number: usize, why: Option<&PathError>) {
        // A value that is merely unavailable may have the right type.
        if why.is_some_and(|why| !is_of_types(why)) {
            return;
        }
        if let Some(known) = self.0.get_mut(number) {
            match known {
                Some(None) => {}
                Some(Some(known)) if Some(&*known) == why => {}
                Some(known) => *known = None,
                None => *known = Some(why.cloned()),
            }
        }
    }

    /// Adds the results of another thread.
    fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for (number, seen) in other.0.into_iter().enumerate() {
            if let Some(why) = seen {
                self.seen(number, why.as_ref());
            }
        }
    }

    /// Refuses a variable that can never have a value.
    fn check(&self, condition: &Condition) -> Result<()> {
        for ((name, _), why) in condition.paths.iter().zip(&self.0) {
            let why = why.as_ref().and_then(Option::as_ref);
            if let Some(why) = never([why].into_iter()) {
                bail!("{name}: {why}");
            }
        }
        Ok(())
    }
}

fn value(name: &str, held: Result<Held, PathError>) -> ConditionValue {
    let name = name.to_owned();
    match held {
        Ok(held) => ConditionValue {
            name,
            value: Some(held.text),
            unavailable: None,
        },
        Err(why) => ConditionValue {
            name,
            value: None,
            unavailable: Some(why.to_string()),
        },
    }
}

/// Finds out whether a condition holds.
pub(crate) struct Look<'l, 'a> {
    condition: &'l Condition,
    variables: &'l Variables<'a>,
    /// The beginning of each path, by path and place.
    begun: RefCell<HashMap<(usize, FuncId, OrigOffset), Rc<Begun>>>,
    /// The constants that paths name, by path.
    constants: RefCell<HashMap<usize, Option<Held>>>,
    /// The type of each path's last value, if it is one number.
    number_types: RefCell<Vec<Option<LastType>>>,
    /// Whether to list the times at which the condition holds, with the values of all variables.
    lists: bool,
    reasons: RefCell<Reasons>,
    /// The number of remaining times at which all paths are examined.
    first: Cell<u32>,
}

/// The type of a value, and its type as a number if it is one number.
type LastType = (TypeRef, Option<NumberType>);

impl<'l, 'a> Look<'l, 'a> {
    /// Creates an examiner of moments. With `lists`, it also collects the values of the variables
    /// when the condition holds.
    pub(crate) fn new(condition: &'l Condition, variables: &'l Variables<'a>, lists: bool) -> Self {
        Self {
            condition,
            variables,
            begun: RefCell::default(),
            constants: RefCell::default(),
            number_types: RefCell::new(vec![None; condition.paths.len()]),
            lists,
            reasons: RefCell::new(Reasons::none(condition)),
            first: Cell::new(2),
        }
    }

    /// Returns the value of the condition at a moment as text, or why it has none.
    pub(crate) fn result(
        &self,
        moment: &Moment<'_, '_>,
        scopes: &FunctionScopes,
    ) -> Result<String, String> {
        self.condition
            .result(|path| self.held(path, moment, scopes, true))
    }

    /// Refuses a variable that can never have a value.
    pub(crate) fn check(&self) -> Result<()> {
        self.reasons.borrow().check(self.condition)
    }

    /// Returns whether the condition holds at a moment, and the values of its variables.
    pub(crate) fn found(&self, moment: &Moment<'_, '_>, scopes: &FunctionScopes) -> Found {
        let look = |number, with_text| {
            let held = self.held(number, moment, scopes, with_text);
            // Without memory, a container cannot be distinguished from other structures.
            if moment.contents.is_enough() {
                let mut reasons = self.reasons.borrow_mut();
                reasons.seen(number, held.as_ref().err());
            }
            held
        };
        let all = || Vec::from_iter((0..self.condition.paths.len()).map(|path| look(path, true)));
        // At the first moments, examine all paths, to detect early those that can never have a
        // value.
        if self.first.get() > 0 {
            all();
            if moment.contents.is_enough() {
                self.first.set(self.first.get() - 1);
            }
        }
        // Constants are compared by name.
        let has_constants = self.constants.borrow().values().any(Option::is_some);
        let compares_texts = self.condition.compares_texts() || has_constants;
        let truth = self.condition.holds(|path| look(path, compares_texts));
        let held = if self.lists && truth == Truth::True {
            all()
        } else {
            Vec::new()
        };
        (truth, held)
    }

    /// Finds the constant or variant that a path names instead of a variable.
    fn constant(&self, number: usize) -> Option<Held> {
        let mut all = self.constants.borrow_mut();
        let known = all.entry(number).or_insert_with(|| {
            let (written, path) = self.condition.paths.get(number)?;
            constant(self.variables, (written, path))
        });
        known.clone()
    }

    fn begun(&self, number: usize, moment: &Moment<'_, '_>, scopes: &FunctionScopes) -> Rc<Begun> {
        let activation = moment.activation;
        let key = (number, activation.function, activation.offset);
        let mut all = self.begun.borrow_mut();
        let begun = all.entry(key).or_insert_with(|| {
            let (_, path) = &self.condition.paths[number];
            let place = Some((scopes, activation.offset));
            Rc::new(Begun::new(self.variables, path, place))
        });
        Rc::clone(begun)
    }

    /// Returns the type of a path's value, if it is one number.
    fn number_type(&self, path: usize, object: &Object) -> Option<NumberType> {
        let mut all = self.number_types.borrow_mut();
        let last = all.get_mut(path)?;
        match last {
            Some((of, number_type)) if *of == object.type_ref => number_type.clone(),
            _ => {
                let number_type = self.variables.number_type(object.type_ref).ok().flatten();
                *last = Some((object.type_ref, number_type.clone()));
                number_type
            }
        }
    }

    /// Returns the value of a path expression: a string, or a number, with its text if requested.
    pub(super) fn held(
        &self,
        path_number: usize,
        moment: &Moment<'_, '_>,
        scopes: &FunctionScopes,
        with_text: bool,
    ) -> Result<Held, PathError> {
        let variables = self.variables;
        // The C++ library has a variable with this name, but the linker removes it.
        if is_empty_optional(&self.condition.paths[path_number].0)
            && let Some(constant) = self.constant(path_number)
        {
            return Ok(constant);
        }
        let begun = self.begun(path_number, moment, scopes);
        if let Err(why @ PathError::NoVariable { .. }) = &begun.found {
            return self.constant(path_number).ok_or_else(|| why.clone());
        }
        let object = begun.object(variables, moment)?;
        if !with_text && let Some(number_type) = self.number_type(path_number, &object) {
            return Ok(Held {
                number: number(variables.read_number(&object, &number_type, moment)?),
                text: String::new(),
                is_constant: false,
            });
        }
        let text = || {
            let rendered = variables.render(&object, &LIMITS, moment);
            match rendered.shape {
                Shape::Missing(why) => Err(*why),
                _ => Ok(rendered.to_string()),
            }
        };
        match variables.operand(&object, moment) {
            Ok(found) => Ok(Held {
                number: number(found.rank),
                // A pointer to characters is shown with the string that it points to.
                text: if found.text.starts_with("0x") {
                    text()?
                } else {
                    found.text
                },
                is_constant: false,
            }),
            // An empty optional is shown as `nullopt`.
            Err(PathError::Aggregate { .. } | PathError::Empty) => Ok(Held {
                number: None,
                text: text()?,
                is_constant: false,
            }),
            Err(why) => Err(why),
        }
    }
}

/// Finds the constant or variant that a path names. The path must have no members.
fn constant(variables: &Variables<'_>, (written, path): (&str, &Path)) -> Option<Held> {
    let is_name = written.split_whitespace().eq([path.variable.as_str()]);
    let found = is_name.then(|| variables.named_constant(&path.variable));
    let found = found?.ok().flatten()?;
    Some(Held {
        number: found.value.map(ConditionNumber::Integer),
        text: found.name,
        is_constant: true,
    })
}

/// Whether the text names an empty C++ optional.
fn is_empty_optional(written: &str) -> bool {
    matches!(written.trim(), "nullopt" | "std::nullopt")
}

/// Converts a number of a condition. Returns `None` if it has more than 127 bits.
fn number(rank: Rank) -> Option<ConditionNumber> {
    match rank {
        Rank::Signed(value) => Some(ConditionNumber::Integer(value)),
        Rank::Unsigned(value) => i128::try_from(value).ok().map(ConditionNumber::Integer),
        Rank::Float(value) => Some(ConditionNumber::Float(value)),
    }
}
