//! The cost of a counter on an edge in addition to its increments.

use afterimage_ids::EdgeId;
use afterimage_program::{Cfg, EdgeKind};

/// The extra cost of an increment on an edge, compared with an increment in the middle of a block.
///
/// An edge has its own place if no other edge leaves its source, or if no other edge enters its
/// target. Any other edge is *critical*. Code on it needs a jump or a landing block (Samples 1991).
/// The factors multiply the weight of an edge. A factor of 1 means the increment alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitCost {
    /// The factor for a critical edge that is a taken branch.
    pub taken: f64,
    /// The factor for a critical edge to the `else` of an `if` that has no `else` in the program.
    pub else_arm: f64,
    /// The factor for a critical edge to a `br_table` target.
    pub table: f64,
    /// The factor for an edge from a call to its handlers. The edge needs a landing pad for this
    /// call alone.
    pub call_throw: f64,
    /// The factor for an edge from a dispatch vertex outwards, or to a handler that has other
    /// predecessors.
    pub catch: f64,
}

impl Default for SplitCost {
    /// Returns estimates that mostly break ties. On nine real programs, 1.3 for a taken branch and
    /// 2 for a `br_table` target made the plans execute 2 to 3 % more increments. A taken branch
    /// becomes an untaken branch around a jump. A `br_table` target becomes a jump to a jump.
    fn default() -> Self {
        Self {
            taken: 1.05,
            else_arm: 1.02,
            table: 1.3,
            call_throw: 16.0,
            catch: 1.2,
        }
    }
}

impl SplitCost {
    /// Splitting an edge costs nothing. This is the cost measure of Ball and Larus 1992.
    pub const FREE: Self = Self {
        taken: 1.0,
        else_arm: 1.0,
        table: 1.0,
        call_throw: 1.0,
        catch: 1.0,
    };

    /// Returns the factor for one edge.
    pub fn factor(&self, cfg: &Cfg, edge: EdgeId) -> f64 {
        let graph = &cfg.graph;
        let has_own_place = graph.in_edges(graph.to(edge)).len() == 1
            || graph.out_edges(graph.from(edge)).len() == 1;
        match cfg.edges[edge].kind {
            EdgeKind::CallThrow => self.call_throw,
            _ if has_own_place => 1.0,
            EdgeKind::Taken => self.taken,
            EdgeKind::Else => self.else_arm,
            EdgeKind::Table(_) => self.table,
            EdgeKind::Catch(_) | EdgeKind::Unwind => self.catch,
            EdgeKind::Fall
            | EdgeKind::Jump
            | EdgeKind::NotTaken
            | EdgeKind::Then
            | EdgeKind::CallReturn
            | EdgeKind::Throw
            | EdgeKind::Return => 1.0,
        }
    }
}
