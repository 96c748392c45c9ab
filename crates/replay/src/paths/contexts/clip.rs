//! The activations of a stretch of a run: whole rules where they are wholly in it, parts of rules at its edges.

use afterimage_ids::{FuncId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, PathError, Root, Segment, Segments, Symbol, WholePath};

use super::activations::{Activations, Doing};
use crate::paths::Window;
use crate::paths::grammar::checked;

/// What a rule stands for.
#[derive(Clone, Copy, Default)]
struct RuleFacts {
    length: u64,
    /// Blocks that belong to the activation around it, beside those of the part.
    own: u64,
    /// Blocks that were left out, beside those of the part.
    gaps: u64,
    part: Option<(u32, u64)>,
}

/// An activation that is open.
struct Open {
    function: Option<FuncId>,
    begins: bool,
    doing: Doing,
}

struct Clip<'a, S> {
    path: &'a WholePath<S>,
    activations: Activations,
    /// The host first.
    open: Vec<Open>,
}

/// The activations of a window, and what the host does in it.
pub(super) fn collect<S: Segments>(
    path: &WholePath<S>,
    window: Window,
) -> Result<(Activations, u32), PathError<S::Error>> {
    let mut clip = Clip {
        path,
        activations: Activations::default(),
        open: Vec::new(),
    };
    clip.enter(None, true);
    // Blocks of the run that precede it, and those up to its end.
    let (from, to) = (window.first.saturating_sub(1), window.last);
    for (number, summary) in path.segments().summaries().iter().enumerate() {
        let (start, end) = (summary.before, summary.before + summary.length);
        if end <= from || start >= to {
            continue;
        }
        let segment = checked(path, number)?;
        if start <= from {
            for &function in &segment.open {
                clip.enter(Some(function), false);
            }
        }
        let open = clip.open[1..].iter().map(|open| open.function);
        if !open.eq(segment.open.iter().copied().map(Some)) {
            return Err(PathError::Follow { segment: number });
        }
        clip.segment(&segment, from.saturating_sub(start), to.min(end) - start);
    }
    while clip.open.len() > 1 {
        clip.leave();
    }
    let host = clip
        .open
        .pop()
        .map_or_else(Doing::default, |host| host.doing);
    let host = clip.activations.make(None, false, host);
    Ok((clip.activations, host))
}

/// What is left to be done, the next one last.
enum Task {
    /// From one block of a symbol to another.
    Symbol(Symbol, u64, u64),
    Leave,
}

