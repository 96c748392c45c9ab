//! Records the operands with which each expression was last computed, call by call.

/// The words of an expression's operands. The lower halves of three operands are followed by their
/// upper halves, which only vectors use.
pub(super) type Operands = [u64; 6];

/// The last computation of an expression.
#[derive(Clone, Copy, Debug)]
struct Latest {
    /// The call that computed the expression; 0 if none did.
    call: u64,
    /// The execution of the path that computed the expression.
    path: u64,
    /// The place of the operator that computed the expression.
    place: u32,
    operands: Operands,
}

/// The execution from which a value is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Computed {
    /// The place of the operator.
    pub place: u32,
    /// Whether the value was computed in the current execution of the path.
    pub same: bool,
}

/// The last computation of each expression in the innermost call to its function. Also keeps
/// entries of callers that may be needed again.
///
/// Invariant: an expression's entry for an open call is either in the expression's slot or in
/// `before`. The entries in `before` are in the order of the calls.
#[derive(Debug, Default)]
pub(super) struct Table {
    latest: Vec<Latest>,
    /// Displaced entries of calls that are still open.
    before: Vec<(u32, Latest)>,
    /// The open calls, each with the length of `before` when it began.
    open: Vec<(u64, usize)>,
    /// The number of calls that have begun.
    calls: u64,
    /// The number of executions of paths.
    paths: u64,
}

impl Table {
    /// Adds an expression and returns its number.
    pub fn add(&mut self) -> u32 {
        self.latest.push(Latest {
            call: 0,
            path: 0,
            place: 0,
            operands: [0; 6],
        });
        self.latest.len() as u32 - 1
    }

    /// Begins a call.
    pub fn enter(&mut self) {
        self.calls += 1;
        self.open.push((self.calls, self.before.len()));
    }

    /// Ends the innermost call.
    pub fn leave(&mut self) {
        let Some((_, mark)) = self.open.pop() else {
            return;
        };
        while self.before.len() > mark {
            if let Some((expression, before)) = self.before.pop() {
                self.latest[expression as usize] = before;
            }
        }
    }

    /// Begins an execution of a path.
    #[inline]
    pub fn path(&mut self) {
        self.paths += 1;
    }

    /// Records the computation of an expression. Returns the place from which the value is already
    /// available, if there is one.
    #[inline]
    pub fn computed(
        &mut self,
        expression: u32,
        place: u32,
        operands: &Operands,
    ) -> Option<Computed> {
        let call = self.open.last().map_or(0, |open| open.0);
        let latest = &mut self.latest[expression as usize];
        let mut found = None;
        if latest.call != call {
            let earlier = latest.call;
            if earlier > 0 && self.open.binary_search_by_key(&earlier, |o| o.0).is_ok() {
                self.before.push((expression, *latest));
            }
            latest.call = call;
            latest.operands = *operands;
        } else if same(&latest.operands, operands) {
            found = Some(Computed {
                place: latest.place,
                same: latest.path == self.paths,
            });
        } else {
            latest.operands = *operands;
        }
        latest.path = self.paths;
        latest.place = place;
        found
    }
}

/// Compares operands inline, because a call would cost too much for so few words.
#[inline(always)]
fn same(a: &Operands, b: &Operands) -> bool {
    a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Computed, Table};

    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// The expression, place and operand.
        Computes(u32, u32, u64),
        Path,
        Enter,
        Leave,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            6 => (0..3u32, 0..4u32, 0..2u64).prop_map(|(e, p, v)| Event::Computes(e, p, v)),
            1 => Just(Event::Path),
            1 => Just(Event::Enter),
            1 => Just(Event::Leave),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn what_is_available_is_what_a_list_for_each_call_tells(
            events in proptest::collection::vec(event(), 1..150),
        ) {
            let mut table = Table::default();
            let numbers: Vec<u32> = (0..3).map(|_| table.add()).collect();
            prop_assert_eq!(numbers, [0, 1, 2]);
            table.enter();
            // For each open call, all its computations, each with the expression, place, operand,
            // and execution of the path.
            let mut calls: Vec<Vec<(u32, u32, u64, usize)>> = vec![Vec::new()];
            let mut path = 0;
            for (k, &event) in events.iter().enumerate() {
                match event {
                    Event::Path => {
                        table.path();
                        path = k + 1;
                    }
                    Event::Enter => {
                        table.enter();
                        calls.push(Vec::new());
                    }
                    Event::Leave if calls.len() > 1 => {
                        table.leave();
                        calls.pop();
                    }
                    Event::Leave => {}
                    Event::Computes(expression, place, value) => {
                        let call = calls.last_mut().unwrap();
                        let last = call.iter().rev().find(|c| c.0 == expression);
                        let last = last.filter(|c| c.2 == value);
                        let expected = last.map(|c| Computed { place: c.1, same: c.3 == path });
                        call.push((expression, place, value, path));
                        let found = table.computed(expression, place, &[value; 6]);
                        prop_assert_eq!(found, expected, "event {}", k);
                    }
                }
            }
        }
    }
}
