//! How executing a node affects a fact.

use afterimage_wpp::twpp::Series;

/// Something that decides a fact: a GEN or KILL point, or a definition. The caller assigns the
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(pub u32);

/// How the executions of a node affect a fact: the paper's DGEN and DKILL, with the number of the
/// deciding site. If a node has several sites, the one that a query meets first counts. Going
/// backward it is the last one; going forward, the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// The node does not affect the fact: queries continue.
    #[default]
    Transparent,
    /// Each execution of the node decides the fact.
    Decides(Site),
    /// The executions differ, for example where the node calls a function. Lists the executions for
    /// which each site decides. These series are disjoint. Queries continue at the rest.
    Differs {
        /// The executions that decide, by site.
        decided: Vec<(Series, Site)>,
        /// All other executions.
        rest: Series,
    },
}
