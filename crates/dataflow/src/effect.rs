//! What executing a node does to a fact.

use afterimage_wpp::twpp::Series;

/// Something that decides a fact, by the number that who asks gave it: a GEN or KILL point, or a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(pub u32);

/// What the executions of a node do to a fact: the paper's DGEN and DKILL, with the number of what decides. Of several things in a node the one counts that a query
/// meets first: the last one going backward, the first one going forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: queries go on.
    #[default]
    Transparent,
    /// Each execution decides.
    Decides(Site),
    /// It differs, as where the node calls a function: the executions for which each decides. They have no timestamp in common, and the rest goes on.
    Differs {
        /// The executions that decide.
        decided: Vec<(Series, Site)>,
        /// All others.
        rest: Series,
    },
}
