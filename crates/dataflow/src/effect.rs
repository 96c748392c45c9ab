//! Defines the effect that a node's executions have on a fact.

use afterimage_wpp::twpp::Series;

/// The number of a GEN or KILL point, or of a definition, that decides a fact. The caller assigns
/// the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(pub u32);

/// The effect of a node's executions on a fact. It is the paper's DGEN and DKILL, with the number
/// of the deciding site. If a node has several sites, a backward query meets the last site first,
/// and a forward query the first site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// The node does not affect the fact, so queries continue.
    #[default]
    Transparent,
    /// Each execution of the node decides the fact.
    Decides(Site),
    /// The executions differ, for example where the node calls a function. Lists the executions for
    /// which each site decides, in disjoint series. Queries continue with the executions in `rest`.
    Differs {
        /// The executions that decide, by site.
        decided: Vec<(Series, Site)>,
        /// The executions that decide nothing.
        rest: Series,
    },
}
