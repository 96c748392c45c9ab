//! Removes unneeded φs, and assigns the final numbers.

use afterimage_ids::{EntityRef, PrimaryMap, ValueId};

use super::{Phi, Ssa, ValueDef};

/// Replaces the first value of each pair in `copies` with the second. Then removes all φs that have
/// only one operand value other than themselves (Braun et al. 2013, "Simple and efficient
/// construction of static single assignment form", algorithm 3). Finally removes values that no
/// statement uses.
pub(super) fn minimize(mut ssa: Ssa, copies: &[(ValueId, ValueId)]) -> Ssa {
    let mut same = Same::new(&ssa, copies);
    let mut work: Vec<usize> = (0..ssa.phis.len()).rev().collect();
    while let Some(i) = work.pop() {
        let phi = &ssa.phis[i];
        let this = same.find(phi.value);
        if this != phi.value {
            continue;
        }
        let mut only = None;
        let trivial = phi.operands.iter().all(|&operand| {
            let operand = same.find(operand);
            operand == this || *only.get_or_insert(operand) == operand
        });
        if let (true, Some(only)) = (trivial, only) {
            work.extend(same.merge(this, only));
        }
    }

    for operand in &mut ssa.operands {
        *operand = same.find(*operand);
    }
    for (_, values) in &mut ssa.returns {
        values
            .iter_mut()
            .for_each(|value| *value = same.find(*value));
    }
    ssa.phis.retain(|phi| same.find(phi.value) == phi.value);
    for phi in &mut ssa.phis {
        phi.operands
            .iter_mut()
            .for_each(|operand| *operand = same.find(*operand));
    }
    renumber(ssa)
}

/// Values found to be equal.
struct Same {
    /// For each value, the next value on the path to its representative.
    parent: Vec<ValueId>,
    /// For each representative, the φs that have it, or an equal value, as an operand.
    users: Vec<Vec<u32>>,
}

impl Same {
    fn new(ssa: &Ssa, copies: &[(ValueId, ValueId)]) -> Self {
        let users = vec![Vec::new(); ssa.values.len()];
        let mut same = Self {
            parent: ssa.values.keys().collect(),
            users,
        };
        for &(copy, value) in copies {
            same.parent[copy.index()] = value;
        }
        for (i, phi) in ssa.phis.iter().enumerate() {
            for &operand in &phi.operands {
                let operand = same.find(operand);
                same.users[operand.index()].push(i as u32);
            }
        }
        same
    }

    /// Finds the representative of a value, and halves the length of the path to it.
    fn find(&mut self, mut value: ValueId) -> ValueId {
        while self.parent[value.index()] != value {
            let grandparent = self.parent[self.parent[value.index()].index()];
            self.parent[value.index()] = grandparent;
            value = grandparent;
        }
        value
    }

    /// Replaces one value with another, and returns the φs that this affects.
    fn merge(&mut self, value: ValueId, by: ValueId) -> Vec<usize> {
        self.parent[value.index()] = by;
        let users = std::mem::take(&mut self.users[value.index()]);
        let concerned = users.iter().map(|&user| user as usize).collect();
        let mut all = std::mem::take(&mut self.users[by.index()]);
        let mut fewer = users;
        if all.len() < fewer.len() {
            std::mem::swap(&mut all, &mut fewer);
        }
        all.append(&mut fewer);
        self.users[by.index()] = all;
        concerned
    }
}

/// Removes φs, initial values and caught values that nothing uses. Numbers the remaining values.
/// Parameters come first, then constants and results in the order of their operators, and φs last.
fn renumber(mut ssa: Ssa) -> Ssa {
    let mut phi_of = vec![None; ssa.values.len()];
    for (i, phi) in ssa.phis.iter().enumerate() {
        phi_of[phi.value.index()] = Some(i);
    }
    let mut used = vec![false; ssa.values.len()];
    let returned = ssa.returns.iter().flat_map(|(_, values)| values.iter());
    let mut work: Vec<ValueId> = ssa.operands.iter().chain(returned).copied().collect();
    while let Some(value) = work.pop() {
        if !std::mem::replace(&mut used[value.index()], true)
            && let Some(phi) = phi_of[value.index()]
        {
            work.extend(&ssa.phis[phi].operands);
        }
    }
    ssa.phis.retain(|phi| used[phi.value.index()]);
    ssa.phis.sort_by_key(|phi| (phi.block, phi.value));

    let mut values = PrimaryMap::with_capacity(ssa.values.len());
    let mut number = vec![ValueId::new(0); ssa.values.len()];
    let is_phi = |def: &ValueDef| matches!(def, ValueDef::Phi(_));
    for (id, value) in &ssa.values {
        let kept = match value.def {
            ValueDef::Param(_) | ValueDef::Constant(_) | ValueDef::Result { .. } => true,
            ValueDef::Initial(_) | ValueDef::Caught { .. } => used[id.index()],
            ValueDef::Phi(_) => false,
        };
        if kept {
            number[id.index()] = values.push(*value);
        }
    }
    for phi in &ssa.phis {
        debug_assert!(is_phi(&ssa.values[phi.value].def));
        number[phi.value.index()] = values.push(ssa.values[phi.value]);
    }

    let renumber = |value: &mut ValueId| *value = number[value.index()];
    ssa.operands.iter_mut().for_each(renumber);
    ssa.returns
        .iter_mut()
        .for_each(|(_, values)| values.iter_mut().for_each(renumber));
    for Phi {
        value, operands, ..
    } in &mut ssa.phis
    {
        renumber(value);
        operands.iter_mut().for_each(renumber);
    }
    for statement in ssa.statements.values_mut() {
        let count = statement.results.end.index() - statement.results.start.index();
        // All results are kept, and were created in sequence.
        let start = match count {
            0 => 0,
            _ => number[statement.results.start.index()].index(),
        };
        statement.results = ValueId::new(start)..ValueId::new(start + count);
    }
    ssa.values = values;
    ssa
}
