//! Summarises the values that loads read.

use std::rc::Rc;

use afterimage_machine::{Code, GlobalBits, Observer};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::ValType;

use super::accesses::{NodeSites, SiteTable};
use super::follow::{Follower, Run};
use super::stream::Plans;
use super::tally::Tally;
use super::{AccessSite, Distinct, Frequent, StepsError, Value};

/// A summary of a load's values. Integers are compared as signed numbers, floats by the total order
/// of IEEE 754, and vectors by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadValues {
    /// The number of executions, at least one.
    pub count: u64,
    /// The number of distinct values.
    pub values: Distinct,
    /// The smallest value.
    pub smallest: Value,
    /// The largest value.
    pub largest: Value,
    /// The most frequent value, or `None` if there were too many distinct values.
    pub most: Option<Frequent<Value>>,
}

struct Sum {
    count: u64,
    ty: ValType,
    smallest: u128,
    largest: u128,
    ranks: Tally<u128>,
}

#[derive(Default)]
struct Sums {
    sites: Rc<NodeSites>,
    sums: Vec<Sum>,
}

impl Observer for Sums {
    const REGISTERS: bool = false;

    #[inline]
    fn loaded(&mut self, inst: usize, bits: GlobalBits) {
        let Some((site, _)) = self.sites.get(inst) else {
            return;
        };
        let sum = &mut self.sums[site];
        let (low, high) = Value::new(sum.ty, bits).bits;
        let rank = rank(sum.ty, u128::from(low) | u128::from(high) << 64);
        sum.count += 1;
        sum.smallest = sum.smallest.min(rank);
        sum.largest = sum.largest.max(rank);
        sum.ranks.add(rank);
    }
}

impl Sum {
    fn new(ty: ValType) -> Self {
        Self {
            count: 0,
            ty,
            smallest: u128::MAX,
            largest: 0,
            ranks: Tally::default(),
        }
    }
}

/// Summarises the values that each load of a run read, in program order. Only executed
/// loads are included.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn load_values<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<Vec<(AccessSite, LoadValues)>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let is_load = |code| matches!(code, Code::Load(_) | Code::LoadVector(_));
    let mut table = SiteTable::of_all(is_load, run.path.nodes().len());
    let mut follower = Follower::new(run, log)?;
    let mut plans = Plans::new(run);
    let mut sums = Sums::default();
    while let Some(visit) = follower.advance()? {
        let sites = match table.known(visit.node) {
            Some(known) => known,
            None => {
                let plan = plans.of(visit.node, &follower)?;
                let code = &follower.machine.codes()[visit.node];
                let sites = table.add(visit.node, code, &plan);
                let new = &table.types[sums.sums.len()..];
                let types = new.iter().map(|ty| ty.unwrap_or(ValType::I32));
                sums.sums.extend(types.map(Sum::new));
                sites
            }
        };
        if !sites.any {
            follower.execute(visit, &mut ())?;
            continue;
        }
        sums.sites = sites;
        follower.execute(visit, &mut sums)?;
    }
    let mut loads = Vec::new();
    for (site, sum) in table.sites.into_iter().zip(sums.sums) {
        if sum.count == 0 {
            continue;
        }
        let value = |rank| {
            let (ty, bits) = (sum.ty, unrank(sum.ty, rank));
            Value {
                ty,
                bits: (bits as u64, (bits >> 64) as u64),
            }
        };
        let (values, most) = sum.ranks.finish();
        let found = LoadValues {
            count: sum.count,
            values,
            smallest: value(sum.smallest),
            largest: value(sum.largest),
            most: most.map(|most| Frequent {
                value: value(most.value),
                times: most.times,
            }),
        };
        loads.push((site, found));
    }
    loads.sort_unstable_by_key(|(site, _)| *site);
    Ok(loads)
}

/// Returns the rank of a value, which is an integer with the same order as the values of the type.
fn rank(ty: ValType, bits: u128) -> u128 {
    let Some(sign) = sign(ty) else {
        return bits;
    };
    let negative = bits & sign != 0;
    match ty {
        // A negative float with a larger magnitude is smaller.
        ValType::F32 | ValType::F64 if negative => (sign | (sign - 1)) & !bits,
        _ => bits ^ sign,
    }
}

/// Returns the value that has a rank.
fn unrank(ty: ValType, rank: u128) -> u128 {
    let Some(sign) = sign(ty) else {
        return rank;
    };
    let negative = rank & sign == 0;
    match ty {
        ValType::F32 | ValType::F64 if negative => (sign | (sign - 1)) & !rank,
        _ => rank ^ sign,
    }
}

/// Returns the sign bit of a type.
fn sign(ty: ValType) -> Option<u128> {
    match ty {
        ValType::I32 | ValType::F32 => Some(1 << 31),
        ValType::I64 | ValType::F64 => Some(1 << 63),
        ValType::V128 | ValType::Ref(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::ValType;

    use super::{rank, unrank};

    #[test]
    fn ranks_order_values_and_lead_back() {
        let bits: [u64; 9] = [
            0,
            1,
            0x7f80_0001,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x7fff_ffff_ffff_ffff,
            0x8000_0000_0000_0000,
            u64::MAX,
        ];
        for &a in &bits {
            for &b in &bits {
                let order = |ty| rank(ty, a.into()).cmp(&rank(ty, b.into()));
                assert_eq!(order(ValType::I64), (a as i64).cmp(&(b as i64)));
                let floats = f64::from_bits(a).total_cmp(&f64::from_bits(b));
                assert_eq!(order(ValType::F64), floats);
                let (a, b) = (a as u32, b as u32);
                let order = |ty| rank(ty, a.into()).cmp(&rank(ty, b.into()));
                assert_eq!(order(ValType::I32), (a as i32).cmp(&(b as i32)));
                let floats = f32::from_bits(a).total_cmp(&f32::from_bits(b));
                assert_eq!(order(ValType::F32), floats);
            }
            for ty in [ValType::I64, ValType::F64, ValType::V128] {
                assert_eq!(unrank(ty, rank(ty, a.into())), a.into());
            }
            for ty in [ValType::I32, ValType::F32] {
                let narrow = u128::from(a as u32);
                assert_eq!(unrank(ty, rank(ty, narrow)), narrow);
            }
        }
    }
}
