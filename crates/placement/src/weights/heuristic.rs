//! Computes weights by the heuristic of ten iterations per loop, one loop after another.

use afterimage_graph::{DepthFirst, FlowGraph, Loop, LoopForest};
use afterimage_ids::{BlockId, EdgeId, EntityRef, LoopId};

use super::{Likelihood, Weights};

/// The executions of a loop's body per entry, including the last, incomplete iteration.
const TURNS: f64 = 11.0;

/// The largest meaningful weight. Larger products over nested loops carry no information.
const LARGEST: f64 = 1e100;

pub(super) fn weights(graph: &FlowGraph, likelihood: &dyn Fn(EdgeId) -> Likelihood) -> Weights {
    let search = DepthFirst::compute(graph);
    let forest = LoopForest::compute(graph, &search);
    let mut state = Heuristic::new(graph, likelihood, &forest, &search);
    for l in forest.loops().keys().rev() {
        state.distribute(Some(l));
    }
    state.distribute(None);
    state.scale();
    state.lead_to_headers();
    let Heuristic { edges, leaks, .. } = state;
    let all = || edges.iter().chain(&leaks);
    if all().all(|w| w.is_finite() && *w <= LARGEST) {
        return Weights {
            entry: 1.0,
            edges,
            leaks,
        };
    }
    one_path(graph, &search)
}

/// Returns the weights of one execution along a depth-first path. The path leads to EXIT if EXIT is
/// reached, and otherwise to the end of the search.
fn one_path(graph: &FlowGraph, search: &DepthFirst) -> Weights {
    let mut edges = vec![0.0; graph.edge_count()];
    let mut leaks = vec![0.0; graph.vertex_count()];
    let end = if search.is_reached(graph.exit()) {
        graph.exit()
    } else {
        graph.root()
    };
    if end != graph.exit() {
        leaks[end.index()] = 1.0;
    }
    let mut v = end;
    while let Some(e) = search.parent_edge(v) {
        edges[e.index()] = 1.0;
        v = graph.from(e);
    }
    Weights {
        entry: 1.0,
        edges,
        leaks,
    }
}

/// A vertex at its own level, or an inner loop as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Vertex(BlockId),
    Loop(LoopId),
}

/// The target of an edge, as seen from the level at which the edge is considered.
enum Target {
    /// The edge leads back to the loop's header.
    Header,
    /// The edge leads forward to an item of this level.
    Inside(Item),
    /// The edge leads out of the loop, and out of this many further loops.
    Outside(u32),
}

/// The state of the heuristic. Weights are first relative to one entry of the innermost loop around
/// the edge's source (its *level*). They are made absolute at the end.
struct Heuristic<'a> {
    graph: &'a FlowGraph,
    likelihood: &'a dyn Fn(EdgeId) -> Likelihood,
    forest: &'a LoopForest,
    search: &'a DepthFirst,
    /// For each level (the outermost last), its items. Each item comes before its successors.
    items: Vec<Vec<Item>>,
    /// For each level, the edges found so far that leave the loop. They begin in the loop itself or
    /// in inner loops.
    exits: Vec<Vec<EdgeId>>,
    /// For each edge, the flow found so far, per entry of the outermost loop that the edge leaves.
    exit_flow: Vec<f64>,
    /// For each loop, the part of an entry that leaks in the loop itself and in inner loops.
    loop_leaks: Vec<f64>,
    edges: Vec<f64>,
    leaks: Vec<f64>,
    /// The flow into each vertex and each loop, at its level.
    into_vertex: Vec<f64>,
    into_loop: Vec<f64>,
}

impl<'a> Heuristic<'a> {
    fn new(
        graph: &'a FlowGraph,
        likelihood: &'a dyn Fn(EdgeId) -> Likelihood,
        forest: &'a LoopForest,
        search: &'a DepthFirst,
    ) -> Self {
        let loops = forest.loops().len();
        let mut items = vec![Vec::new(); loops + 1];
        let level = |l: Option<LoopId>| l.map_or(loops, |l| l.index());
        // This is reverse postorder, with an inner loop in the place of its header. Everything that
        // enters a loop comes before the loop's header in this order, and everything to which the
        // loop leads comes after.
        for v in search.reverse_postorder() {
            let inner = forest.innermost(v);
            if let Some(l) = inner.filter(|&l| forest.loops()[l].header == v) {
                items[level(forest.loops()[l].parent)].push(Item::Loop(l));
            }
            items[level(inner)].push(Item::Vertex(v));
        }
        Self {
            graph,
            likelihood,
            forest,
            search,
            items,
            exits: vec![Vec::new(); loops + 1],
            exit_flow: vec![0.0; graph.edge_count()],
            loop_leaks: vec![0.0; loops],
            edges: vec![0.0; graph.edge_count()],
            leaks: vec![0.0; graph.vertex_count()],
            into_vertex: vec![0.0; graph.vertex_count()],
            into_loop: vec![0.0; loops],
        }
    }

