//! Counts the values of statements by following the run. For many executions, this is faster than
//! looking up the values one by one.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, OpId};
use afterimage_machine::{Code, GlobalBits, NodeCode, Observer};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::ValType;

use super::follow::{Follower, Run};
use super::plan::{Item, Kind, Plan};
use super::stream::Plans;
use super::{StepsError, Value};
use crate::values::TypedValue;

/// A statement and a range of its executions, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionRange {
    /// The function that contains the statement.
    pub function: FuncId,
    /// The operator of the statement.
    pub op: OpId,
    /// The first and the last execution.
    pub executions: (u64, u64),
}

/// The instruction that gives a statement's value in a node.
struct Pick {
    /// The index of the statement in the list of questions.
    site: usize,
    /// The instruction's position.
    inst: usize,
    register: u32,
    role: &'static str,
    ty: ValType,
}

/// A value of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedValue {
    /// The value of the statement.
    pub value: TypedValue,
    /// The number of executions that gave this value.
    pub times: u64,
    /// The number of the first of these executions, from 1.
    pub first: u64,
}

/// The distinct values of a statement, in the order of their bits.
pub type ValueCounts = Vec<CountedValue>;

/// The counted values, by their bits.
type Counts = HashMap<GlobalBits, CountedValue>;

struct Counted {
    /// The picks of the current node.
    picks: Rc<[Pick]>,
    sites: Vec<Site>,
}

struct Site {
    wanted: (u64, u64),
    executed: u64,
    counts: Counts,
}

impl Counted {
    fn count(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        for pick in self.picks.iter().filter(|pick| pick.inst < executed) {
            let site = &mut self.sites[pick.site];
            site.executed += 1;
            let (first, last) = site.wanted;
            if !(first..=last).contains(&site.executed) {
                continue;
            }
            let of = |half: &[u64]| half.get(pick.register as usize).copied().unwrap_or(0);
            let mut bits = (of(low), of(high));
            let inst = &code.insts[pick.inst];
            if is_store(inst.code) {
                bits = inst.stored(bits);
            }
            let Value { ty, bits } = Value::new(pick.ty, bits);
            let role = pick.role;
            let counted = site.counts.entry(bits).or_insert(CountedValue {
                value: TypedValue { role, ty, bits },
                times: 0,
                first: site.executed,
            });
            counted.times += 1;
        }
    }
}

impl Observer for Counted {
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.count(code, code.insts.len(), low, high);
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.count(code, executed, low, high);
    }
}

fn is_store(code: Code) -> bool {
    matches!(code, Code::Store(_) | Code::StoreVector(_))
}

/// Counts the values of [`Types::results_of`](crate::values::Types::results_of) for these
/// executions. Returns, for each statement, the distinct values in the order of their bits, each
/// with its number of occurrences. The result is `None` for a statement such as a call, whose value
/// does not follow from instructions alone.
///
/// Follows the run once for any number of questions. Memory use is linear in the distinct values.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn count_values<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    asked: &[ExecutionRange],
) -> Result<Vec<Option<ValueCounts>>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let mut plans = Plans::new(run);
    let sites = asked.iter().map(|asked| Site {
        wanted: asked.executions,
        executed: 0,
        counts: Counts::new(),
    });
    let mut counted = Counted {
        picks: Rc::default(),
        sites: sites.collect(),
    };
    let mut nodes: Vec<Option<Rc<[Pick]>>> = vec![None; run.path.nodes().len()];
    let mut told = vec![true; asked.len()];
    while let Some(visit) = follower.advance()? {
        let at = visit.node.index();
        if nodes[at].is_none() {
            let plan = plans.of(visit.node, &follower)?;
            let code = &follower.machine.codes()[visit.node];
            nodes[at] = Some(picks(asked, code, &plan, &mut told).into());
        }
        let picks = nodes[at].as_ref().filter(|picks| !picks.is_empty());
        match picks {
            None => follower.execute(visit, &mut ())?,
            Some(picks) => {
                counted.picks = Rc::clone(picks);
                follower.execute(visit, &mut counted)?;
            }
        }
    }
    let counts = counted.sites.into_iter().zip(told).map(|(site, told)| {
        let mut counts = Vec::from_iter(site.counts.into_values());
        counts.sort_unstable_by_key(|counted| counted.value.bits);
        told.then_some(counts)
    });
    Ok(counts.collect())
}

/// Returns the picks of a node. Statements that are not instructions have no pick.
fn picks(asked: &[ExecutionRange], code: &NodeCode, plan: &Plan, told: &mut [bool]) -> Vec<Pick> {
    let mut picks = Vec::new();
    for (site, asked) in asked.iter().enumerate() {
        if asked.function != code.function {
            continue;
        }
        for item in plan.items.iter().filter(|item| item.op == asked.op) {
            match item.kind {
                Kind::Inst(inst) => picks.extend(pick(site, inst, item, code)),
                _ => told[site] = false,
            }
        }
    }
    picks
}

fn pick(site: usize, inst: usize, item: &Item, code: &NodeCode) -> Option<Pick> {
    let known = &code.insts[inst];
    let operands = item.operands();
    let (register, role, ty) = match (item.result(), known.code) {
        (Some(ty), _) => (code.first_result() + inst as u32, "", ty),
        (None, code) if is_store(code) => (known.b, "stored", *operands.get(1)?),
        (None, Code::GlobalSet) => (known.a, "set", *operands.first()?),
        (None, Code::Branch(_)) => (known.a, "decided by", *operands.last()?),
        (None, _) => return None,
    };
    Some(Pick {
        site,
        inst,
        register,
        role,
        ty,
    })
}
