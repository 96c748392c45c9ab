//! Determines which frequencies follow from the measured frequencies, by linear algebra on the flow
//! equations.

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, EntityRef};

/// The prime modulus of the rank computation. The entries of flow equations are −1, 0 and 1, and
/// the matrix of a digraph is totally unimodular, so the rank is the same as over the integers.
const PRIME: i64 = 1_000_003;

/// Row-reduced vectors over a prime field.
#[derive(Clone, Debug, Default)]
struct Span {
    rows: Vec<Vec<i64>>,
}

impl Span {
    fn reduce(&self, mut row: Vec<i64>) -> Vec<i64> {
        for basis in &self.rows {
            let pivot = basis
                .iter()
                .position(|&x| x != 0)
                .expect("no zero rows are kept");
            let factor = row[pivot] * inverse(basis[pivot]) % PRIME;
            for (x, b) in row.iter_mut().zip(basis) {
                *x = (*x - factor * b).rem_euclid(PRIME);
            }
        }
        row
    }

    fn insert(&mut self, row: Vec<i64>) {
        let row = self.reduce(row);
        if row.iter().any(|&x| x != 0) {
            self.rows.push(row);
        }
    }

    fn contains(&self, row: Vec<i64>) -> bool {
        self.reduce(row).iter().all(|&x| x == 0)
    }
}

fn inverse(x: i64) -> i64 {
    let (mut result, mut base, mut exponent) = (1, x.rem_euclid(PRIME), PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % PRIME;
        }
        base = base * base % PRIME;
        exponent >>= 1;
    }
    result
}

/// Returns the known equations, which are flow conservation at every vertex, and the measured edges
/// and vertices. The unknowns are the edges, followed by EXIT→root.
fn known(graph: &FlowGraph, edges: &[EdgeId], vertices: &[BlockId]) -> Span {
    let unit = |e: EdgeId| {
        let mut row = vec![0; graph.edge_count() + 1];
        row[e.index()] = 1;
        row
    };
    let mut span = Span::default();
    for v in graph.vertices() {
        let (into, out) = (inflow(graph, v), outflow(graph, v));
        let balance = into.iter().zip(out).map(|(i, o)| (i - o).rem_euclid(PRIME));
        span.insert(balance.collect());
    }
    for &e in edges {
        span.insert(unit(e));
    }
    for &v in vertices {
        span.insert(inflow(graph, v));
    }
    span
}

fn inflow(graph: &FlowGraph, v: BlockId) -> Vec<i64> {
    let mut row = vec![0; graph.edge_count() + 1];
    for &e in graph.in_edges(v) {
        row[e.index()] += 1;
    }
    row[graph.edge_count()] = i64::from(v == graph.root());
    row
}

fn outflow(graph: &FlowGraph, v: BlockId) -> Vec<i64> {
    let mut row = vec![0; graph.edge_count() + 1];
    for &e in graph.out_edges(v) {
        row[e.index()] += 1;
    }
    row[graph.edge_count()] = i64::from(v == graph.exit());
    row
}

/// Whether frequencies of these edges and vertices, over any number of activations, determine the
/// frequency of every edge and of EXIT→root. This is EFreq of Ball and Larus 1992, section 3.
pub fn determines_edges(graph: &FlowGraph, edges: &[EdgeId], vertices: &[BlockId]) -> bool {
    let span = known(graph, edges, vertices);
    (0..=graph.edge_count()).all(|i| {
        let mut row = vec![0; graph.edge_count() + 1];
        row[i] = 1;
        span.contains(row)
    })
}

/// Whether frequencies of these edges and vertices, over any number of activations, determine the
/// frequency of every vertex. This is VFreq of Ball and Larus 1992, section 3.
pub fn determines_vertices(graph: &FlowGraph, edges: &[EdgeId], vertices: &[BlockId]) -> bool {
    let span = known(graph, edges, vertices);
    graph.vertices().all(|v| span.contains(inflow(graph, v)))
}
