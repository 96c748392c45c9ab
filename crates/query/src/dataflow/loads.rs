//! Redundancy of loads by the path alone.

use afterimage_dataflow::{Direction, Outcome, Summaries};
use afterimage_ids::FuncId;
use afterimage_program::Program;
use rustc_hash::FxHashMap;

use super::calls::RunCalls;
use super::expressions::{Access, Definition, Expression, definition};
use super::memory::{Bytes, Code, Codes, Decider, InCallees, Sites, Touch, relation};
use super::question::{Asked, Counts, OwnEvents, ask};
use crate::steps::AccessSite;

/// How many executions of a load are redundant by the path that led there, without looking at addresses.
///
/// An execution is, if on the path before it in its call (and what that called) there is a load or store whose address is the same expression of values that were not computed anew
/// since, or the same constant, that covers all bytes; and if since then came no store, bulk operation or call of the host that might write one of them: one to a constant address, or to another offset
/// of the same expression, that does not overlap cannot. It is what a compiler may remove that knows the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRedundancy {
    /// The load.
    pub site: AccessSite,
    /// How often it was executed.
    pub executions: u64,
    /// How often it was redundant.
    pub redundant: u64,
    /// By which loads and stores, those that were so most often first.
    pub sources: Vec<(AccessSite, u64)>,
    /// How many queries ⟨timestamps, node⟩ were raised.
    pub queries: u64,
}

/// Finds how redundant some loads of a run are, by queries on the timestamped control-flow graphs of their functions (Zhang and Gupta 2001, section 4.3.1). In the order of
/// the sites; those that are no loads are left out.
///
/// Time is linear in the blocks of the functions' unique path traces, times loads and logarithms, and where these are regular less; and for each constant address in
/// the unique path traces of the run.
pub fn path_redundancy(
    calls: &RunCalls,
    program: &Program,
    module: &[u8],
    loads: &[AccessSite],
) -> Vec<PathRedundancy> {
    let codes = Codes::new(program, module);
    let sites = Sites::with_kills_alike();
    let mut known = FxHashMap::<Bytes, Summaries<'_>>::default();
    let mut facts = Vec::new();
    for &site in loads {
        let Some(code) = codes.of(site.function) else {
            continue;
        };
        let mut accesses = code.expressions.accesses.iter();
        let Some(&load) = accesses.find(|a| a.op == site.op && !a.is_store) else {
            continue;
        };
        let events = own_events(&code, &load, &sites);
        let bytes = read_by(&load);
        known.entry(bytes).or_insert_with(|| {
            let events = InCallees {
                codes: &codes,
                sites: &sites,
                bytes,
            };
            calls.summaries(Direction::Backward, &events)
        });
        facts.push((site, load, events, bytes));
    }
    let mut found: FxHashMap<AccessSite, Counts> = FxHashMap::default();
    let mut by_function: FxHashMap<FuncId, Vec<usize>> = FxHashMap::default();
    for (k, fact) in facts.iter().enumerate() {
        by_function.entry(fact.0.function).or_default().push(k);
    }
    for (function, facts_of) in by_function {
        let questions = facts_of.iter().map(|&k| {
            let (site, load, events, bytes) = &facts[k];
            Asked {
                direction: Direction::Backward,
                block: load.block,
                op: site.op,
                events,
                summaries: Some(&known[bytes]),
            }
        });
        let questions = Vec::from_iter(questions);
        ask(calls, function, &questions, |k, _, alike, _, solution| {
            let counts = found.entry(facts[facts_of[k]].0).or_default();
            counts.add(alike, &solution);
        });
    }
    let mut answers = Vec::new();
    for (site, ..) in &facts {
        let counts = found.remove(site).unwrap_or_default();
        let by = counts.by_outcome.iter();
        let by = by.filter_map(|(outcome, &times)| match outcome {
            Outcome::Decided(site) => match sites.get(*site) {
                Decider::Gen(function, op) => Some((AccessSite { function, op }, times)),
                _ => None,
            },
            Outcome::Open => None,
        });
        let mut sources = Vec::from_iter(by);
        sources.sort_unstable_by_key(|&(site, times)| (std::cmp::Reverse(times), site));
        answers.push(PathRedundancy {
            site: *site,
            executions: counts.executions,
            redundant: sources.iter().map(|(_, times)| times).sum(),
            sources,
            queries: counts.queries,
        });
    }
    answers
}

/// What a load reads, as called functions see it.
pub(super) fn read_by(load: &Access) -> Bytes {
    Bytes {
        memory: load.memory,
        address: load.address,
        // Where that is not a constant, all are alike.
        bytes: load.address.map_or(0, |_| load.bytes),
    }
}

/// What in a load's own function makes its bytes available or unavailable.
pub(super) fn own_events(code: &Code<'_>, load: &Access, sites: &Sites) -> OwnEvents {
    let mut events = OwnEvents::default();
    let function = code.function.id;
    for &(block, op, touch) in &code.touches {
        let is_available = match touch {
            Touch::Host => Some(false),
            Touch::MaybeHost => {
                events.at_host(block, sites.of(Decider::Kill(function, op)));
                None
            }
            Touch::Bulk(memory) => (memory == load.memory).then_some(false),
            Touch::Access(k) => available(&code.expressions.accesses[k], load),
        };
        if let Some(is_available) = is_available {
            let decider = match is_available {
                true => Decider::Gen(function, op),
                false => Decider::Kill(function, op),
            };
            events.at_operator(block, op, sites.of(decider));
        }
    }
    redefined(code, load.base, sites, &mut events);
    events
}

/// Whether an access makes what a load reads available, or unavailable.
fn available(access: &Access, load: &Access) -> Option<bool> {
    if access.memory != load.memory {
        return None;
    }
    let from = match (access.address, load.address) {
        (Some(other), Some(address)) => i128::from(address) - i128::from(other),
        _ if access.base == load.base => i128::from(load.offset) - i128::from(access.offset),
        _ => return access.is_store.then_some(false),
    };
    relation(access, from, load.bytes)
}

/// An expression gets another meaning where a value that it is computed from is defined.
pub(super) fn redefined(
    code: &Code<'_>,
    expression: Expression,
    sites: &Sites,
    events: &mut OwnEvents,
) {
    let function = code.function.id;
    for &leaf in code.expressions.leaves(expression) {
        match definition(code.function, &code.ssa, leaf) {
            Definition::Entry => {}
            Definition::Block(block) => {
                events.at_begin(block, sites.of(Decider::Meets(function, block)));
            }
            Definition::Operator(op) => {
                if let Some(block) = code.function.block_of(op) {
                    events.at_operator(block, op, sites.of(Decider::Kill(function, op)));
                }
            }
        }
    }
}
