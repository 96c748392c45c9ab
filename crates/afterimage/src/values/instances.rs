//! Selects executions of a statement, or arrivals at a place.

use std::str::FromStr;

use afterimage_present::grouped;
use afterimage_profile::location::{Occurrence, number};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::places::so_often;

/// Selects executions of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instances {
    /// All executions.
    All,
    /// The executions from one number to another, counted from 1.
    Range(u64, u64),
    /// One execution, by its number from 1.
    One(u64),
    /// The last execution.
    Last,
    /// The executions from a time on.
    From(u64),
}

/// The reason why a string does not select executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstancesError {
    /// The text has none of the accepted forms.
    #[error("write A..B, one number, last, or t=T")]
    Form,
    /// The numbers are out of order, or 0.
    #[error("executions are numbered from 1, and the last must not be before the first")]
    Order,
}

impl FromStr for Instances {
    type Err = InstancesError;

    fn from_str(text: &str) -> Result<Self, InstancesError> {
        if text == "last" {
            return Ok(Self::Last);
        }
        if let Some(time) = text.strip_prefix("t=").and_then(number) {
            return Ok(Self::From(time));
        }
        let range = text
            .split_once("..")
            .map(|(from, to)| (number(from), number(to)));
        match range {
            Some((Some(from), Some(to))) if from > 0 && from <= to => Ok(Self::Range(from, to)),
            None => match number(text) {
                Some(one) if one > 0 => Ok(Self::One(one)),
                _ => Err(InstancesError::Form),
            },
            _ => Err(InstancesError::Order),
        }
    }
}

impl Instances {
    /// Combines the selection with a place that may end in the number of one execution.
    pub(super) fn named(self, at: &str, named: Option<Occurrence>) -> Result<Self> {
        Ok(match (self, named) {
            (which, None) => which,
            (Self::All, Some(Occurrence::Kth(number))) => Self::One(number),
            (Self::All, Some(Occurrence::Last)) => Self::Last,
            (_, Some(_)) => {
                bail!("{at} already names one execution; leave out --instances")
            }
        })
    }

    /// Returns the total number of executions, of which a report may show only some. This is
    /// `count` or, for [`From`](Self::From), the number of executions from number `first` on.
    pub(super) fn of(self, count: u64, first: u64) -> u64 {
        match self {
            Self::From(_) => count + 1 - first,
            Self::All | Self::Range(..) | Self::One(_) | Self::Last => count,
        }
    }

    /// Whether the user named each execution, so that there are no others to mention.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Range(..) | Self::One(_) | Self::Last)
    }

    /// Returns the first and the last of the selected executions among `count`. The last is before
    /// the first if no execution is selected. `by` returns the number of executions up to a time.
    /// `what` and `happened` are parts of messages: for example, "the statement at @0x1f3" and
    /// "executed".
    pub(super) fn range(
        self,
        count: u64,
        (what, happened): (&str, &str),
        by: impl Fn(u64) -> Result<u64>,
    ) -> Result<(u64, u64)> {
        let so_often = |number: u64| so_often(what, happened, (count, number));
        Ok(match self {
            Self::All => (1, count),
            _ if count == 0 => bail!(so_often(1)),
            Self::Range(first, _) if first > count => bail!(so_often(first)),
            Self::Range(first, last) => (first, last.min(count)),
            Self::Last => (count, count),
            Self::One(number) if !(1..=count).contains(&number) => bail!(so_often(number)),
            Self::One(number) => (number, number),
            Self::From(time) => {
                let before = by(time.saturating_sub(1))?;
                if before >= count {
                    bail!(
                        "{what} was not {happened} at t={} or later; the last time is number {}",
                        grouped(time),
                        grouped(count)
                    );
                }
                (before + 1, count)
            }
        })
    }
}
