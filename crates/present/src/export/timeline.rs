//! Timelines of calls for tools that show time: what their formats have in common.

use afterimage_program::Names;
use afterimage_replay::paths::{Merging, TimelineLimits, Window};

/// What is shown.
#[derive(Clone, Copy)]
pub struct TimelineHead<'a> {
    /// The program's name.
    pub program: &'a str,
    /// The functions' names.
    pub names: &'a Names,
    /// From when to when.
    pub window: Window,
    /// What is merged.
    pub limits: TimelineLimits,
}

/// What the clock of the other tool shows.
pub(crate) const CLOCK: &str = "executed basic blocks; 1 block is shown as 1 microsecond";

/// What calls are named that were merged.
pub(crate) fn merged_name(why: Merging, limits: TimelineLimits) -> String {
    match why {
        Merging::Shorter => format!("… calls shorter than {} blocks", limits.min),
        Merging::Deeper => format!("… calls deeper than {}", limits.depth),
        Merging::LeftOut => "… left out when the path was built".to_owned(),
    }
}
