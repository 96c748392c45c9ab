//! Decides when each question is answered.
//!
//! In each lane, questions are answered one after another. A newer question of a view replaces an
//! older one. If the older question is still waiting, it is dropped. If it is being answered, it is
//! asked to stop. Only builds can be stopped at once. If the older question does not stop soon, it
//! is abandoned. Its answer is then dropped, and the newer question no longer waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afterimage::Cancel;
use serde::Serialize;

use crate::ask::Lane;

/// The time within which a replaced question must stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// The maximum number of abandoned questions. If there are more, newer questions wait.
const LEFT_BEHIND: usize = 3;

/// The lanes and the questions in them.
#[derive(Default)]
pub(crate) struct Lanes {
    /// For each lane, the object that stops the lane's builds.
    cancels: [Arc<Cancel>; Lane::ALL.len()],
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the newest question of each view.
    newest: HashMap<String, u64>,
    asked: u64,
    /// The questions being answered, including the abandoned ones.
    running: Vec<Running>,
}

struct Running {
    number: u64,
    lane: Lane,
    view: Option<String>,
    what: String,
    since: Instant,
    is_left: bool,
}

/// A question that is being answered.
#[derive(Debug, Serialize)]
pub(crate) struct Answering {
    /// The command.
    what: String,
    /// The name of the view that asked.
    view: Option<String>,
    /// The time for which it has been running, in milliseconds.
    milliseconds: u64,
}

/// A place in a lane, which is released when this value is dropped.
pub(crate) struct Taken<'l> {
    lanes: &'l Lanes,
    number: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        let at = state
            .running
            .iter()
            .position(|one| one.number == self.number);
        let view = at.and_then(|at| state.running.swap_remove(at).view);
        if let Some(view) = view
            && state.newest.get(&view) == Some(&self.number)
        {
            state.newest.remove(&view);
        }
        drop(state);
        self.lanes.changed.notify_all();
    }
}

impl State {
    /// Abandons a view's older questions that did not stop in time.
    fn leave(&mut self, view: &str, number: u64) {
        let left = self.running.iter().filter(|one| one.is_left).count();
        let room = LEFT_BEHIND.saturating_sub(left);
        let old = self.running.iter_mut();
        let old = old
            .filter(|one| one.number < number && one.view.as_deref() == Some(view) && !one.is_left);
        for one in old.take(room) {
            one.is_left = true;
        }
    }
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the object that stops the builds of the questions in a lane.
    pub fn cancel(&self, lane: Lane) -> &Arc<Cancel> {
        &self.cancels[lane as usize]
    }

    /// Waits for a lane. Returns `None` if the same view asks a newer question in the meantime.
    pub fn wait(&self, lane: Lane, view: Option<&str>, what: &str) -> Option<Taken<'_>> {
        let mut state = self.lock();
        state.asked += 1;
        let number = state.asked;
        let mut replaces = false;
        if let Some(view) = view {
            state.newest.insert(view.to_owned(), number);
            let older = state.running.iter();
            let mut older = older.filter(|one| one.view.as_deref() == Some(view) && !one.is_left);
            if let Some(one) = older.next() {
                replaces = true;
                self.cancel(one.lane).stop();
            }
            self.changed.notify_all();
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let newest = view.and_then(|view| state.newest.get(view));
            if newest.is_some_and(|newest| *newest != number) {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Some(view) = view
                && left.is_zero()
            {
                state.leave(view, number);
            }
            let mut others = state.running.iter();
            if !others.any(|one| one.lane == lane && !one.is_left) {
                self.cancel(lane).allow();
                state.running.push(Running {
                    number,
                    lane,
                    view: view.map(str::to_owned),
                    what: what.to_owned(),
                    since: Instant::now(),
                    is_left: false,
                });
                return Some(Taken {
                    lanes: self,
                    number,
                });
            }
            state = if replaces && !left.is_zero() {
                let woken = self.changed.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let woken = self.changed.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Returns the questions being answered, oldest first, without abandoned questions and
    /// questions that are asked ahead.
    pub fn answering(&self) -> Vec<Answering> {
        let state = self.lock();
        let running = state
            .running
            .iter()
            .filter(|one| !one.is_left && one.lane != Lane::Ahead);
        let told = running.map(|one| Answering {
            what: one.what.clone(),
            view: one.view.clone(),
            milliseconds: one.since.elapsed().as_millis() as u64,
        });
        told.collect()
    }

    /// Stops the questions being answered for one view, or for all views. Questions that wait for
    /// the lane then continue at once.
    pub fn stop(&self, view: Option<&str>) {
        let mut state = self.lock();
        let is_meant = |one: &Running| view.is_none_or(|view| one.view.as_deref() == Some(view));
        for one in state.running.iter_mut().filter(|one| is_meant(one)) {
            one.is_left = true;
            self.cancel(one.lane).stop();
        }
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn takes<'l>(lanes: &'l Lanes, view: Option<&str>) -> Option<Taken<'l>> {
        lanes.wait(Lane::Values, view, "why")
    }

    #[test]
    fn a_newer_question_of_a_view_does_not_wait_for_an_older_one_that_does_not_stop() {
        let lanes = Lanes::default();
        let old = takes(&lanes, Some("why")).unwrap();
        let new = takes(&lanes, Some("why")).unwrap();
        assert_eq!(lanes.answering().len(), 1);
        drop(old);
        assert_eq!(lanes.answering().len(), 1);
        drop(new);
        assert!(lanes.answering().is_empty());
    }

    #[test]
    fn a_question_of_another_view_waits_until_the_lane_is_free_or_stopped() {
        let lanes = Lanes::default();
        let old = takes(&lanes, Some("why")).unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| takes(&lanes, Some("state")).is_some());
            assert!(!lanes.cancel(Lane::Values).is_stopped());
            assert_eq!(lanes.answering()[0].view.as_deref(), Some("why"));
            lanes.stop(Some("why"));
            assert!(other.join().unwrap());
        });
        assert!(!lanes.cancel(Lane::Path).is_stopped());
        drop(old);
    }

    #[test]
    fn a_question_that_waits_is_given_up_for_a_newer_one_of_its_view() {
        let lanes = Lanes::default();
        let held = takes(&lanes, None).unwrap();
        thread::scope(|scope| {
            let older = scope.spawn(|| takes(&lanes, Some("why")).is_some());
            while lanes.lock().asked < 2 {
                thread::yield_now();
            }
            let newer = scope.spawn(|| takes(&lanes, Some("why")).is_some());
            assert!(!older.join().unwrap());
            drop(held);
            assert!(newer.join().unwrap());
        });
    }
}
