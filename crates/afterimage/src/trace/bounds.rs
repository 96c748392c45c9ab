//! Finds the stretch of a run that a trace shows.

use afterimage_present::grouped;
use afterimage_replay::steps::Within;
use afterimage_replay::whole_path::{FileSegments, Positions, Window};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::Level;

/// The bounds of a stretch of a run. A trace that goes backward begins at the later bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The position at which the stretch begins. The default is the beginning of the run or, going
    /// backward, its end.
    pub from: Option<String>,
    /// The position at which the stretch ends. This block or statement is included. The default is
    /// the end of the run or, going backward, its beginning.
    pub to: Option<String>,
}

/// The direction in which a stretch is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A bound of a stretch: the option that gives it, and its text if it is given.
pub(super) type Bound<'t> = (&'static str, Option<&'t str>);

impl Bounds {
    /// Finds the stretch in the run.
    ///
    /// # Errors
    /// Returns an error if there are no such positions, or the stretch is empty.
    pub fn window(&self, positions: &Positions<'_, FileSegments>) -> Result<Window> {
        self.window_of(positions, Direction::Forward)
    }

    pub(super) fn window_of(
        &self,
        positions: &Positions<'_, FileSegments>,
        direction: Direction,
    ) -> Result<Window> {
        let at = |(option, text): Bound<'_>, default: &str| {
            let text = text.unwrap_or(default);
            let time = positions.time(text);
            time.with_context(|| format!("{option} {text}"))
        };
        let [first, last] = self.in_time(direction);
        window(at(first, "start")?, at(last, "end")?, direction)
    }

    /// Returns the stretch from one statement to another, inclusive. A time or a call selects a
    /// whole block.
    pub(super) fn exactly(
        &self,
        positions: &Positions<'_, FileSegments>,
        level: Level,
        direction: Direction,
    ) -> Result<(Window, Within)> {
        let at = |(option, text): Bound<'_>, default: &str| {
            let text = text.unwrap_or(default);
            let found = match level {
                Level::Line => positions.arrived(text),
                _ => positions.statement(text),
            };
            found.with_context(|| format!("{option} {text}"))
        };
        let [first, last] = self.in_time(direction);
        let (first, last) = (at(first, "start")?, at(last, "end")?);
        let window = window(first.time, last.time, direction)?;
        if first.time == last.time && first.op.zip(last.op).is_some_and(|(a, b)| a > b) {
            let t = grouped(last.time);
            match direction {
                Direction::Forward => {
                    bail!("the stretch is empty: --from is after --to, in the same block, t={t}")
                }
                Direction::Backward => bail!(
                    "the stretch is empty: --reverse goes back from --from to --to, but --from is \
                     before --to, in the same block, t={t}: exchange them"
                ),
            }
        }
        Ok((window, Within::between(first, last)))
    }

    /// Returns the bounds in chronological order.
    pub(super) fn in_time(&self, direction: Direction) -> [Bound<'_>; 2] {
        let from = ("--from", self.from.as_deref());
        let to = ("--to", self.to.as_deref());
        match direction {
            Direction::Forward => [from, to],
            Direction::Backward => [to, from],
        }
    }
}

/// Returns the window from one time to another, inclusive.
pub(super) fn window(first: u64, last: u64, direction: Direction) -> Result<Window> {
    if first > last {
        let (first, last) = (grouped(first), grouped(last));
        match direction {
            Direction::Forward => {
                bail!("the stretch is empty: --from is t={first}, which is after --to, t={last}")
            }
            Direction::Backward => bail!(
                "the stretch is empty: --reverse goes back from --from to --to, but --from is \
                 t={last}, which is before --to, t={first}: exchange them"
            ),
        }
    }
    Ok(Window { first, last })
}
