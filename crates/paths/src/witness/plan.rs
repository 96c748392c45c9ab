//! The witnesses that each function of a program writes, and the places where it writes them.

use afterimage_graph::{Adjacency, Components, FlowGraph};
use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId};
use afterimage_placement::{PlanError, SplitCost, Weights, function_weights};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, Function, Program};

use super::{Placement, Role, Token, TraceGraph, assign_tokens, blockers, chords, place};
use crate::steps::{Written, place as place_steps};
use crate::writers::Writers;
use crate::{EntryIds, Spot, Step};

/// The exponent applied to heuristic weights before codes are derived from them. With it, edges
/// that are assumed to be rare do not get overlong codes. On eight real programs, this takes 5 %
/// fewer bits than the unchanged weights.
const GUESSES: f64 = 0.6;

/// The options for choosing witnesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WitnessOptions {
    /// The cost of a witness on an edge.
    pub split_cost: SplitCost,
    /// Whether to delete witnesses on chords of the spanning tree that distinguish nothing. If not,
    /// the placement is the paper's.
    pub delete: bool,
}

impl Default for WitnessOptions {
    fn default() -> Self {
        Self {
            split_cost: SplitCost::default(),
            delete: true,
        }
    }
}

/// The witnesses of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionWitnesses {
    edges: Vec<(EdgeId, Token)>,
    /// For each entry of `edges`, the group whose code contains the token.
    groups: Vec<u32>,
    entry: Option<Token>,
    may_write: bool,
}

impl FunctionWitnesses {
    /// Returns the edges that write, ascending, with their tokens.
    ///
    /// Edges out of blocks that end with a tail call or a throw never write, because these
    /// operators can still fail.
    pub fn edges(&self) -> &[(EdgeId, Token)] {
        &self.edges
    }

    /// Returns the edges that write, each with its token and the group whose code contains the
    /// token.
    pub(super) fn coded(&self) -> impl Iterator<Item = (EdgeId, Token, u32)> + '_ {
        let edges = self.edges.iter().zip(&self.groups);
        edges.map(|(&(edge, token), &group)| (edge, token, group))
    }

    /// Returns the token that the function writes on entry from any caller, before its root.
    pub fn entry(&self) -> Option<Token> {
        self.entry
    }

    /// Whether anything may be written between a call to this function and its return.
    pub fn may_write(&self) -> bool {
        self.may_write
    }

    /// Returns the widest token on an edge, in bits.
    pub fn width(&self) -> u8 {
        self.edges.iter().map(|(_, t)| t.width).max().unwrap_or(0)
    }
}

/// Witnesses for a whole program, written as one stream of tokens.
///
/// The host writes, too. Whenever an import whose address is taken is called, the host writes the
/// import's number in [`WitnessPlan::entry_ids`].
#[derive(Clone, Debug)]
pub struct WitnessPlan {
    functions: Vec<FunctionWitnesses>,
    entry_ids: EntryIds,
    /// The probes of each defined function.
    steps: Vec<Vec<(Spot, Step)>>,
}

/// Returns the places where the tokens are written.
fn probes(cfg: &Cfg, witnesses: &FunctionWitnesses, writers: &Writers) -> Vec<(Spot, Step)> {
    let begin = |token: Token| Step::Begin {
        width: token.width,
        bits: u64::from(token.value),
    };
    place_steps(&Written {
        cfg,
        writers,
        at_start: &|v| {
            let entry = witnesses.entry.filter(|_| v == cfg.graph.root());
            entry.map(begin)
        },
        on_edge: &|e| {
            let found = witnesses.edges.binary_search_by_key(&e, |w| w.0);
            found.ok().map(|i| begin(witnesses.edges[i].1))
        },
    })
}

impl WitnessPlan {
    /// Plans a program's witnesses. The counts of an earlier run serve as weights if given. Time:
    /// near-linear.
    ///
    /// # Errors
    /// Returns an error if the counts belong to another program.
    pub fn new(
        program: &Program,
        feedback: Option<&Counts>,
        options: &WitnessOptions,
    ) -> Result<Self, PlanError> {
        let weights = function_weights(program, feedback)?;
        let confidence = feedback.map_or(GUESSES, |_| 1.0);
        let entry_ids = EntryIds::new(program);
        let entries: Vec<Option<Token>> = program
            .functions
            .iter()
            .map(|f| entry_token(f, &entry_ids))
            .collect();
        let imports =
            (0..program.imports.len()).map(|i| number(&entry_ids, FuncId::new(i)).is_some());
        let defined = program.functions.iter().zip(&entries);
        let defined = defined.map(|(f, entry)| entry.is_some() || must_tell(&f.cfg));
        let writers = Writers::new(program, imports.chain(defined).collect());
        let functions = program.functions.iter().zip(weights).zip(entries);
        let functions = functions.map(|((f, weights), entry)| {
            let (edges, groups) = witnesses(&f.cfg, &weights, &writers, options, confidence);
            FunctionWitnesses {
                edges,
                groups,
                entry,
                may_write: writers.call(Callee::Direct(f.id)),
            }
        });
        let functions: Vec<FunctionWitnesses> = functions.collect();
        let steps = program.functions.iter().zip(&functions);
        let steps = steps.map(|(f, witnesses)| probes(&f.cfg, witnesses, &writers));
        Ok(Self {
            steps: steps.collect(),
            functions,
            entry_ids,
        })
    }