    fn level(&self, l: Option<LoopId>) -> usize {
        l.map_or(self.forest.loops().len(), |l| l.index())
    }

    fn loop_at(&self, l: LoopId) -> &Loop {
        &self.forest.loops()[l]
    }

    /// Distributes one entry of the loop, or one activation of the function, over its items.
    fn distribute(&mut self, l: Option<LoopId>) {
        let level = self.level(l);
        let items = std::mem::take(&mut self.items[level]);
        let share = self.exit_share(l, &items);
        let start = if l.is_some() { TURNS } else { 1.0 };
        let (mut leaving, mut leaking) = (0.0, 0.0);
        for (position, &item) in items.iter().enumerate() {
            let amount = match item {
                _ if position == 0 => start,
                Item::Vertex(v) => self.into_vertex[v.index()],
                Item::Loop(inner) => self.into_loop[inner.index()],
            };
            match item {
                Item::Vertex(v) => {
                    self.into_vertex[v.index()] = amount;
                    let mut amount = amount;
                    if position == 0 && l.is_some() && share.is_none() {
                        self.leaks[v.index()] = 1.0;
                        leaking += 1.0;
                        amount -= 1.0;
                    }
                    self.branch(l, v, amount, share.unwrap_or(0.0), &mut leaving);
                }
                Item::Loop(inner) => {
                    self.into_loop[inner.index()] = amount;
                    leaking += self.loop_leaks[inner.index()] * amount;
                    for e in std::mem::take(&mut self.exits[inner.index()]) {
                        let flow = self.exit_flow[e.index()] * amount;
                        self.flow(l, e, flow, &mut leaving);
                    }
                }
            }
        }
        if let Some(l) = l {
            let scale = 1.0 / (leaving + leaking);
            self.loop_leaks[l.index()] = leaking * scale;
            self.normalise(l, &items, scale);
        }
        self.items[level] = items;
    }

    /// Returns the weight of an exit edge that leaves only this loop, which is one entry divided by
    /// the number of likely exits. Exits that leave further loops count less. Returns `None` if
    /// there is no likely exit.
    fn exit_share(&self, l: Option<LoopId>, items: &[Item]) -> Option<f64> {
        let count = |e: EdgeId| match self.target(l, e) {
            Target::Outside(further) if (self.likelihood)(e).share().is_none() => {
                further_share(further)
            }
            _ => 0.0,
        };
        let exits = items.iter().map(|&item| match item {
            Item::Vertex(v) => self
                .graph
                .out_edges(v)
                .iter()
                .map(|&e| count(e))
                .sum::<f64>(),
            Item::Loop(inner) => self.exits[inner.index()].iter().map(|&e| count(e)).sum(),
        });
        let exits: f64 = exits.sum();
        (exits > 0.0).then(|| 1.0 / exits)
    }

    /// Distributes the flow that arrives at a vertex over the edges that leave it.
    fn branch(
        &mut self,
        l: Option<LoopId>,
        v: BlockId,
        amount: f64,
        share: f64,
        leaving: &mut f64,
    ) {
        let out = self.graph.out_edges(v);
        if out.is_empty() || v == self.graph.exit() {
            if v != self.graph.exit() {
                self.leaks[v.index()] += amount;
            }
            return;
        }
        let unlikely = |e: EdgeId| (self.likelihood)(e).share();
        let all_unlikely = out.iter().all(|&e| unlikely(e).is_some());
        let unlikely = |e: EdgeId| if all_unlikely { None } else { unlikely(e) };
        // Unlikely edges together get at most half, however many there are.
        let unlikely_total: f64 = out.iter().filter_map(|&e| unlikely(e)).sum();
        let damping = 1.0 / (2.0 * unlikely_total).max(1.0);
        let rest = amount * (1.0 - unlikely_total * damping);
        let likely = out.iter().copied().filter(|&e| unlikely(e).is_none());
        let likely_count = likely.clone().count() as f64;
        let (mut exits, mut exit_total, mut parts) = (0.0, 0.0, 0.0);
        let exit_weight = |further| (share * further_share(further)).min(rest / likely_count);
        for e in likely {
            if let Target::Outside(further) = self.target(l, e) {
                exits += 1.0;
                exit_total += exit_weight(further);
            } else {
                parts += (self.likelihood)(e).part();
            }
        }
        for i in 0..out.len() {
            let e = self.graph.out_edges(v)[i];
            let flow = match unlikely(e) {
                Some(unlikely) => amount * unlikely * damping,
                None => match self.target(l, e) {
                    // All likely edges from this vertex lead out of the loop.
                    Target::Outside(_) if exits == likely_count => rest / likely_count,
                    Target::Outside(further) => exit_weight(further),
                    _ => (rest - exit_total) * (self.likelihood)(e).part() / parts,
                },
            };
            self.edges[e.index()] = flow;
            self.flow(l, e, flow, leaving);
        }
    }

