//! Computes the redundancy of loads from the path alone.

use afterimage_dataflow::{Direction, Outcome, Summaries};
use afterimage_ids::{BlockId, FuncId};
use afterimage_program::Program;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::RunCalls;
use super::expressions::{Access, Definition, Expression, definition};
use super::memory::{Bytes, Code, Codes, Decider, InCallees, Sites, Touch, relation};
use super::question::{self, Counts, FactQuery, Meter, OwnEvents, ask};
use afterimage_replay::steps::AccessSite;

/// The number of an operator's executions that the preceding path alone makes redundant, regardless
/// of addresses and values.
///
/// *An execution of a load* is redundant if an earlier load or store on the path, in its call or in
/// its callees, covers all its bytes. The address of that access must be the same constant, or the
/// same expression of values that have not been recomputed since. After that access, no store, bulk
/// operation or host call may have written any of the bytes. (A store to a constant address, or to
/// another offset of the same expression, is harmless if it does not overlap.)
///
/// *An execution of a pure operator* is redundant if an earlier operator on the path computed the
/// same expression in the same call. No value in that expression may have been recomputed since. A
/// compiler that knows the path may remove these executions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRedundancy {
    /// The load, or the pure operator.
    pub site: AccessSite,
    /// The number of executions.
    pub executions: u64,
    /// The number of redundant executions.
    pub redundant: u64,
    /// The operators that made the executions redundant, most frequent first.
    pub sources: Vec<(AccessSite, u64)>,
    /// The number of queries ⟨timestamps, node⟩ raised.
    pub queries: u64,
    /// The number of path steps scanned one by one, because the trace was too irregular for
    /// queries.
    pub scanned: u64,
}

/// Finds how redundant some loads of a run are. Uses queries on the timestamped control-flow graphs
/// of their functions (Zhang and Gupta 2001, section 4.3.1). The results are in the order of the
/// sites. Sites that are not loads have no result. `tell` receives the share of the work that is
/// done.
///
/// Time is linear in the blocks of the functions' unique path traces, times the number of loads and
/// a logarithm. Regular traces take less. Each constant address adds time linear in the unique path
/// traces of the run.
pub fn path_redundancy(
    calls: &RunCalls,
    program: &Program,
    module: &[u8],
    loads: &[AccessSite],
    tell: &dyn Fn(f64),
) -> Vec<PathRedundancy> {
    let codes = Codes::new(program, module);
    let sites = Sites::with_kills_alike();
    let mut wanted = Vec::new();
    for &site in loads {
        let Some(code) = codes.of(site.function) else {
            continue;
        };
        let mut accesses = code.expressions.accesses.iter();
        let Some(&load) = accesses.find(|a| a.op == site.op && !a.is_store) else {
            continue;
        };
        wanted.push(Wanted {
            site,
            block: load.block,
            events: own_events(&code, &load, &sites),
            read: Some(read_by(&load)),
        });
    }
    let read: FxHashSet<Bytes> = wanted.iter().filter_map(|one| one.read).collect();
    let of_callees = calls.all_trace_blocks();
    let all = of_callees.saturating_mul(read.len() as u64);
    let meter = Meter::new(all.saturating_add(work(calls, &wanted)), tell);
    let known = read.into_iter().map(|bytes| {
        let events = InCallees {
            codes: &codes,
            sites: &sites,
            bytes,
        };
        let summaries = calls.summaries(Direction::Backward, &events);
        meter.add(of_callees);
        (bytes, summaries)
    });
    answers(calls, &sites, &wanted, (&known.collect(), &meter))
}

/// The facts about the operator at a site that a query needs.
pub(super) struct Wanted {
    pub site: AccessSite,
    pub block: BlockId,
    pub events: OwnEvents,
    /// The bytes that the operator reads, if any.
    pub read: Option<Bytes>,
}

/// Returns the work of [`answers`], for a meter.
pub(super) fn work(calls: &RunCalls, wanted: &[Wanted]) -> u64 {
    let each = wanted
        .iter()
        .map(|one| question::work(calls, one.site.function));
    each.fold(0, u64::saturating_add)
}

/// Returns how often the wanted values are available.
pub(super) fn answers(
    calls: &RunCalls,
    sites: &Sites,
    wanted: &[Wanted],
    (known, meter): (&FxHashMap<Bytes, Summaries<'_>>, &Meter<'_>),
) -> Vec<PathRedundancy> {
    let mut found: FxHashMap<AccessSite, Counts> = FxHashMap::default();
    let mut by_function: FxHashMap<FuncId, Vec<&Wanted>> = FxHashMap::default();
    for one in wanted {
        by_function.entry(one.site.function).or_default().push(one);
    }
    for (function, of) in by_function {
        let questions = of.iter().map(|one| FactQuery {
            direction: Direction::Backward,
            block: one.block,
            op: one.site.op,
            events: &one.events,
            summaries: one.read.map(|bytes| &known[&bytes]),
        });
        let questions = Vec::from_iter(questions);
        ask(
            calls,
            function,
            &questions,
            meter,
            |k, _, alike, _, solution| {
                let counts = found.entry(of[k].site).or_default();
                counts.add(alike, &solution);
            },
        );
    }
    let mut answers = Vec::new();
    for Wanted { site, .. } in wanted {
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
            scanned: counts.scanned,
        });
    }
    answers
}

/// Returns the bytes that a load reads, as callees see them.
pub(super) fn read_by(load: &Access) -> Bytes {
    Bytes {
        memory: load.memory,
        address: load.address,
        // Callees do not distinguish loads from non-constant addresses.
        bytes: load.address.map_or(0, |_| load.bytes),
    }
}

/// Returns the events in a load's own function that make its bytes available or unavailable.
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
            let decider = if is_available {
                Decider::Gen(function, op)
            } else {
                Decider::Kill(function, op)
            };
            events.at_operator(block, op, sites.of(decider));
        }
    }
    redefined(code, load.base, sites, &mut events);
    events
}

/// Whether an access makes the bytes of a load available, or unavailable; `None` if neither.
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

/// Adds the places where the values of an expression are redefined, which changes its meaning.
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
