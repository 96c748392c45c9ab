//! Checks that each step can follow the previous step, within activations and where control enters
//! or leaves them.

use std::collections::{HashMap, HashSet};

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_program::Callee;
use afterimage_wpp::{Kind, Root, Segment, Symbol};

use super::nodes::{NodeEnd, Nodes};
use super::span::{First, Last, Outcome, Span};
use super::{PathReport, PathRule};
use crate::whole_path::grammar::multiplicities;
use afterimage_profile::Stop;

/// An activation that is open between two items of a root. The host is at the bottom.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The function, or `None` for the host.
    function: Option<FuncId>,
    /// The last event, or `None` if there was no event yet.
    last: Option<Last>,
}

/// Walks over the segments, and keeps the state needed between them.
pub(super) struct Flow<'n, 'a> {
    pub nodes: &'n Nodes<'a>,
    /// The open activations, the host first.
    open: Vec<Open>,
    /// For each node, the number of times that the call at its end threw an exception.
    pub thrown: HashMap<NodeId, u64>,
    /// Nodes that end with a call, if the path does not always show whether the call returned.
    pub unclear: HashSet<NodeId>,
    /// The nodes whose calls ended with an exception in the current rule.
    caught: Vec<NodeId>,
}

impl<'n, 'a> Flow<'n, 'a> {
    pub fn new(nodes: &'n Nodes<'a>) -> Self {
        Self {
            nodes,
            open: vec![Open {
                function: None,
                last: None,
            }],
            thrown: HashMap::new(),
            unclear: HashSet::new(),
            caught: Vec::new(),
        }
    }

    /// Checks a segment, which must be internally consistent. Takes time linear in its grammar.
    pub fn segment(&mut self, number: usize, segment: &Segment, report: &mut PathReport) {
        let grammar = &segment.grammar;
        let mut at = At {
            segment: number,
            place: SegmentPart::Item(0),
            report,
        };
        let mut spans: PrimaryMap<RuleId, Option<Span>> =
            PrimaryMap::with_capacity(grammar.rules.len());
        let mut caught: Vec<(RuleId, NodeId, u64)> = Vec::new();
        for (id, rule) in grammar.rules.iter() {
            at.place = SegmentPart::Rule(id);
            let mut whole = None;
            for &symbol in grammar.symbols_of(id) {
                let next = span_of(symbol, &spans);
                whole = self.follow(whole, next, &mut at);
            }
            caught.extend(self.caught.drain(..).map(|node| (id, node, 1)));
            spans.push(match rule.kind {
                Kind::Sequence => whole,
                Kind::Repeat(times) => {
                    let repeated = self.follow(whole, whole, &mut at);
                    caught.extend(self.caught.drain(..).map(|node| (id, node, times - 1)));
                    repeated
                }
                Kind::Call(function) => {
                    let outcome = self.activation(function, whole, &mut at);
                    caught.extend(self.caught.drain(..).map(|node| (id, node, 1)));
                    Some(Span::of_call(function, outcome))
                }
            });
        }
        for (item, &root) in segment.root.iter().enumerate() {
            at.place = SegmentPart::Item(item);
            match root {
                Root::Run(symbol) => self.run(span_of(symbol, &spans), &mut at),
                Root::Enter(function) => {
                    self.run(Some(Span::of_call(function, Outcome::UNKNOWN)), &mut at);
                    // The call is in progress.
                    if let Some(Open {
                        last: Some(last), ..
                    }) = self.open.last_mut()
                    {
                        last.since = None;
                    }
                    self.open.push(Open {
                        function: Some(function),
                        last: None,
                    });
                }
                Root::Leave => self.leave(&mut at),
            }
        }
        let at_root = self.caught.drain(..).map(|node| (node, 1));
        let times = multiplicities(segment);
        let in_rules = caught.iter();
        let in_rules = in_rules.map(|&(rule, node, each)| (node, times[rule].saturating_mul(each)));
        for (node, times) in at_root.chain(in_rules) {
            let sum = self.thrown.entry(node).or_default();
            *sum = sum.saturating_add(times);
        }
    }

