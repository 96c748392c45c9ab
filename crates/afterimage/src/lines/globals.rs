//! Finds the global variables that changed between moments of a run.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use afterimage_present::{ChangedVariable, grouped, size};
use afterimage_profile::CodeFilter;
use afterimage_replay::state::{
    DebugError, Global, Limits, Moment, Object, Shown, Variables, global_object,
};

use super::bytes::Bytes;

/// The maximum number of bytes of all variables together.
const MOST: usize = 16 << 20;
/// The number of bytes to compare at once.
const CHUNK: usize = 4096;

/// The global variables of the shown code, at ascending moments.
pub(super) struct GlobalValues<'v> {
    known: &'v Variables<'v>,
    limits: Limits,
    all: Vec<GlobalValue>,
    /// The names of variables that are too large to compare.
    too_large: Vec<String>,
}

/// A global variable, and its values.
struct GlobalValue {
    global: Global,
    object: Option<Object>,
    /// Its bytes in memory at the last moment.
    bytes: Vec<u8>,
    /// Its values, each with the number of the first moment at which it had this value.
    values: Vec<Version>,
}

struct Version {
    since: usize,
    /// The hash of its bytes. An array may change in elements that its text leaves out.
    hash: u64,
    place: Option<Range<u64>>,
    shown: Shown,
    bytes: Option<Bytes>,
}

impl<'v> GlobalValues<'v> {
    /// Selects the global variables of compilation units whose code is shown.
    ///
    /// # Errors
    /// Returns the same errors as [`Variables::globals`].
    pub(super) fn new(
        known: &'v Variables<'v>,
        code: &CodeFilter,
        limits: Limits,
    ) -> Result<Self, DebugError> {
        let is_shown = |global: &Global| {
            let unit = known.unit_name(global);
            unit.is_none_or(|unit| code.shows(&unit))
        };
        let all = known.globals()?.into_iter().filter(is_shown);
        let value = |global| GlobalValue {
            global,
            object: None,
            bytes: Vec::new(),
            values: Vec::new(),
        };
        Ok(Self {
            known,
            limits,
            all: all.map(value).collect(),
            too_large: Vec::new(),
        })
    }

    /// Reads the variables at the next moment, whose number must be larger than all earlier
    /// numbers. A variable with an unchanged object is only compared, not formatted.
    pub(super) fn look(&mut self, number: usize, moment: &Moment<'_, '_>) {
        let mut left = MOST;
        let (known, limits, too_large) = (self.known, &self.limits, &mut self.too_large);
        self.all.retain_mut(|value| {
            let fits = value.look(number, (known, moment), (limits, left));
            if fits {
                left -= value.bytes.len();
            } else {
                too_large.push(value.global.name.clone());
            }
            fits
        });
    }

    /// Describes the variables that are not compared, because they are too large.
    pub(super) fn left_out(&self) -> Option<String> {
        let (first, others) = self.too_large.split_first()?;
        let others = match others.len() {
            0 => String::new(),
            others => format!(" and {} more", grouped(others as u64)),
        };
        Some(format!(
            "changes of {first}{others} are not shown: the global variables take up more \
             than {} in total",
            size(MOST as u64)
        ))
    }

    /// Returns the variables whose value at one moment differs from their value at an earlier
    /// moment.
    pub(super) fn changed(&self, now: usize, before: usize) -> Vec<ChangedVariable> {
        // Several units may define the same variable.
        let mut found = HashSet::new();
        let changed = self.all.iter().filter_map(|value| {
            let (now, before) = (value.at(now)?, value.at(before)?);
            let is_same = now.hash == before.hash && now.shown.value == before.shown.value;
            let mut is_new = || found.insert((&now.shown.name, now.place.clone()));
            let part = now.bytes.as_ref().zip(before.bytes.as_ref());
            (!is_same && now.shown.value.is_ok() && is_new()).then(|| ChangedVariable {
                now: now.shown.clone(),
                before: before.shown.value.clone().ok(),
                part: part.and_then(|(now, before)| now.changed(before, self.known, &self.limits)),
            })
        });
        changed.collect()
    }
}

impl GlobalValue {
    /// Reads the variable. Returns `false` if its object has more than `left` bytes.
    fn look(
        &mut self,
        number: usize,
        (known, moment): (&Variables<'_>, &Moment<'_, '_>),
        (limits, left): (&Limits, usize),
    ) -> bool {
        if let Some(object) = &self.object
            && is_same(object, &self.bytes, moment)
        {
            return true;
        }
        // A broken entry does not hide other variables.
        let Ok((shown, object)) = global_object(known, &self.global, moment, limits) else {
            return true;
        };
        self.bytes.clear();
        for range in object.iter().flat_map(Object::memory) {
            let begin = self.bytes.len();
            let Some(end) = usize::try_from(range.end - range.start)
                .ok()
                .and_then(|length| begin.checked_add(length))
                .filter(|end| *end <= left)
            else {
                return false;
            };
            self.bytes.resize(end, 0);
            if !moment
                .contents
                .memory(range.start, &mut self.bytes[begin..])
            {
                return true;
            }
        }
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        self.values.push(Version {
            since: number,
            hash: hasher.finish(),
            place: object.as_ref().and_then(|object| object.memory().next()),
            bytes: object
                .as_ref()
                .and_then(|object| Bytes::left_out(&shown, object, moment)),
            shown,
        });
        // An object outside memory is formatted at each moment.
        self.object = object.filter(|_| !self.bytes.is_empty());
        true
    }

    /// Returns the value at a moment.
    fn at(&self, moment: usize) -> Option<&Version> {
        let until = self.values.partition_point(|value| value.since <= moment);
        self.values[..until].last()
    }
}

/// Whether an object still has these bytes.
fn is_same(object: &Object, mut bytes: &[u8], moment: &Moment<'_, '_>) -> bool {
    let mut chunk = [0; CHUNK];
    for range in object.memory() {
        for at in range.clone().step_by(CHUNK) {
            let length = (range.end - at).min(CHUNK as u64) as usize;
            let Some((before, rest)) = bytes.split_at_checked(length) else {
                return false;
            };
            let now = &mut chunk[..length];
            if !moment.contents.memory(at, now) || now != before {
                return false;
            }
            bytes = rest;
        }
    }
    bytes.is_empty()
}
