//! Computes the redundancy of expressions from the path alone.

use afterimage_program::Program;
use rustc_hash::FxHashMap;

use super::calls::RunCalls;
use super::facts::computed;
use super::loads::{PathRedundancy, Wanted, answers, work};
use super::memory::{Codes, Sites};
use super::question::Meter;
use afterimage_replay::steps::AccessSite;

/// Finds how redundant some pure operators of a run are. Uses queries for available expressions on
/// the timestamped control-flow graphs of their functions (Zhang and Gupta 2001, section 4). The
/// results are in the order of the sites. Sites that are not pure operators have no result. `tell`
/// receives the share of the work that is done.
///
/// Time is linear in the blocks of the functions' unique path traces, times the number of operators
/// and a logarithm. Regular traces take less.
pub fn path_expressions(
    calls: &RunCalls,
    program: &Program,
    module: &[u8],
    operators: &[AccessSite],
    tell: &dyn Fn(f64),
) -> Vec<PathRedundancy> {
    let codes = Codes::new(program, module);
    let sites = Sites::with_kills_alike();
    let mut wanted = Vec::new();
    for &site in operators {
        let Some(code) = codes.of(site.function) else {
            continue;
        };
        let (Some(block), Ok(events)) = (
            code.function.block_of(site.op),
            computed(&code, site.op, &sites),
        ) else {
            continue;
        };
        wanted.push(Wanted {
            site,
            block,
            events,
            read: None,
        });
    }
    let meter = Meter::new(work(calls, &wanted), tell);
    answers(calls, &sites, &wanted, (&FxHashMap::default(), &meter))
}
