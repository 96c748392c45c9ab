//! Finds where the symbols of a grammar occur.

use afterimage_ids::{EntityRef, NodeId, RuleId};

use super::Measured;
use crate::{Root, Symbol};

/// The container of a symbol, which is a rule or the root.
#[derive(Clone, Copy, Debug)]
pub(crate) enum User {
    Rule(RuleId),
    Root,
}

/// An occurrence of a symbol, given by its position in a rule or in the root's items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) user: User,
    pub(crate) at: u32,
}

/// The number that represents the root. It is above the numbers of all rules.
const ROOT: u32 = u32::MAX;

/// The occurrences of each symbol, in the order of the rules.
pub(crate) struct Uses {
    /// A number above the numbers of all executed nodes.
    nodes: usize,
    /// The end of each symbol's list of occurrences. The nodes come first, and then the rules.
    ends: Vec<u32>,
    /// For each occurrence, the rule or the root, and the position in it.
    all: Vec<(u32, u32)>,
}

impl Uses {
    /// The memory per symbol, in bytes.
    pub(super) const SYMBOL: usize = size_of::<(u32, u32)>();

    /// Finds all occurrences of symbols. Time: linear.
    pub(super) fn new(measured: &Measured) -> Self {
        let segment = &measured.segment;
        let counts = segment.node_counts.last();
        let nodes = counts.map_or(0, |(node, _)| node.index() + 1);
        let mut uses = Self {
            nodes,
            ends: vec![0; nodes + segment.grammar.rules.len()],
            all: Vec::new(),
        };
        let each = |see: &mut dyn FnMut(Symbol, u32, u32)| {
            for (rule, _) in segment.grammar.rules.iter() {
                for (&symbol, at) in segment.grammar.symbols_of(rule).iter().zip(0..) {
                    see(symbol, rule.as_u32(), at);
                }
            }
            for (item, at) in segment.root.iter().zip(0..) {
                if let Root::Run(symbol) = *item {
                    see(symbol, ROOT, at);
                }
            }
        };
        each(&mut |symbol, _, _| {
            if let Some(slot) = slot(nodes, symbol) {
                uses.ends[slot] += 1;
            }
        });
        // Convert counts to beginnings. Filling the lists turns the beginnings into ends.
        let mut sum = 0;
        for end in &mut uses.ends {
            sum += std::mem::replace(end, sum);
        }
        uses.all = vec![(0, 0); sum as usize];
        let (ends, all) = (&mut uses.ends, &mut uses.all);
        each(&mut |symbol, user, at| {
            if let Some(slot) = slot(nodes, symbol) {
                all[ends[slot] as usize] = (user, at);
                ends[slot] += 1;
            }
        });
        uses
    }

    fn of(&self, slot: usize) -> impl Iterator<Item = Use> + '_ {
        let end = self.ends.get(slot).copied().unwrap_or(0);
        let start = slot.checked_sub(1).map_or(0, |before| {
            let before = self.ends.get(before).copied();
            before.unwrap_or(end)
        });
        let all = &self.all[start.min(end) as usize..end as usize];
        all.iter().map(|&(user, at)| Use {
            user: match user {
                ROOT => User::Root,
                rule => User::Rule(RuleId::from_u32(rule)),
            },
            at,
        })
    }

    /// Returns the occurrences of a node.
    pub(crate) fn of_node(&self, node: NodeId) -> impl Iterator<Item = Use> + '_ {
        let slot = node.index();
        // The slots after the nodes' slots belong to rules.
        let slot = if slot < self.nodes { slot } else { usize::MAX };
        self.of(slot)
    }

    /// Returns the occurrences of a rule.
    pub(crate) fn of_rule(&self, rule: RuleId) -> impl Iterator<Item = Use> + '_ {
        self.of(self.nodes + rule.index())
    }
}

fn slot(nodes: usize, symbol: Symbol) -> Option<usize> {
    let node = || symbol.as_node().map(|node| node.index());
    match symbol.as_rule() {
        Some(rule) => Some(nodes + rule.index()),
        // A node that occurs only in unreachable rules was not counted.
        None => node().filter(|&node| node < nodes),
    }
}