    /// Returns the probes of the `i`-th defined function. Steps that share an operator must be
    /// placed in this order.
    pub fn steps(&self, i: usize) -> &[(Spot, Step)] {
        &self.steps[i]
    }

    /// Returns the witnesses of the functions, in code-section order.
    pub fn functions(&self) -> &[FunctionWitnesses] {
        &self.functions
    }

    /// Returns the numbers of functions that may be called through a table.
    pub fn entry_ids(&self) -> &EntryIds {
        &self.entry_ids
    }
}

/// Returns a function's number among the functions of its type that may be called through a table,
/// if there are several.
pub(super) fn number(entry_ids: &EntryIds, function: FuncId) -> Option<Token> {
    let (value, width) = entry_ids.of(function)?;
    (width > 0).then_some(Token { value, width })
}

/// Returns the token that a function writes at its entry. The token is the function's number, or a
/// mere mark of entry if the function may make a tail call without writing anything else. Without
/// such marks, functions could replace each other silently forever.
fn entry_token(function: &Function, entry_ids: &EntryIds) -> Option<Token> {
    let tick = Token { value: 0, width: 1 };
    number(entry_ids, function.id).or_else(|| tail_calls_silently(&function.cfg).then_some(tick))
}

/// Whether a tail call is reached from the root without passing a branch.
fn tail_calls_silently(cfg: &Cfg) -> bool {
    let mut seen = vec![false; cfg.graph.vertex_count()];
    let mut stack = vec![cfg.graph.root()];
    while let Some(v) = stack.pop() {
        if std::mem::replace(&mut seen[v.index()], true) || is_branch(cfg, v) {
            continue;
        }
        if matches!(cfg.blocks[v].end, BlockEnd::TailCall(_)) {
            return true;
        }
        stack.extend(cfg.graph.successors(v));
    }
    false
}

fn is_branch(cfg: &Cfg, v: BlockId) -> bool {
    cfg.graph.out_edges(v).len() > 1 && !matches!(cfg.blocks[v].end, BlockEnd::Call(_))
}

/// Whether a function needs its own witnesses, because it has a branch or a cycle.
fn must_tell(cfg: &Cfg) -> bool {
    cfg.blocks.keys().any(|v| is_branch(cfg, v)) || has_cycle(&cfg.graph)
}

fn has_cycle(graph: &FlowGraph) -> bool {
    let ends = |e| (graph.from(e).index(), graph.to(e).index());
    let pairs = graph.edges().map(ends);
    let adjacency = Adjacency::new(graph.vertex_count(), pairs.clone());
    pairs.clone().any(|(from, to)| from == to)
        || Components::compute(&adjacency).count() < graph.vertex_count()
}

/// Returns a function's graph with the roles of its calls. EXIT is foreign, because the caller
/// continues after it.
fn view<'g>(cfg: &'g Cfg, writes: impl Fn(Callee) -> bool) -> TraceGraph<'g> {
    TraceGraph::new(
        &cfg.graph,
        |v| match cfg.blocks[v].end {
            BlockEnd::Exit | BlockEnd::TailCall(_) => Role::Foreign,
            BlockEnd::Call(callee) if writes(callee) => Role::Foreign,
            BlockEnd::Call(_) => Role::SilentCall,
            _ => Role::Plain,
        },
        |e| {
            let edge = &cfg.edges[e];
            // The operator may fail after a probe right before it.
            matches!(
                cfg.blocks[edge.from].end,
                BlockEnd::TailCall(_) | BlockEnd::Throw
            ) && cfg.blocks[edge.to].kind != BlockKind::Code
        },
    )
}

fn witnesses(
    cfg: &Cfg,
    weights: &Weights,
    writers: &Writers,
    options: &WitnessOptions,
    confidence: f64,
) -> (Vec<(EdgeId, Token)>, Vec<u32>) {
    if !must_tell(cfg) {
        return (Vec::new(), Vec::new());
    }
    let edges = cfg.edges.keys();
    let weight: Vec<f64> = edges
        .map(|e| weights.edge(e) * options.split_cost.factor(cfg, e))
        .collect();
    let view = view(cfg, |callee| writers.call(callee));
    let placement = if options.delete {
        place(&view, &weight)
    } else {
        let mut placement = Placement::new(&cfg.graph, []);
        blockers(&view, &mut placement);
        chords(&view, &mut placement, &weight);
        placement
    };
    let expected: Vec<f64> = weight.iter().map(|w| w.powf(confidence)).collect();
    let tokens = assign_tokens(&view, &placement, &expected);
    tokens
        .iter()
        .map(|(e, token, group)| ((e, token), group))
        .unzip()
}
