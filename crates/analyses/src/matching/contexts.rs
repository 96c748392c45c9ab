//! Views code as if it were inlined. Statements are separated by the calls through which they are
//! executed.
//!
//! An optimiser inlines a small function wherever it is called, and each copy does a part of the
//! function's work. So the function's statements are also separated by the calls around them, up to
//! a function that *stands alone*, that is, a function that is not inlined. (Ammons, Ball and Larus
//! 1997 call these calling contexts.)

use std::collections::HashSet;

use afterimage_ids::{FuncId, OpId};
use rustc_hash::FxHashMap;

/// The maximum number of calls in a context.
const DEEPEST: u32 = 24;
/// All contexts together may have [`TIMES`] times as many operators as the program, but at most
/// this many.
const MOST: usize = 1 << 21;
const TIMES: usize = 8;
/// All contexts together may have this many operators, however small the program is.
const FEW: usize = 1 << 16;

/// A function, and the calls through which it is executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub function: FuncId,
    /// The caller's context and its call; `None` for a function that stands alone.
    pub caller: Option<(u32, OpId)>,
    /// The function that stands alone.
    pub root: FuncId,
    /// The number of calls between the root and this function.
    pub depth: u32,
}

/// All contexts of a run, and the stack of open activations.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    /// The functions that stand alone; `None` if all do.
    standing: Option<HashSet<FuncId>>,
    all: Vec<Context>,
    roots: FxHashMap<FuncId, u32>,
    inlined: FxHashMap<(u32, OpId, FuncId), u32>,
    /// The contexts of the open activations, innermost last.
    open: Vec<u32>,
    operators: usize,
    most: usize,
}

impl Contexts {
    /// Starts without contexts. `standing` contains the functions that stand alone; `None` if all
    /// do. `operators` is the number of operators in the program.
    pub fn new(standing: Option<HashSet<FuncId>>, operators: usize) -> Self {
        Self {
            standing,
            most: operators.saturating_mul(TIMES).clamp(FEW, MOST),
            ..Self::default()
        }
    }

    /// Whether all functions stand alone. If they do, open activations are not tracked.
    pub fn is_flat(&self) -> bool {
        self.standing.is_none()
    }

    pub fn of(&self, context: u32) -> Context {
        self.all[context as usize]
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the context of the innermost activation.
    #[inline(always)]
    pub fn current(&self) -> Option<u32> {
        self.open.last().copied()
    }

    pub fn root(&mut self, function: FuncId) -> u32 {
        *self.roots.entry(function).or_insert_with(|| {
            self.all.push(Context {
                function,
                caller: None,
                root: function,
                depth: 0,
            });
            self.all.len() as u32 - 1
        })
    }

    /// Returns the context of a function that stands alone, if it has been entered.
    pub fn known_root(&self, function: FuncId) -> Option<u32> {
        self.roots.get(&function).copied()
    }

    /// Returns the context of a callee in a caller's context, if it does not stand alone.
    pub fn known_inlined(&self, context: u32, call: OpId, callee: FuncId) -> Option<u32> {
        self.inlined.get(&(context, call, callee)).copied()
    }

    /// Begins an activation. `call` is the call that the innermost activation is making, if any.
    /// `operators` is the number of the function's operators.
    pub fn enter(&mut self, function: FuncId, call: Option<OpId>, operators: usize) {
        let stands = self
            .standing
            .as_ref()
            .is_none_or(|standing| standing.contains(&function));
        let context = match (self.current(), call) {
            (Some(caller), Some(call)) if !stands => self.inline(caller, call, function, operators),
            _ => self.root(function),
        };
        self.open.push(context);
    }

    /// Ends the innermost activation.
    pub fn leave(&mut self) {
        self.open.pop();
    }

    fn inline(&mut self, caller: u32, call: OpId, function: FuncId, operators: usize) -> u32 {
        if let Some(&known) = self.inlined.get(&(caller, call, function)) {
            return known;
        }
        let around = self.of(caller);
        let calls_itself = self.chain(caller).any(|of| of.function == function);
        if calls_itself || around.depth >= DEEPEST || self.operators + operators > self.most {
            return self.root(function);
        }
        self.operators += operators;
        self.all.push(Context {
            function,
            caller: Some((caller, call)),
            root: around.root,
            depth: around.depth + 1,
        });
        let context = self.all.len() as u32 - 1;
        self.inlined.insert((caller, call, function), context);
        context
    }

    /// Iterates over a context and its callers' contexts, out to the function that stands alone.
    fn chain(&self, context: u32) -> impl Iterator<Item = Context> + '_ {
        let outward = |of: &Context| of.caller.map(|(caller, _)| self.of(caller));
        std::iter::successors(Some(self.of(context)), outward)
    }

