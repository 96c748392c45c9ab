//! What a variable holds at the stops of a run.

use std::collections::BTreeMap;
use std::fmt;

use afterimage_ids::OpId;
use afterimage_query::currency::{Stop, Trail};
use afterimage_query::state::{
    Limits, Nothing, Object, Occasion, Path, PathError, Rendered, Shape, Unavailable, Watch,
    WatchError, Watched, follow_to,
};
use anyhow::Result;

use super::pair::Side;
use crate::steps::follow;

/// What there is of it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// What it looks like, as far as it is compared.
    pub rendered: Rendered,
    /// What is shown of that.
    pub text: String,
    /// Where it is.
    pub object: Object,
    /// The line of the variable's declaration.
    pub declared: Option<u32>,
    /// It is a part of the activation's own memory, or in its locals.
    pub is_local: bool,
    /// When it was read: behind the prologue, if the stop is in it.
    pub read_at: (u64, Option<OpId>),
    /// When the activation began.
    pub entered: u64,
}

/// Why there is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nowhere {
    pub why: PathError,
}

impl Nowhere {
    /// Whether the expression means nothing, whatever there is.
    pub(super) fn is_misnomer(&self) -> bool {
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
            // Where it would have one differs from stop to stop.
            PathError::Unavailable(Unavailable::NotHere { .. }) => {
                f.write_str("the debug information gives it no place there")
            }
            why => why.fmt(f),
        }
    }
}

/// How much is compared.
const COMPARED: Limits = Limits {
    depth: 12,
    elements: 1 << 12,
    string: 1 << 12,
    pointers: 0,
    parts: 1 << 14,
};

/// A stop's number in its trail, from 0.
pub(super) type At = u32;

/// Reads a variable at stops, ascending. Those that the run did not come to are not in the answer.
pub(super) fn read(
    side: &Side<'_, '_, '_>,
    path: &Path,
    trail: &Trail,
    stops: impl IntoIterator<Item = At>,
    behind_prologue: bool,
) -> Result<BTreeMap<At, Result<Seen, Nowhere>>> {
    let scene = side.scene;
    let positions = scene.traced.positions(scene.names, scene.source);
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
            // Parameters are not in their places yet, and debuggers do not stop before they are.
            let behind = positions.prologue(function)?.behind(entered);
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
    let called = |function| scene.names.function(function).to_owned();
    let program = &scene.traced.loaded.program;
    let watch = Watch::new(
        program,
        &side.bodies,
        scene.values,
        &side.variables,
        &called,
        path.clone(),
    );
    let rows = watch.each(
        &occasions,
        |halts, show| {
            follow(scene.traced, |run, log| {
                Ok(follow_to(run, log, halts, show)?)
            })
        },
        |watched| look(watched, path),
    );
    let rows = rows.map_err(|error| match error {
        WatchError::State(error) => error.into(),
        WatchError::Follow(error) => error,
    })?;
    let rows = rows.into_iter().map(|row| {
        let value = row.value.map_err(|why| Nowhere { why });
        let entered = trail.stops[row.number as usize].entered;
        let value = value.map(|seen| Seen { entered, ..seen });
        (row.number as At, value)
    });
    Ok(rows.collect())
}

fn look(watched: &Watched<'_, '_>, path: &Path) -> Result<Seen, PathError> {
    let Watched {
        variables,
        moment,
        scopes,
        object,
    } = watched;
    let at = moment.activation.offset;
    let rendered = variables.render(object, &COMPARED, *moment);
    if let Shape::Missing(why) = rendered.shape {
        return Err(*why);
    }
    let variable = variables.find(&path.variable, Some((scopes, at)))?;
    // What has an address without a moment lives as long as the run.
    let is_static = variables.locate(&variable, Some(at), &Nothing).is_ok();
    let whole = variables.locate(&variable, Some(at), *moment)?;
    let inside = object.memory().all(|part| {
        let mut all = whole.memory();
        all.any(|all| all.start <= part.start && part.end <= all.end)
    });
    let shown = variables.render(object, &Limits::default(), *moment);
    Ok(Seen {
        rendered,
        text: shown.to_string(),
        object: object.clone(),
        declared: variable.line,
        is_local: !is_static && inside,
        read_at: (moment.activation.time, Some(moment.activation.op)),
        entered: 0,
    })
}
