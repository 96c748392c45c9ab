//! Decides what a signal to stop means, given the signals before it.
//!
//! Invariant: while the current work can stop in an orderly way, only a second Ctrl-C ends the
//! process, and only if it is a separate request. A shell, `timeout` and a closing terminal may
//! send several signals for one request.

use std::time::{Duration, Instant};

/// The time within which a second Ctrl-C counts as a copy of the first.
const TWICE: Duration = Duration::from_millis(300);

/// The time after a completed request during which other signals belong to that request.
const TOGETHER: Duration = Duration::from_secs(1);

/// The last request to stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct StopRequests(Option<Request>);

/// Signals that make the same request.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// The first signal of the request.
    first: StopSignal,
    /// The time of the first signal.
    at: Instant,
    /// The time of the first Ctrl-C among the signals.
    ctrl_c: Option<Instant>,
    /// Whether the work has stopped as requested.
    met: bool,
}

/// A signal that asks the process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    CtrlC,
    /// SIGTERM or SIGHUP.
    Terminate,
}

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Stop the work in an orderly way.
    Stop,
    /// The same request as before.
    Same,
    /// End the process at once.
    End,
}

impl StopRequests {
    /// Creates a state without any request.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns the first signal of the last request.
    pub fn last(&self) -> Option<StopSignal> {
        self.0.map(|request| request.first)
    }

    /// Marks the last request as completed, because new work begins.
    pub fn complete(&mut self) {
        if let Some(request) = &mut self.0 {
            request.met = true;
        }
    }

    /// Returns the meaning of a signal that arrives at `now`. `can_stop` says whether the current
    /// work can stop in an orderly way.
    pub fn meaning(&mut self, signal: StopSignal, can_stop: bool, now: Instant) -> Meaning {
        let is_ctrl_c = signal == StopSignal::CtrlC;
        if let Some(request) = &mut self.0 {
            let is_second = is_ctrl_c && now - *request.ctrl_c.get_or_insert(now) > TWICE;
            if !request.met {
                return if is_second {
                    Meaning::End
                } else {
                    Meaning::Same
                };
            }
            if !is_second && now - request.at <= TOGETHER {
                return Meaning::Same;
            }
        }
        self.0 = Some(Request {
            first: signal,
            at: now,
            ctrl_c: is_ctrl_c.then_some(now),
            met: false,
        });
        if can_stop {
            Meaning::Stop
        } else {
            Meaning::End
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Meaning::{End, Same, Stop};
    use super::StopSignal::{CtrlC, Terminate};
    use super::*;

    /// Returns the meanings of signals that arrive at these times in milliseconds, while work can
    /// stop.
    fn meanings(signals: &[(StopSignal, u64)]) -> Vec<Meaning> {
        let start = Instant::now();
        let at = |after| start + Duration::from_millis(after);
        let mut requests = StopRequests::new();
        let all = signals.iter();
        all.map(|&(signal, after)| requests.meaning(signal, true, at(after)))
            .collect()
    }

    #[test]
    fn only_a_second_ctrl_c_that_comes_later_means_now() {
        for first in [Terminate, CtrlC] {
            for second in [Terminate, CtrlC] {
                for third in [Terminate, CtrlC] {
                    let signals = [(first, 0), (second, 100), (third, 300)];
                    assert_eq!(meanings(&signals), [Stop, Same, Same], "{signals:?}");
                    // Among several Ctrl-C signals, the first one counts.
                    let signals = [(first, 0), (second, 1), (third, 302)];
                    let is_now = third == CtrlC && (first == CtrlC || second == CtrlC);
                    let expected = if is_now { End } else { Same };
                    assert_eq!(meanings(&signals)[2], expected, "{signals:?}");
                }
            }
        }
        let often = [(Terminate, 0), (Terminate, 5000), (Terminate, 60_000)];
        assert_eq!(meanings(&often), [Stop, Same, Same]);
    }

    #[test]
    fn a_request_to_one_work_does_not_end_the_next() {
        for signal in [Terminate, CtrlC] {
            for can_stop in [true, false] {
                let (mut requests, start) = (StopRequests::new(), Instant::now());
                let after = |milliseconds| start + Duration::from_millis(milliseconds);
                assert_eq!(requests.meaning(signal, true, start), Stop);
                requests.complete();
                assert_eq!(requests.last(), Some(signal));
                assert_eq!(requests.meaning(Terminate, can_stop, after(200)), Same);
                assert_eq!(requests.meaning(CtrlC, can_stop, after(250)), Same);
                let later = if can_stop { Stop } else { End };
                assert_eq!(requests.meaning(signal, can_stop, after(1400)), later);
            }
        }
    }

    #[test]
    fn without_work_the_first_signal_ends_the_process() {
        for signal in [Terminate, CtrlC] {
            let found = StopRequests::new().meaning(signal, false, Instant::now());
            assert_eq!(found, End);
        }
    }
}
