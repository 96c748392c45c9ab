//! When a condition about variables holds.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_present::document::objects::Function;
use afterimage_present::values::{
    ConditionInstance, ConditionReport, ConditionValue, VariableMissing,
};
use afterimage_program::Names;
use afterimage_replay::state::{
    Bodies, Condition, ConditionNumber, Evaluated, FunctionScopes, Held, Limits, Moment, Path,
    PathError, Rank, Shape, Truth, Variable, Variables, Watch, follow_to,
};
use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::ValuesQuery;
use super::variable::{known, named_place, never, occasions, unwatched};
use crate::Session;
use crate::monitor::Work;
use crate::steps::follow;

/// When does a condition about variables hold?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionQuery {
    /// The condition: `fee < 0 && a->balance > 10`.
    pub condition: String,
    /// Where, and when.
    #[serde(flatten)]
    pub values: ValuesQuery,
    /// Which of the times when it holds.
    pub wanted: Wanted,
}

/// Which of the times when a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// All of them, the first ones listed.
    #[default]
    All,
    /// The first.
    First,
    /// The last.
    Last,
    /// None, but how many they are.
    Count,
}

/// How many moments are examined at a time.
const AT_ONCE: u64 = 1 << 14;

/// How much of a text is compared.
const LIMITS: Limits = Limits {
    string: 1 << 12,
    ..Limits::DEFAULT
};

/// The result at a moment: whether the condition holds, and the values of its variables, if it does and these are shown.
pub(crate) type Found = (Truth, Vec<Result<Held, PathError>>);

impl ConditionQuery {
    /// All times when a condition holds at a place.
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
        let Some((_, first_path)) = condition.paths.first() else {
            bail!("--where '{text}' names no variable: it holds always, or never");
        };
        let loaded = session.module();
        let source = session.source_map();
        let names = loaded.names(&source);
        let place = named_place(session, &names, &source, query)?;
        let variables = Variables::open(&loaded.bytes)?;
        for (_, path) in &condition.paths {
            known(session, &variables, path, &names, &place.place)?;
        }
        let values = session.values()?;
        let (all, happened) = occasions(session, &values, &names, &source, place.place)?;
        let count = all.count();
        let by = |time| Ok(all.by(time)?);
        let (first, last) = place.which.range(count, (&place.at, happened), by)?;
        let bodies = Bodies::new(&loaded.program, &loaded.bytes);
        let called = |function: FuncId| names.function(function).to_owned();
        let path = first_path.clone();
        let watch = Watch::new(&loaded.program, &bodies, &values, &variables, &called, path);
        let mut tally = Tally {
            condition: &condition,
            names: &names,
            listed: match self.wanted {
                Wanted::All => query.most(place.which),
                Wanted::First | Wanted::Last => 1,
                Wanted::Count => 0,
            },
            looked_at: 0,
            holds: 0,
            unknown: BTreeMap::new(),
            instances: Vec::new(),
        };
        let look = Look::new(&condition, &variables, tally.listed > 0);
        let is_one = matches!(self.wanted, Wanted::First | Wanted::Last);
        let total = Some((last + 1).saturating_sub(first));
        let work = Work::Question("looking at each time");
        let progress = session.monitor().begin(work, total);
        for numbers in chunks(first, last, self.wanted == Wanted::Last) {
            let mut wanted = Vec::new();
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
            for row in rows {
                if !(is_one && tally.holds > 0) {
                    tally.add(row);
                }
            }
            progress(tally.looked_at);
            if is_one && tally.holds > 0 {
                break;
            }
        }
        look.check(text)?;
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
            happened,
        })
    }
}

/// Splits a range of numbers into chunks, in either direction.
fn chunks(first: u64, last: u64, backwards: bool) -> impl Iterator<Item = RangeInclusive<u64>> {
    let (mut from, mut to) = (first, last);
    std::iter::from_fn(move || {
        if from > to {
            return None;
        }
        let chunk = match backwards {
            true => to.saturating_sub(AT_ONCE - 1).max(from)..=to,
            false => from..=to.min(from.saturating_add(AT_ONCE - 1)),
        };
        match backwards {
            true => to = chunk.start() - 1,
            false => from = chunk.end() + 1,
        }
        Some(chunk)
    })
}

/// The counts and instances so far.
struct Tally<'t> {
    condition: &'t Condition,
    names: &'t Names,
    /// How many of the times when it holds are listed.
    listed: u64,
    looked_at: u64,
    holds: u64,
    unknown: BTreeMap<String, u64>,
    instances: Vec<ConditionInstance>,
}