impl<S: Segments> Clip<'_, S> {
    fn enter(&mut self, function: Option<FuncId>, begins: bool) {
        self.open.push(Open {
            function,
            begins,
            doing: Doing::default(),
        });
    }

    fn leave(&mut self) {
        let Some(Open {
            function,
            begins,
            doing,
        }) = self.open.pop()
        else {
            return;
        };
        // One that ended before the window.
        if !begins && doing.own == 0 && doing.gaps == 0 && doing.parts.is_empty() {
            return;
        }
        let id = self.activations.make(function, begins, doing);
        self.add(0, 0, Some((id, 1)));
    }

    fn add(&mut self, own: u64, gaps: u64, part: Option<(u32, u64)>) {
        if let Some(open) = self.open.last_mut() {
            open.doing.add(own, gaps, part);
        }
    }

    /// The blocks from `from` to `to` of a segment.
    fn segment(&mut self, segment: &Segment, from: u64, to: u64) {
        let rules = self.rules(segment);
        let mut at = 0;
        for item in &segment.root {
            match *item {
                _ if at >= to => break,
                Root::Enter(function) => self.enter(Some(function), at >= from),
                Root::Leave => self.leave(),
                Root::Run(symbol) => {
                    let length = self.known(symbol, &rules).length;
                    let (first, last) = (from.max(at), to.min(at + length));
                    if first < last {
                        self.part(segment, &rules, symbol, first - at, last - at);
                    }
                    at += length;
                }
            }
        }
    }

    /// What each rule stands for. Linear.
    fn rules(&mut self, segment: &Segment) -> PrimaryMap<RuleId, RuleFacts> {
        let grammar = &segment.grammar;
        let mut rules = PrimaryMap::with_capacity(grammar.rules.len());
        for (id, rule) in grammar.rules.iter() {
            let mut doing = Doing::default();
            let mut length = 0;
            for &symbol in grammar.symbols_of(id) {
                let known = self.known(symbol, &rules);
                doing.add(known.own, known.gaps, known.part);
                length += known.length;
            }
            rules.push(match rule.kind {
                Kind::Call(function) => RuleFacts {
                    length,
                    own: 0,
                    gaps: 0,
                    part: Some((self.activations.make(Some(function), true, doing), 1)),
                },
                // Rules that are never executed may be too long to be counted.
                Kind::Repeat(times) => RuleFacts {
                    length: length.saturating_mul(times),
                    own: doing.own.saturating_mul(times),
                    gaps: doing.gaps.saturating_mul(times),
                    part: doing
                        .parts
                        .first()
                        .map(|&(id, each)| (id, each.saturating_mul(times))),
                },
                Kind::Sequence if doing.parts.len() < 2 => RuleFacts {
                    length,
                    own: doing.own,
                    gaps: doing.gaps,
                    part: doing.parts.first().copied(),
                },
                Kind::Sequence => RuleFacts {
                    length,
                    own: 0,
                    gaps: 0,
                    part: Some((self.activations.make(None, true, doing), 1)),
                },
            });
        }
        rules
    }

    fn known(&self, symbol: Symbol, rules: &PrimaryMap<RuleId, RuleFacts>) -> RuleFacts {
        match (symbol.as_rule(), symbol.as_node()) {
            (Some(rule), _) => rules[rule],
            (None, Some(node)) => {
                let node = &self.path.nodes()[node];
                RuleFacts {
                    length: node.length(),
                    own: node.blocks.len() as u64,
                    gaps: node.left_out,
                    part: None,
                }
            }
            (None, None) => RuleFacts::default(),
        }
    }

    /// A part of a symbol, which is not empty. Takes a look at the rules on the way down to its two edges.
    fn part(
        &mut self,
        segment: &Segment,
        rules: &PrimaryMap<RuleId, RuleFacts>,
        symbol: Symbol,
        from: u64,
        to: u64,
    ) {
        let mut tasks = vec![Task::Symbol(symbol, from, to)];
        while let Some(task) = tasks.pop() {
            let Task::Symbol(symbol, from, to) = task else {
                self.leave();
                continue;
            };
            let known = self.known(symbol, rules);
            let Some(rule) = symbol.as_rule().filter(|_| from > 0 || to < known.length) else {
                // A node is blocks or a gap, so that of a part of it one is none.
                let of_node = |blocks: u64| match symbol.as_node() {
                    Some(_) => blocks.min(to - from),
                    None => blocks,
                };
                self.add(of_node(known.own), of_node(known.gaps), known.part);
                continue;
            };
            let symbols = segment.grammar.symbols_of(rule);
            match segment.grammar.rules[rule].kind {
                Kind::Repeat(times) => {
                    let round = known.length / times;
                    let (first, last) = (from / round, (to - 1) / round);
                    let body = symbols[0];
                    if first == last {
                        tasks.push(Task::Symbol(body, from - first * round, to - first * round));
                        continue;
                    }
                    tasks.push(Task::Symbol(body, 0, to - last * round));
                    tasks.push(Task::Symbol(body, from - first * round, round));
                    let whole = last - first - 1;
                    let known = self.known(body, rules);
                    let part = known.part.map(|(id, each)| (id, each * whole));
                    let (own, gaps) = (known.own * whole, known.gaps * whole);
                    self.add(own, gaps, part.filter(|_| whole > 0));
                    continue;
                }
                Kind::Call(function) => {
                    self.enter(Some(function), from == 0);
                    tasks.push(Task::Leave);
                }
                Kind::Sequence => {}
            }
            let mut at = 0;
            for &symbol in symbols {
                let length = self.known(symbol, rules).length;
                let (first, last) = (from.max(at), to.min(at + length));
                if first < last {
                    tasks.push(Task::Symbol(symbol, first - at, last - at));
                }
                at += length;
            }
        }
    }
}