    /// Compares the activations that are open at the end with the places where the run stopped, the
    /// innermost first. On a path with gaps, some activations may be missing.
    pub fn end(&self, stops: &[Stop], report: &mut PathReport) {
        let open = &self.open[1..];
        let partial = self.nodes.partial;
        if open.len() != stops.len() && !partial {
            let (found, said) = (open.len(), stops.len());
            let text = format!(
                "{found} activations are open at the end of the path, but END lists {said}"
            );
            report.find(PathRule::Stack, text);
            return;
        }
        let mut stops = stops.iter().rev();
        for (depth, open) in open.iter().enumerate() {
            let node = open.last.and_then(|last| last.node);
            let block = node.and_then(|node| self.nodes.last(node));
            let unknown = node.is_some_and(|node| self.nodes.nodes[node].left_out > 0);
            let fits = |stop: &&Stop| {
                open.function == Some(stop.function) && (block == Some(stop.block) || unknown)
            };
            let stop = stops.next();
            if stop.is_some_and(|stop| fits(&stop)) || partial && stops.any(|stop| fits(&stop)) {
                continue;
            }
            let function = open
                .function
                .map_or_else(String::new, |function| function.to_string());
            let block = block.map_or_else(|| "no block".to_owned(), |block| block.to_string());
            let said = match stop {
                Some(stop) if !partial => format!(" in {}, {}", stop.function, stop.block),
                _ => " elsewhere".to_owned(),
            };
            let text = format!(
                "activation {depth}, counted from the outermost, ends in {function}, {block}, but \
                 END places it{said}"
            );
            report.find(PathRule::Stack, text);
        }
    }

    /// Returns the last nodes of the activations that are open at the end. Control has not left
    /// these nodes.
    pub fn standing(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.open.iter().filter_map(|open| open.last?.node)
    }

    /// Joins two consecutive stretches of one activation.
    fn follow(&mut self, whole: Option<Span>, next: Option<Span>, at: &mut At<'_>) -> Option<Span> {
        let (Some(whole), Some(next)) = (whole, next) else {
            return whole.or(next);
        };
        let by_host = self.join(whole.last, next.first, at);
        let mut both = whole.then(next);
        both.by_host |= by_host;
        Some(both)
    }

    /// Checks that `first` can follow `last`. Returns whether this requires a call by the host.
    fn join(&mut self, last: Last, first: First, at: &mut At<'_>) -> bool {
        match first {
            First::Node(node) => {
                self.resume(last, node, at);
                false
            }
            First::Call(function, then) => {
                let by_host = self.call(last, function, at);
                if let Some((outcome, node)) = then {
                    let last = Last {
                        node: last.node,
                        since: Some(outcome),
                    };
                    self.resume(last, node, at);
                }
                by_host
            }
        }
    }

    /// Checks that an activation of a function can begin. Returns whether this requires a call by
    /// the host.
    fn call(&mut self, last: Last, function: FuncId, at: &mut At<'_>) -> bool {
        let callee = match (
            last.since,
            last.node.map(|node| (node, self.nodes.ends[node])),
        ) {
            (Some(outcome), _) if outcome.unknown => return false,
            (Some(outcome), _) => match outcome.tail {
                Some(callee) if self.nodes.may_reach(callee, function) => return false,
                Some(callee) if !self.nodes.may_be_import(callee) => Some(callee),
                _ => {
                    self.by_host(function, at);
                    return true;
                }
            },
            (None, Some((_, NodeEnd::Unknown)) | None) => return false,
            (None, Some((_, NodeEnd::Calls { callee, .. }))) => {
                if self.nodes.may_reach(callee, function) {
                    return false;
                }
                Some(callee)
            }
            (None, Some(_)) => None,
        };
        let text = match callee {
            Some(callee) => format!("{function} follows a call to {}", named(callee)),
            None => format!("{function} follows a node that calls nothing"),
        };
        at.find(PathRule::Callee, text);
        false
    }