    /// Returns the position that an operator of a context would have if everything were inlined.
    /// The order of positions is program order. All callees of one indirect call are adjacent.
    pub fn position(&self, context: u32, op: OpId) -> Vec<(OpId, Option<FuncId>)> {
        let calls = self.chain(context);
        let calls = calls.filter_map(|of| Some((of.caller?.1, Some(of.function))));
        let mut position = Vec::from_iter(std::iter::once((op, None)).chain(calls));
        position.reverse();
        position
    }
}

#[cfg(test)]
mod tests {
    use afterimage_ids::EntityRef;

    use super::*;

    fn functions<const N: usize>() -> [FuncId; N] {
        std::array::from_fn(FuncId::new)
    }

    fn op(at: usize) -> Option<OpId> {
        Some(OpId::new(at))
    }

    #[test]
    fn what_does_not_stand_by_itself_is_told_apart_by_its_calls() {
        let [main, small, smaller] = functions();
        let mut contexts = Contexts::new(Some(HashSet::from([main])), MOST);
        let mut seen = Vec::new();
        contexts.enter(main, None, 10);
        let around = contexts.current().unwrap();
        for call in [3, 7, 3] {
            contexts.enter(small, op(call), 5);
            contexts.enter(smaller, op(1), 5);
            seen.push(contexts.current().unwrap());
            contexts.leave();
            contexts.leave();
        }
        assert_eq!(contexts.current(), Some(around));
        assert!(seen[0] == seen[2] && seen[0] != seen[1]);
        let of = contexts.of(seen[1]);
        assert_eq!((of.function, of.root, of.depth), (smaller, main, 2));
        // The positions are the same as if the callees were inlined after their calls.
        let at = |context, at| contexts.position(context, OpId::new(at));
        assert!(at(around, 3) < at(seen[0], 0) && at(seen[0], 9) < at(around, 4));
        assert!(at(around, 6) < at(seen[1], 0) && at(seen[1], 0) < at(seen[1], 1));
    }

    #[test]
    fn what_one_call_calls_by_pointer_comes_one_after_the_other() {
        let [main, small, other] = functions();
        let mut contexts = Contexts::new(Some(HashSet::from([main])), MOST);
        contexts.enter(main, None, 10);
        let of = [small, other].map(|function| {
            contexts.enter(function, op(3), 5);
            let context = contexts.current().unwrap();
            contexts.leave();
            context
        });
        let at = |context, at| contexts.position(context, OpId::new(at));
        assert!(at(of[0], 4) < at(of[1], 0));
    }

    #[test]
    fn who_stands_alone_or_calls_itself_has_one_context() {
        let [main, stands, calls_itself] = functions();
        let mut contexts = Contexts::new(Some(HashSet::from([main, stands])), MOST);
        contexts.enter(main, None, 10);
        contexts.enter(stands, op(1), 10);
        assert_eq!(contexts.current(), contexts.known_root(stands));
        contexts.leave();
        for depth in 0..4 {
            contexts.enter(calls_itself, op(2), 10);
            let of = contexts.of(contexts.current().unwrap());
            let root = [main, calls_itself][usize::from(depth > 0)];
            // The function cannot be inlined into itself, so it stands alone in its recursive call.
            assert_eq!((of.function, of.root), (calls_itself, root), "{depth}");
        }
        let open = contexts.len();
        contexts.enter(calls_itself, op(2), 10);
        assert_eq!(contexts.len(), open);
    }

    #[test]
    fn there_are_no_more_contexts_than_there_is_room_for() {
        let [main, large] = functions();
        let mut contexts = Contexts::new(Some(HashSet::from([main])), MOST);
        contexts.enter(main, None, 1);
        for call in 0..10 {
            contexts.enter(large, op(call), MOST / 4);
            contexts.leave();
        }
        // Four calls were inlined, and the next callee stands alone.
        assert_eq!(contexts.len(), 1 + 4 + 1);
    }
}
