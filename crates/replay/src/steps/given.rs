//! How often statements gave which values, by following the run: of many executions that takes less than asking for one after the other.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, OpId};
use afterimage_machine::{Caller, Code, GlobalBits, NodeCode, NodeEnd, Observer};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::ValType;

use super::follow::{Follower, Run};
use super::plan::{Item, Kind, Plan};
use super::stream::Plans;
use super::{StepsError, Value};
use crate::values::TypedValue;

/// A statement, and which of its executions are wanted: from one to another, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBy {
    /// The function.
    pub function: FuncId,
    /// The operator.
    pub op: OpId,
    /// The first execution and the last one.
    pub executions: (u64, u64),
}

/// What a statement takes its values from, in a node.
struct Pick {
    /// Which of the statements that were asked about.
    site: usize,
    what: What,
}

enum What {
    Inst {
        /// The position of the instruction.
        inst: usize,
        register: u32,
        role: &'static str,
        ty: ValType,
    },
    /// The node's end returns these.
    Return(Vec<(u32, ValType)>),
    /// The node's end is a call, which gives such values when it returns.
    Call(Rc<[ValType]>),
}

/// The different values of a statement, in the order of their bits, with how often each occurred.
pub type GivenCounts = Vec<(TypedValue, u64)>;

/// Values by their bits, with how often they occurred.
type Counts = HashMap<GlobalBits, (TypedValue, u64)>;

struct Counted {
    /// Those of the node at hand.
    picks: Rc<[Pick]>,
    sites: Vec<Site>,
    /// Of each open activation the call that it waits for, if that is wanted: which site, and what it gives.
    open: Vec<Option<(usize, Rc<[ValType]>)>>,
    /// What was returned last.
    returned: Vec<GlobalBits>,
}

struct Site {
    wanted: (u64, u64),
    executed: u64,
    counts: Counts,
}

impl Site {
    /// Whether the execution that happens now is wanted.
    fn is_wanted(&mut self) -> bool {
        self.executed += 1;
        (self.wanted.0..=self.wanted.1).contains(&self.executed)
    }

    fn add(&mut self, role: &'static str, ty: ValType, bits: GlobalBits) {
        let Value { ty, bits } = Value::new(ty, bits);
        let counted = self.counts.entry(bits);
        counted.or_insert((TypedValue { role, ty, bits }, 0)).1 += 1;
    }
}

impl Counted {
    fn count(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        let of = |half: &[u64], register: u32| half.get(register as usize).copied().unwrap_or(0);
        for pick in self.picks.iter() {
            let What::Inst {
                inst,
                register,
                role,
                ty,
            } = pick.what
            else {
                continue;
            };
            let site = &mut self.sites[pick.site];
            if inst >= executed || !site.is_wanted() {
                continue;
            }
            let mut bits = (of(low, register), of(high, register));
            let inst = &code.insts[inst];
            if is_store(inst.code) {
                bits = inst.stored(bits);
            }
            site.add(role, ty, bits);
        }
    }

    /// The end of the node: what it returns, or whose call it is.
    fn end(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        let of = |half: &[u64], register: u32| half.get(register as usize).copied().unwrap_or(0);
        let mut call = None;
        for pick in self.picks.iter() {
            let site = &mut self.sites[pick.site];
            match &pick.what {
                What::Inst { .. } => {}
                What::Return(values) => {
                    if site.is_wanted() {
                        for &(register, ty) in values {
                            site.add("returned", ty, (of(low, register), of(high, register)));
                        }
                    }
                }
                What::Call(types) => {
                    call = site.is_wanted().then(|| (pick.site, Rc::clone(types)));
                }
            }
        }
        if let (NodeEnd::Call { .. }, Some(waiting)) = (&code.end, self.open.last_mut()) {
            *waiting = call;
        }
    }

    /// The call for which the innermost activation waited gave what was returned last.
    fn given(&mut self) {
        let waiting = self.open.last_mut().and_then(Option::take);
        if let Some((site, types)) = waiting {
            for (&bits, &ty) in self.returned.iter().zip(types.iter()) {
                self.sites[site].add("", ty, bits);
            }
        }
    }
}