    fn by_host(&self, function: FuncId, at: &mut At<'_>) {
        if !self.nodes.callable.contains(function) {
            at.find(
                PathRule::Callee,
                format!("the host calls {function}, which is not exported"),
            );
        }
    }

    /// Checks that a node can follow the last event of the same activation.
    fn resume(&mut self, last: Last, next: NodeId, at: &mut At<'_>) {
        let Some(node) = last.node else {
            // The preceding node is outside the stretch.
            return;
        };
        let function = self.nodes.nodes[node].function;
        let Some(first) = self.nodes.first(next) else {
            return;
        };
        let lands = |vertex: Option<afterimage_ids::BlockId>| {
            vertex.is_some_and(|vertex| self.nodes.landings.allows(function, vertex, first))
        };
        match self.nodes.ends[node] {
            NodeEnd::Unknown => {}
            NodeEnd::Calls {
                callee,
                returns,
                throws,
            } => {
                let Some(outcome) = self.came_to(last.since, callee, at) else {
                    return;
                };
                let returns = outcome.returns && lands(returns);
                let throws = outcome.throws && lands(throws);
                self.came_back(node, returns, throws);
                if !returns && !throws {
                    at.find(
                        PathRule::Sequel,
                        format!("{next} does not begin where {node} continues after its call"),
                    );
                }
            }
            NodeEnd::Goes(vertex) if lands(Some(vertex)) => {}
            NodeEnd::Goes(_) => at.find(
                PathRule::Sequel,
                format!("{next} does not begin where {node} continues"),
            ),
            NodeEnd::Ends(_) => at.find(
                PathRule::Sequel,
                format!("{next} follows {node}, which ends the activation"),
            ),
            NodeEnd::Cut => at.find(
                PathRule::Sequel,
                format!("{next} follows {node}, but the run ends inside {node}"),
            ),
        }
    }

    /// Returns the outcome of a call. Reports a missing callee, and then returns `None`.
    fn came_to(&self, since: Option<Outcome>, callee: Callee, at: &mut At<'_>) -> Option<Outcome> {
        let missing = match since {
            None => callee,
            Some(Outcome {
                tail: Some(callee), ..
            }) => callee,
            Some(outcome) => return Some(outcome),
        };
        if self.nodes.may_be_import(missing) {
            return Some(Outcome::ANY);
        }
        at.find(
            PathRule::Callee,
            format!("nothing follows a call to {}", named(missing)),
        );
        None
    }

    /// Records the ways in which the call at a node's end may have ended.
    fn came_back(&mut self, node: NodeId, returns: bool, throws: bool) {
        match (returns, throws) {
            (true, true) => {
                self.unclear.insert(node);
            }
            (false, true) => self.caught.push(node),
            _ => {}
        }
    }

    /// Checks a whole activation. Returns its outcome.
    fn activation(&mut self, function: FuncId, whole: Option<Span>, at: &mut At<'_>) -> Outcome {
        let Some(whole) = whole else {
            at.find(
                PathRule::Entry,
                format!("an activation of {function} executes nothing"),
            );
            return Outcome::UNKNOWN;
        };
        self.begin(function, &whole, at);
        self.finish(function, whole.last, at)
    }

    /// Checks the beginning of an activation.
    fn begin(&self, function: FuncId, whole: &Span, at: &mut At<'_>) {
        let root = self
            .nodes
            .program
            .function(function)
            .map(|f| f.cfg.graph.root());
        let begins = match whole.first {
            First::Node(node) => {
                let first = self.nodes.first(node);
                first.is_none() || first == root
            }
            First::Call(..) => false,
        };
        if !begins {
            at.find(
                PathRule::Entry,
                format!("an activation of {function} does not begin at its root"),
            );
        }
        self.within(whole, at);
    }

    /// Checks that the host calls no function while an activation is open.
    fn within(&self, span: &Span, at: &mut At<'_>) {
        if span.by_host {
            at.find(
                PathRule::Callee,
                "one activation begins inside another that did not call it".to_owned(),
            );
        }
    }

