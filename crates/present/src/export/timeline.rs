//! Holds the parts that the timelines for all tools share.

use afterimage_program::Names;
use afterimage_replay::whole_path::{Merging, TimelineLimits, Window};

/// The contents of a timeline.
#[derive(Clone, Copy)]
pub struct TimelineHead<'a> {
    /// The program's name.
    pub program: &'a str,
    /// The functions' names.
    pub names: &'a Names,
    /// The stretch of the run that the timeline covers.
    pub window: Window,
    /// Selects the calls to merge.
    pub limits: TimelineLimits,
}

/// The meaning of the other tool's clock.
pub(crate) const CLOCK: &str = "executed basic blocks; 1 block is shown as 1 microsecond";

/// Returns the name of merged calls.
pub(crate) fn merged_name(why: Merging, limits: TimelineLimits) -> String {
    match why {
        Merging::Shorter => format!("… calls shorter than {} blocks", limits.min),
        Merging::Deeper => format!("… calls deeper than {}", limits.depth),
        Merging::LeftOut => "… left out when the path was built".to_owned(),
    }
}
