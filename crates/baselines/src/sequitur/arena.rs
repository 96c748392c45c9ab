//! Stores right-hand sides as doubly linked rings of nodes. The guard of a rule closes the rule's
//! ring.

/// The index of a node in the arena.
pub(super) type NodeId = u32;

/// Denotes no node, or no rule.
pub(super) const END: u32 = u32::MAX;

/// The content of a node, which is a terminal (the number itself), the use of a rule, the guard of
/// a rule, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) u32);

impl Code {
    pub(super) const MAX_TERMINAL: u32 = USE - 1;
    /// Marks an unused node. As a guard, it would belong to a rule that cannot exist.
    const FREE: Self = Self(u32::MAX);

    pub(super) fn terminal(symbol: u32) -> Option<Self> {
        (symbol <= Self::MAX_TERMINAL).then_some(Self(symbol))
    }

    pub(super) fn rule(rule: u32) -> Self {
        Self(USE | rule)
    }

    fn guard(rule: u32) -> Self {
        Self(GUARD | rule)
    }

    /// Whether the node is a terminal or the use of a rule.
    pub(super) fn is_symbol(self) -> bool {
        self.0 < GUARD
    }

    /// Returns the rule that the node uses, if any.
    pub(super) fn used_rule(self) -> Option<u32> {
        (USE..GUARD).contains(&self.0).then(|| self.0 - USE)
    }

    /// Returns the rule that the node guards, if any.
    pub(super) fn guarded_rule(self) -> Option<u32> {
        (self.0 >= GUARD && self != Self::FREE).then(|| self.0 - GUARD)
    }
}

const USE: u32 = 1 << 31;
const GUARD: u32 = 3 << 30;

#[derive(Clone, Copy, Debug)]
struct Node {
    code: Code,
    prev: NodeId,
    next: NodeId,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The node between the last symbol and the first. For a free rule, this is the next free rule.
    guard: NodeId,
    uses: u32,
}

/// All nodes and rules. Released nodes and rules are reused, so memory is bounded by the largest
/// grammar so far.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    /// The first unused node. Unused nodes are chained by `next`.
    free_node: NodeId,
    rules: Vec<Rule>,
    free_rule: u32,
    live_symbols: usize,
    live_rules: usize,
}

impl Arena {
    /// The guard of rule 0, the start rule.
    pub(super) const START_GUARD: NodeId = 0;

    /// Creates an arena with an empty start rule.
    pub(super) fn new() -> Self {
        let guard = Self::START_GUARD;
        Self {
            nodes: vec![Node {
                code: Code::guard(0),
                prev: guard,
                next: guard,
            }],
            free_node: END,
            rules: vec![Rule { guard, uses: 0 }],
            free_rule: END,
            live_symbols: 0,
            live_rules: 1,
        }
    }

    pub(super) fn code(&self, node: NodeId) -> Code {
        self.nodes[node as usize].code
    }

    pub(super) fn next(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].next
    }

    pub(super) fn prev(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].prev
    }

    pub(super) fn guard(&self, rule: u32) -> NodeId {
        self.rules[rule as usize].guard
    }

    /// Returns how many times a rule is used on right-hand sides.
    pub(super) fn uses(&self, rule: u32) -> u32 {
        self.rules[rule as usize].uses
    }

    /// Returns the number of symbols on right-hand sides.
    pub(super) fn symbols(&self) -> usize {
        self.live_symbols
    }

    /// Returns the number of rules.
    pub(super) fn rules(&self) -> usize {
        self.live_rules
    }

    /// Returns one more than the largest rule number.
    pub(super) fn rule_names(&self) -> usize {
        self.rules.len()
    }

    pub(super) fn link(&mut self, left: NodeId, right: NodeId) {
        self.nodes[left as usize].next = right;
        self.nodes[right as usize].prev = left;
    }

    /// Adds a node for a symbol, which is not linked yet.
    pub(super) fn add_node(&mut self, code: Code) -> NodeId {
        self.live_symbols += 1;
        self.use_rule(code);
        self.take_node(code)
    }

    /// Replaces the symbol of a node.
    pub(super) fn rename(&mut self, node: NodeId, code: Code) {
        let old = std::mem::replace(&mut self.nodes[node as usize].code, code);
        self.unuse_rule(old);
        self.use_rule(code);
    }

    /// Releases the node of a symbol. The caller must link the node's neighbours.
    pub(super) fn release_node(&mut self, node: NodeId) {
        self.live_symbols -= 1;
        self.unuse_rule(self.code(node));
        self.give_node(node);
    }

    /// Adds a rule with two symbols on its right-hand side.
    pub(super) fn add_rule(&mut self, first: Code, second: Code) -> u32 {
        let rule = if self.free_rule == END {
            self.rules.push(Rule {
                guard: END,
                uses: 0,
            });
            (self.rules.len() - 1) as u32
        } else {
            let rule = self.free_rule;
            self.free_rule = self.rules[rule as usize].guard;
            rule
        };
        let guard = self.take_node(Code::guard(rule));
        self.rules[rule as usize] = Rule { guard, uses: 0 };
        self.live_rules += 1;
        let (first, second) = (self.add_node(first), self.add_node(second));
        self.link(guard, first);
        self.link(first, second);
        self.link(second, guard);
        rule
    }

    /// Releases an unused rule and its guard. Does not release the nodes of its symbols.
    pub(super) fn release_rule(&mut self, rule: u32) {
        debug_assert_eq!(self.uses(rule), 0);
        self.give_node(self.guard(rule));
        self.rules[rule as usize].guard = self.free_rule;
        self.free_rule = rule;
        self.live_rules -= 1;
    }

    fn take_node(&mut self, code: Code) -> NodeId {
        let node = Node {
            code,
            prev: END,
            next: END,
        };
        if self.free_node == END {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as NodeId;
        }
        let id = self.free_node;
        self.free_node = self.nodes[id as usize].next;
        self.nodes[id as usize] = node;
        id
    }

    fn give_node(&mut self, node: NodeId) {
        self.nodes[node as usize] = Node {
            code: Code::FREE,
            prev: END,
            next: self.free_node,
        };
        self.free_node = node;
    }

    fn use_rule(&mut self, code: Code) {
        if let Some(rule) = code.used_rule() {
            self.rules[rule as usize].uses += 1;
        }
    }

    fn unuse_rule(&mut self, code: Code) {
        if let Some(rule) = code.used_rule() {
            self.rules[rule as usize].uses -= 1;
        }
    }
}