    /// Sends flow over an edge to its target at this level.
    fn flow(&mut self, l: Option<LoopId>, e: EdgeId, flow: f64, leaving: &mut f64) {
        match self.target(l, e) {
            Target::Header => {}
            Target::Inside(Item::Vertex(v)) => self.into_vertex[v.index()] += flow,
            Target::Inside(Item::Loop(inner)) => self.into_loop[inner.index()] += flow,
            Target::Outside(_) => {
                *leaving += flow;
                self.exit_flow[e.index()] = flow;
                let level = self.level(l);
                self.exits[level].push(e);
            }
        }
    }

    /// Scales a loop so that the flow that leaves it or leaks is one entry. The loop's header is
    /// then visited `TURNS · scale` times. All but one of these visits come over back edges.
    fn normalise(&mut self, l: LoopId, items: &[Item], scale: f64) {
        for &item in items {
            match item {
                Item::Vertex(v) => {
                    self.leaks[v.index()] *= scale;
                    for &e in self.graph.out_edges(v) {
                        self.edges[e.index()] *= scale;
                    }
                }
                Item::Loop(inner) => self.into_loop[inner.index()] *= scale,
            }
        }
        for &e in &self.exits[l.index()] {
            self.exit_flow[e.index()] *= scale;
        }
    }

    fn target(&self, l: Option<LoopId>, e: EdgeId) -> Target {
        let to = self.graph.to(e);
        let Some(mut inner) = self.forest.innermost(to) else {
            return match l {
                Some(l) => Target::Outside(self.loop_at(l).depth - 1),
                None => Target::Inside(Item::Vertex(to)),
            };
        };
        if let Some(l) = l {
            if !self.forest.nests(l, inner) {
                let common = self.forest.around(to).find(|&m| self.forest.nests(m, l));
                let common_depth = common.map_or(0, |m| self.loop_at(m).depth);
                return Target::Outside(self.loop_at(l).depth - common_depth - 1);
            }
            if self.loop_at(l).header == to {
                return Target::Header;
            }
            if inner == l {
                return Target::Inside(Item::Vertex(to));
            }
        }
        while let Some(parent) = self.loop_at(inner).parent
            && Some(parent) != l
        {
            inner = parent;
        }
        Target::Inside(Item::Loop(inner))
    }

    /// Makes all weights absolute, from the outermost loops inwards.
    fn scale(&mut self) {
        for (id, l) in self.forest.loops().iter() {
            let outer = l.parent.map_or(1.0, |p| self.into_loop[p.index()]);
            self.into_loop[id.index()] *= outer;
        }
        for (level, items) in self.items.iter().enumerate() {
            let scale = self.into_loop.get(level).copied().unwrap_or(1.0);
            for &item in items {
                if let Item::Vertex(v) = item {
                    self.leaks[v.index()] *= scale;
                    for &e in self.graph.out_edges(v) {
                        self.edges[e.index()] *= scale;
                    }
                }
            }
        }
    }

    /// Adds the path to the header for flow that enters an irreducible loop at another vertex.
    /// Until then, this flow is treated as if it had arrived at the header.
    fn lead_to_headers(&mut self) {
        let mut arriving: Vec<Vec<(BlockId, f64)>> = vec![Vec::new(); self.forest.loops().len()];
        for e in self.graph.edges() {
            let (from, to) = (self.graph.from(e), self.graph.to(e));
            if !self.search.is_reached(from) {
                continue;
            }
            let entered = self
                .forest
                .around(to)
                .take_while(|&l| !self.forest.contains(l, from))
                .last();
            if let Some(l) = entered.filter(|&l| self.loop_at(l).header != to) {
                arriving[l.index()].push((to, self.edges[e.index()]));
            }
        }
        let mut amount = vec![0.0; self.graph.vertex_count()];
        let mut way: Vec<Option<EdgeId>> = vec![None; self.graph.vertex_count()];
        for (id, l) in self.forest.loops().iter() {
            let arriving = &arriving[id.index()];
            if arriving.is_empty() {
                continue;
            }
            // Search breadth-first against the edges, within the loop.
            let mut order = vec![l.header];
            let mut next = 0;
            while let Some(&v) = order.get(next) {
                next += 1;
                for &e in self.graph.in_edges(v) {
                    let from = self.graph.from(e);
                    let is_new = from != l.header && way[from.index()].is_none();
                    if is_new && self.forest.contains(id, from) {
                        way[from.index()] = Some(e);
                        order.push(from);
                    }
                }
            }
            for &(v, flow) in arriving {
                amount[v.index()] += flow;
            }
            for v in order.into_iter().rev() {
                let flow = std::mem::take(&mut amount[v.index()]);
                if let Some(e) = way[v.index()].take() {
                    self.edges[e.index()] += flow;
                    amount[self.graph.to(e).index()] += flow;
                }
            }
        }
    }
}

/// Returns the factor by which an exit is less likely if it also leaves `further` outer loops.
fn further_share(further: u32) -> f64 {
    TURNS.powi(-(further.min(64) as i32))
}