impl Observer for Counted {
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.count(code, code.insts.len(), low, high);
        self.end(code, low, high);
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.count(code, executed, low, high);
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        self.returned.clear();
        self.returned.extend_from_slice(values);
    }

    fn enter(&mut self, _: FuncId, _: Caller) {
        self.open.push(None);
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.open.pop();
        if results.is_some() {
            self.given();
        }
    }

    fn host_returned(&mut self, _: u32, _: u32) {
        self.given();
    }
}

/// Follows calls only: nodes without anything that is wanted are executed faster.
struct Calls<'c>(&'c mut Counted);

impl Observer for Calls<'_> {
    const REGISTERS: bool = false;

    fn returned(&mut self, values: &[GlobalBits]) {
        self.0.returned(values);
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        self.0.enter(function, by);
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.0.leave(results);
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        self.0.host_returned(first, count);
    }
}

fn is_store(code: Code) -> bool {
    matches!(code, Code::Store(_) | Code::StoreVector(_))
}

/// What [`Types::given`](crate::values::Types::given) tells of these executions, counted: for each statement the different values, with how often they occurred, in the order
/// of their bits.
///
/// Takes following the run once, whatever is asked, and memory for the different values.
///
/// # Errors
/// If the run cannot be followed.
pub fn given_counts<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    asked: &[GivenBy],
) -> Result<Vec<GivenCounts>, StepsError<S::Error>>
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
        open: Vec::new(),
        returned: Vec::new(),
    };
    let mut nodes: Vec<Option<Rc<[Pick]>>> = vec![None; run.path.nodes().len()];
    while let Some(visit) = follower.advance()? {
        let at = visit.node.index();
        let code = &follower.machine.codes()[visit.node];
        let is_call = matches!(code.end, NodeEnd::Call { .. });
        if nodes[at].is_none() {
            let plan = plans.of(visit.node, &follower)?;
            nodes[at] = Some(picks(asked, code, &plan).into());
        }
        let picks = nodes[at].as_ref().filter(|picks| !picks.is_empty());
        match picks {
            None => {
                if is_call && let Some(waiting) = counted.open.last_mut() {
                    *waiting = None;
                }
                follower.execute(visit, &mut Calls(&mut counted))?;
            }
            Some(picks) => {
                counted.picks = Rc::clone(picks);
                follower.execute(visit, &mut counted)?;
            }
        }
    }
    let counts = counted.sites.into_iter().map(|site| {
        let mut counts = Vec::from_iter(site.counts.into_values());
        counts.sort_unstable_by_key(|(value, _)| value.bits);
        counts
    });
    Ok(counts.collect())
}

/// Those of a node.
fn picks(asked: &[GivenBy], code: &NodeCode, plan: &Plan) -> Vec<Pick> {
    let mut picks = Vec::new();
    for (site, asked) in asked.iter().enumerate() {
        if asked.function != code.function {
            continue;
        }
        for item in plan.items.iter().filter(|item| item.op == asked.op) {
            let what = match (item.kind, &code.end) {
                (Kind::Inst(inst), _) => of_inst(inst, item, code),
                (Kind::Call, NodeEnd::Call { .. }) => Some(What::Call(item.results().into())),
                (Kind::Jump, NodeEnd::Return(registers)) if is_last(plan, item) => {
                    let values = registers
                        .iter()
                        .copied()
                        .zip(item.operands().iter().copied());
                    Some(What::Return(values.collect()))
                }
                _ => None,
            };
            picks.extend(what.map(|what| Pick { site, what }));
        }
    }
    picks
}

fn is_last(plan: &Plan, item: &Item) -> bool {
    plan.items.last().is_some_and(|last| last.op == item.op)
}

fn of_inst(inst: usize, item: &Item, code: &NodeCode) -> Option<What> {
    let known = &code.insts[inst];
    let operands = item.operands();
    let (register, role, ty) = match (item.result(), known.code) {
        (Some(ty), _) => (code.first_result() + inst as u32, "", ty),
        (None, code) if is_store(code) => (known.b, "stored", *operands.get(1)?),
        (None, Code::GlobalSet) => (known.a, "set", *operands.first()?),
        (None, Code::Branch(_)) => (known.a, "decided by", *operands.last()?),
        (None, _) => return None,
    };
    Some(What::Inst {
        inst,
        register,
        role,
        ty,
    })
}
