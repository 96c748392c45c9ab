//! Reads variables at the stops of a run.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::ended::held;
use crate::steps::follow;
use afterimage_analyses::currency::{Stop, Trail};
use afterimage_ids::OpId;
use afterimage_replay::state::{
    FunctionScopes, Limits, Moment, Nothing, Object, Occasion, Path, PathError, Rendered, Shape,
    Unavailable, Variables, Watch, WatchError, follow_to,
};
use anyhow::Result;

use super::pair::Side;

/// The value of an expression.
#[derive(Clone, Debug)]
pub struct ReadValue {
    /// The part of the value that is compared, rendered.
    pub rendered: Rendered,
    /// The text to show.
    pub text: String,
    /// The object with the value.
    pub object: Object,
    /// The bytes of the object's first piece, if it is short and in memory.
    pub held: Vec<u8>,
    /// The line of the variable's declaration.
    pub declared: Option<u32>,
    /// Whether the object is a variable that is not static, or a part of one. The target of a
    /// pointer is neither.
    pub is_local: bool,
    /// The moment at which the value was read. If the stop is inside the prologue and prologues are
    /// skipped, this is the end of the prologue.
    pub read_at: (u64, Option<OpId>),
    /// The time at which the activation began.
    pub entered: u64,
}

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nowhere {
    pub why: PathError,
}

impl Nowhere {
    /// Whether the expression is meaningless, regardless of the values.
    pub fn is_misnomer(&self) -> bool {
        matches!(
            self.why,
            PathError::NoVariable { .. }
                | PathError::NoMember { .. }
                | PathError::NotPointer { .. }
                | PathError::NotIndexable { .. }
        )
    }
}

impl fmt::Display for Nowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            // A variable may have a place at one stop and none at another.
            PathError::Unavailable(Unavailable::NotHere { .. }) => {
                f.write_str("the debug information gives no location for it there")
            }
            why => why.fmt(f),
        }
    }
}

/// The limits for the part of a value that is compared.
const COMPARED: Limits = Limits {
    depth: 12,
    elements: 1 << 12,
    string: 1 << 12,
    pointers: 0,
    pointed: true,
    parts: 1 << 14,
};

/// The maximum length of a string that is shown in the form in which it is compared.
const SHORT: usize = 64;

/// The number of a stop in its trail, from 0.
pub type At = u32;

/// The results for several expressions at a stop.
pub type SeenThere = Vec<Result<ReadValue, Nowhere>>;

/// Reads expressions at stops. Stops that the run did not reach are not in the result.
pub fn read(
    side: &Side<'_, '_>,
    paths: &[Path],
    trail: &Trail,
    stops: impl IntoIterator<Item = At>,
    behind_prologue: bool,
) -> Result<BTreeMap<At, SeenThere>> {
    let Some(first) = paths.first() else {
        return Ok(BTreeMap::new());
    };
    let scene = side.scene;
    let positions = scene.traced.positions(scene.names, scene.source())?;
    let mut prologues = HashMap::new();
    let mut wanted = Vec::new();
    for at in stops {
        let Stop {
            mut time,
            op,
            function,
            entered,
        } = trail.stops[at as usize];
        let mut op = Some(op);
        if behind_prologue {
            // Parameters are not in their places until the end of the prologue, so debuggers do not
            // stop earlier.
            let prologue = match prologues.entry(function) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(positions.prologue(function)?),
            };
            let behind = prologue.behind(entered);
            if (time, op) < (behind.time, behind.op) {
                (time, op) = (behind.time, behind.op);
            }
        }
        wanted.push((time, op, at));
    }
    wanted.sort_unstable();
    let occasions: Vec<Occasion> = wanted
        .iter()
        .map(|&(time, op, at)| Occasion {
            number: u64::from(at),
            time,
            op,
        })
        .collect();
    let called = |function| scene.names.short(function);
    let program = scene.traced.program();
    let watch = Watch::new(
        program,
        &side.bodies,
        scene.values,
        side.variables,
        &called,
        first.clone(),
    );
    let rows = watch.at_each(
        &occasions,
        |halts, show| {
            follow(scene.traced, |run, log| {
                Ok(follow_to(run, log, halts, show)?)
            })
        },
        |moment, scopes| -> SeenThere {
            let seen = paths
                .iter()
                .map(|path| look(side.variables, path, moment, scopes));
            seen.map(|seen| seen.map_err(|why| Nowhere { why }))
                .collect()
        },
    );
    let rows = rows.map_err(|error| match error {
        WatchError::State(error) => error.into(),
        WatchError::Follow(error) => error,
    })?;
    let rows = rows.into_iter().map(|row| {
        let entered = trail.stops[row.number as usize].entered;
        let seen = match row.value {
            Ok(seen) => seen,
            Err(why) => vec![Err(Nowhere { why }); paths.len()],
        };
        let seen = seen
            .into_iter()
            .map(|seen| seen.map(|seen| ReadValue { entered, ..seen }));
        (row.number as At, seen.collect())
    });
    Ok(rows.collect())
}

fn look(
    variables: &Variables<'_>,
    path: &Path,
    moment: &Moment<'_, '_>,
    scopes: &FunctionScopes,
) -> Result<ReadValue, PathError> {
    let at = moment.activation.offset;
    let (variable, path) = variables.begin(path, Some((scopes, at)))?;
    let whole = variables.locate(&variable, Some(at), moment)?;
    let object = variables.follow(&path, whole.clone(), moment)?;
    let rendered = variables.render(&object, &COMPARED, moment);
    if let Shape::Missing(why) = rendered.shape {
        return Err(*why);
    }
    // An object that has a place even without any machine state is static.
    let is_static = variables.locate(&variable, Some(at), &Nothing).is_ok();
    let inside = object.memory().all(|part| {
        let mut all = whole.memory();
        all.any(|all| all.start <= part.start && part.end <= all.end)
    });
    let text = if rendered.children.is_empty() && rendered.text.len() <= SHORT {
        rendered.to_string()
    } else {
        variables
            .render(&object, &Limits::default(), moment)
            .to_string()
    };
    Ok(ReadValue {
        rendered,
        text,
        held: held(&object.pieces, moment),
        object,
        declared: variable.line,
        is_local: !is_static && inside,
        read_at: (moment.activation.time, Some(moment.activation.op)),
        entered: 0,
    })
}
