//! Assigns short codes to witnesses.

use std::collections::BTreeMap;

use afterimage_graph::UnionFind;
use afterimage_ids::{EdgeId, EntityRef};

use super::colours::colours;
use super::huffman::code_lengths;
use super::{Placement, TraceGraph};

/// A number that an edge writes, with its width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The number, which is less than 2^`width`.
    pub value: u32,
    /// The width in bits, from 1 to 32.
    pub width: u8,
}

/// The tokens of a placement.
///
/// Witnesses that are connected by silent edges form a *group*. The reader of a token knows its
/// position in the graph, and so the group. Within a group, no token is a prefix of another. Two
/// witnesses of a group may have the same token if no branch needs to distinguish them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The token and the group of each edge.
    tokens: Vec<Option<(Token, u32)>>,
}

impl Tokens {
    /// Returns the token that an edge writes, if it writes one.
    pub fn of(&self, edge: EdgeId) -> Option<Token> {
        self.tokens[edge.index()].map(|(token, _)| token)
    }

    /// Returns the edges that write, ascending, with their tokens and groups.
    pub fn iter(&self) -> impl Iterator<Item = (EdgeId, Token, u32)> + '_ {
        let edges = self.tokens.iter().enumerate();
        edges.filter_map(|(i, t)| t.map(|(token, group)| (EdgeId::new(i), token, group)))
    }
}

/// Chooses short tokens. Witnesses that a branch reaches silently through different edges get
/// different tokens. The witnesses with the largest weights get the shortest tokens (Huffman 1952).
/// Time: near-linear.
///
/// The placement must solve the tracing problem.
pub fn assign_tokens(view: &TraceGraph<'_>, placement: &Placement, weight: &[f64]) -> Tokens {
    let graph = view.graph();
    let colours = colours(view, placement, weight);
    let mut sets = UnionFind::new(graph.vertex_count());
    for e in graph.edges().filter(|&e| !placement.writes(e)) {
        // No witness is sought across a foreign vertex, so a new group begins after it.
        if !view.is_foreign(graph.to(e)) {
            sets.union(graph.from(e).index(), graph.to(e).index());
        }
    }
    // The total weight of the witnesses, by group and colour.
    let mut groups: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
    let mut places = vec![None; graph.edge_count()];
    for e in placement.edges() {
        if let Some(colour) = colours[e.index()] {
            let group = sets.find(graph.from(e).index()) as u32;
            *groups.entry(group).or_default().entry(colour).or_default() += weight[e.index()];
            places[e.index()] = Some((group, colour));
        }
    }
    let codes: BTreeMap<u32, BTreeMap<u32, Token>> = groups
        .into_iter()
        .map(|(group, colours)| (group, code(&colours)))
        .collect();
    let tokens = places.into_iter().map(|place| {
        let (group, colour) = place?;
        Some((*codes.get(&group)?.get(&colour)?, group))
    });
    Tokens {
        tokens: tokens.collect(),
    }
}

/// Returns the canonical code of a group, with tokens in ascending order of width.
fn code(colours: &BTreeMap<u32, f64>) -> BTreeMap<u32, Token> {
    let weights: Vec<f64> = colours.values().copied().collect();
    let lengths = code_lengths(&weights);
    let mut order: Vec<(u8, u32)> = lengths.into_iter().zip(colours.keys().copied()).collect();
    order.sort_unstable();
    let mut code = BTreeMap::new();
    let (mut next, mut length) = (0u64, 0);
    for (width, colour) in order {
        next <<= width - length;
        length = width;
        let value = next as u32;
        code.insert(colour, Token { value, width });
        next += 1;
    }
    code
}
