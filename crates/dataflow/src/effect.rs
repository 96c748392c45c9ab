//! How executing a node affects a fact.

use afterimage_wpp::twpp::Series;

/// Something that decides a fact: a GEN or KILL point, or a definition. The caller assigns its
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(pub u32);

/// How the executions of a node affect a fact: the paper's DGEN and DKILL, with the number of the
/// deciding site. If a node has several sites, the first that a query meets counts: the last one
/// going backward, the first one going forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Not at all: queries continue.
    #[default]
    Transparent,
    /// Each execution decides.
    Decides(Site),
    /// Differently, for example where the node calls a function: the executions for which each site
    /// decides. These series are disjoint; the rest continues.
    Differs {
        /// The executions that decide.
        decided: Vec<(Series, Site)>,
        /// All others.
        rest: Series,
    },
}