impl Tally<'_> {
    fn add(&mut self, row: Evaluated<Found>) {
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
        if (self.instances.len() as u64) < self.listed {
            let named = self.condition.paths.iter().zip(held);
            self.instances.push(ConditionInstance {
                number: row.number,
                t: row.time,
                function: Function::new(self.names, row.function),
                values: named.map(|((name, _), held)| value(name, held)).collect(),
            });
        }
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
    /// The variable that each path begins with, by path and place. Looking it up takes far longer than reading it.
    begun: RefCell<HashMap<(usize, FuncId, OrigOffset), Begun>>,
    /// Whether times when it holds are listed, with the values of all variables.
    lists: bool,
    /// Why each path had no value whenever it was looked at; `None` within if the reasons differed, or it had one. `None` if it was not looked at.
    reasons: RefCell<Vec<Option<Option<PathError>>>>,
}

/// The variable that a path begins with, and the path from there.
type Begun = Rc<Result<(Variable, Path), PathError>>;

impl<'l, 'a> Look<'l, 'a> {
    /// At no moment yet. `lists`: the values of the variables are wanted, too, when it holds.
    pub(crate) fn new(condition: &'l Condition, variables: &'l Variables<'a>, lists: bool) -> Self {
        Self {
            condition,
            variables,
            begun: RefCell::default(),
            lists,
            reasons: RefCell::new(vec![None; condition.paths.len()]),
        }
    }

    /// What it comes to at a moment, as text; or why it has no value.
    pub(crate) fn result(
        &self,
        moment: &Moment<'_, '_>,
        scopes: &FunctionScopes,
    ) -> Result<String, String> {
        self.condition
            .result(|number| self.held(number, moment, scopes))
    }

    /// Whether it holds at a moment, and the values of its variables.
    pub(crate) fn found(&self, moment: &Moment<'_, '_>, scopes: &FunctionScopes) -> Found {
        let look = |number| {
            let held = self.held(number, moment, scopes);
            self.seen(number, held.as_ref().err());
            held
        };
        let all = || Vec::from_iter((0..self.condition.paths.len()).map(look));
        // What can never have a value is found at the first time, whether it matters then or not.
        let is_first = self.reasons.borrow().iter().all(Option::is_none);
        if is_first {
            all();
        }
        let truth = self.condition.holds(look);
        let held = match self.lists && truth == Truth::True {
            true => all(),
            false => Vec::new(),
        };
        (truth, held)
    }

    /// Remembers why a path had no value, if it had none.
    fn seen(&self, number: usize, why: Option<&PathError>) {
        if let Some(known) = self.reasons.borrow_mut().get_mut(number) {
            match known {
                Some(None) => {}
                Some(Some(known)) if Some(&*known) == why => {}
                Some(known) => *known = None,
                None => *known = Some(why.cloned()),
            }
        }
    }

    /// Refuses a variable that can never have a value.
    pub(crate) fn check(&self, text: &str) -> Result<()> {
        for ((name, _), why) in self.condition.paths.iter().zip(&*self.reasons.borrow()) {
            let why = why.as_ref().and_then(Option::as_ref);
            if let Some(why) = never([why].into_iter()) {
                bail!("--where '{text}': {name}: {why}");
            }
        }
        Ok(())
    }

    fn begun(&self, number: usize, moment: &Moment<'_, '_>, scopes: &FunctionScopes) -> Begun {
        let activation = moment.activation;
        let key = (number, activation.function, activation.offset);
        let mut all = self.begun.borrow_mut();
        let begun = all.entry(key).or_insert_with(|| {
            let (_, path) = &self.condition.paths[number];
            let found = self
                .variables
                .begin(path, Some((scopes, activation.offset)));
            Rc::new(found.map(|(variable, path)| (variable, path.into_owned())))
        });
        Rc::clone(begun)
    }

    /// The value of a path expression: a number with its text, or a text.
    fn held(
        &self,
        number: usize,
        moment: &Moment<'_, '_>,
        scopes: &FunctionScopes,
    ) -> Result<Held, PathError> {
        let variables = self.variables;
        let begun = self.begun(number, moment, scopes);
        let (variable, path) = (*begun).as_ref().map_err(PathError::clone)?;
        let at = Some(moment.activation.offset);
        let object = variables.resolve_begun((variable, path), at, moment)?;
        let text = || {
            let rendered = variables.render(&object, &LIMITS, moment);
            match rendered.shape {
                Shape::Missing(why) => Err(*why),
                _ => Ok(rendered.to_string()),
            }
        };
        match variables.operand(&object, moment) {
            Ok(number) => {
                let value = match number.rank {
                    Rank::Signed(value) => Some(ConditionNumber::Integer(value)),
                    Rank::Unsigned(value) => {
                        i128::try_from(value).ok().map(ConditionNumber::Integer)
                    }
                    Rank::Float(value) => Some(ConditionNumber::Float(value)),
                };
                // A pointer to characters is followed by its text.
                let text = match number.text.starts_with("0x") {
                    true => text()?,
                    false => number.text,
                };
                Ok(Held {
                    number: value,
                    text,
                })
            }
            Err(PathError::Aggregate { .. }) => Ok(Held {
                number: None,
                text: text()?,
            }),
            Err(why) => Err(why),
        }
    }
}