    /// Checks the end of an activation whose last event was `last`. Returns the activation's
    /// outcome.
    fn finish(&mut self, function: FuncId, last: Last, at: &mut At<'_>) -> Outcome {
        let Some(node) = last.node else {
            return Outcome::UNKNOWN;
        };
        let leaves = |vertex: Option<afterimage_ids::BlockId>| {
            let landing = vertex.map(|vertex| self.nodes.landings.of(function, vertex));
            landing.map_or((false, false), |landing| (landing.returns, landing.throws))
        };
        let (returns, throws) = match self.nodes.ends[node] {
            NodeEnd::Unknown => return Outcome::UNKNOWN,
            NodeEnd::Ends(outcome) => return outcome,
            NodeEnd::Cut => (false, false),
            NodeEnd::Goes(vertex) => leaves(Some(vertex)),
            NodeEnd::Calls {
                callee,
                returns,
                throws,
            } => {
                let Some(outcome) = self.came_to(last.since, callee, at) else {
                    return Outcome::UNKNOWN;
                };
                let returned = outcome.returns && returns.is_none();
                let (caught, passed) = leaves(throws.filter(|_| outcome.throws));
                self.came_back(node, returned, caught || passed);
                (returned || caught, passed)
            }
        };
        if !returns && !throws {
            at.find(
                PathRule::Return,
                format!("an activation of {function} ends after {node}, which continues"),
            );
            return Outcome::UNKNOWN;
        }
        Outcome {
            returns,
            throws,
            tail: None,
            unknown: false,
        }
    }

    /// Checks a stretch of the innermost open activation, or of the host.
    fn run(&mut self, span: Option<Span>, at: &mut At<'_>) {
        let (Some(span), Some(&top)) = (span, self.open.last()) else {
            return;
        };
        let last = match (top.last, top.function) {
            (Some(last), function) => {
                let by_host = self.join(last, span.first, at);
                if function.is_some() {
                    self.within(
                        &Span {
                            by_host: by_host || span.by_host,
                            ..span
                        },
                        at,
                    );
                }
                last.then(span.last)
            }
            (None, Some(function)) => {
                self.begin(function, &span, at);
                span.last
            }
            (None, None) => {
                if let First::Call(function, _) = span.first {
                    self.by_host(function, at);
                }
                span.last
            }
        };
        if let Some(top) = self.open.last_mut() {
            top.last = Some(last);
        }
    }

    /// Checks the end of the innermost open activation, and closes it.
    fn leave(&mut self, at: &mut At<'_>) {
        // The caller has checked that an activation is open.
        let Some(Open {
            function: Some(function),
            last,
        }) = self.open.pop()
        else {
            return;
        };
        let outcome = match last {
            Some(last) => self.finish(function, last, at),
            None => {
                at.find(
                    PathRule::Entry,
                    format!("an activation of {function} executes nothing"),
                );
                Outcome::UNKNOWN
            }
        };
        if let Some(top) = self.open.last_mut() {
            let call = Span::of_call(function, outcome).last;
            top.last = Some(top.last.map_or(call, |last| last.then(call)));
        }
    }
}

/// A place in the path.
struct At<'r> {
    segment: usize,
    place: SegmentPart,
    report: &'r mut PathReport,
}

#[derive(Clone, Copy)]
enum SegmentPart {
    Rule(RuleId),
    Item(usize),
}

impl At<'_> {
    fn find(&mut self, rule: PathRule, what: String) {
        let segment = self.segment;
        let text = match self.place {
            SegmentPart::Rule(id) => format!("segment {segment}, {id}: {what}"),
            SegmentPart::Item(item) => format!("segment {segment}, item {item}: {what}"),
        };
        self.report.find(rule, text);
    }
}

fn named(callee: Callee) -> String {
    match callee {
        Callee::Direct(function) => function.to_string(),
        Callee::Indirect { ty, .. } => format!("a function of {ty} in a table"),
    }
}

fn span_of(symbol: Symbol, spans: &PrimaryMap<RuleId, Option<Span>>) -> Option<Span> {
    match symbol.as_rule() {
        Some(rule) => spans[rule],
        None => symbol.as_node().map(Span::of_node),
    }
}
