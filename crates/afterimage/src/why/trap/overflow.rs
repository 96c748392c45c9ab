//! The calls that filled the stack.

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyFrame, WhyPlace, grouped};
use afterimage_replay::state::Call;
use anyhow::{Context, Result};

use crate::explain::Scene;
use crate::text::harmless;
use crate::why::led::last_of;

/// Of the innermost activations, so many at most are not yet of the calls that repeat: what these called last.
const BESIDE: usize = 8;
/// So many calls of those that repeat are named.
const NAMED: usize = 4;

/// Calls that repeat on a stack.
pub struct Repeated {
    /// Which activation, from the innermost, is the first of them.
    from: usize,
    /// After so many they are the same again.
    period: usize,
    /// How often they are there.
    times: usize,
}

impl Repeated {
    /// So many innermost activations have all of them.
    pub fn end(&self) -> usize {
        self.from + self.period
    }
}

/// Where each activation stands.
///
/// # Errors
/// If the recording is damaged.
pub fn sites(scene: &Scene<'_, '_>, stack: &[Call], ended: OpId) -> Result<Vec<(FuncId, OpId)>> {
    let site = |(depth, call): (usize, &Call)| {
        if depth == 0 {
            return Ok((call.function, ended));
        }
        let instance = scene.values.at(call.time)?.context("a call at no time")?;
        let op = last_of(scene, instance, call.time).context("a block without operators")?;
        Ok((call.function, op))
    };
    stack.iter().enumerate().map(site).collect()
}

/// The calls that repeat on most of the stack, if there are such. Linear.
pub fn repeated<T: PartialEq>(sites: &[T]) -> Option<Repeated> {
    (0..sites.len().min(BESIDE)).find_map(|from| {
        let (length, period) = periodic(&sites[from..]);
        let is_most = length * 2 > sites.len();
        is_most.then_some(Repeated {
            from,
            period,
            times: length / period,
        })
    })
}

/// The longest beginning that is one part again and again, at least twice, and how long that part is (Knuth, Morris and Pratt 1977). Linear.
fn periodic<T: PartialEq>(all: &[T]) -> (usize, usize) {
    let mut borders = vec![0; all.len()];
    let mut found = (0, 1);
    for at in 1..all.len() {
        let mut border = borders[at - 1];
        while border > 0 && all[at] != all[border] {
            border = borders[border - 1];
        }
        border += usize::from(all[at] == all[border]);
        borders[at] = border;
        let (length, period) = (at + 1, at + 1 - border);
        if period * 2 <= length {
            found = (length, period);
        }
    }
    found
}

/// What is on the stack, in words, to be put behind where the run ended; `it` is what the stack is called there.
pub fn told(open: usize, it: &str, frames: &[WhyFrame], repeated: Option<&Repeated>) -> String {
    let open = match open {
        1 => "1 activation".to_owned(),
        open => format!("{} activations", grouped(open as u64)),
    };
    let Some(repeated) = repeated else {
        return format!(", with {open} on {it}");
    };
    // Who calls stands further out than who is called, and the innermost calls the outermost again.
    let own = &frames[repeated.from..repeated.end()];
    let calls = (0..own.len()).rev().map(|at| {
        let called = match (own.len(), at) {
            (1, _) => "itself".to_owned(),
            (all, 0) => harmless(&own[all - 1].place.function.name),
            _ => harmless(&own[at - 1].place.function.name),
        };
        format!("{} called {called}", caller(&own[at].place))
    });
    let more = match own.len().checked_sub(NAMED) {
        None | Some(0) => String::new(),
        Some(1) => ", and 1 call more".to_owned(),
        Some(more) => format!(", and {} calls more", grouped(more as u64)),
    };
    format!(
        ", with {open} on {it}: {}{more}, {} times",
        Vec::from_iter(calls.take(NAMED)).join(", "),
        grouped(repeated.times as u64)
    )
}

/// `f at file.c:42`.
fn caller(place: &WhyPlace) -> String {
    let at = place.line().unwrap_or_else(|| place.site().to_owned());
    format!("{} at {at}", harmless(&place.function.name))
}

#[cfg(test)]
mod tests {
    use super::repeated;

    #[test]
    fn what_repeats_is_found() {
        let found = |text: &str| {
            let sites = Vec::from_iter(text.chars());
            repeated(&sites).map(|found| (found.from, found.period, found.times))
        };
        assert_eq!(found("aaaaaz"), Some((0, 1, 5)));
        assert_eq!(found("xababababz"), Some((1, 2, 4)));
        assert_eq!(found("abcabcabz"), Some((0, 3, 2)));
        assert_eq!(found("abcdefgh"), None);
        assert_eq!(found("aabcdefgh"), None);
        assert_eq!(found(""), None);
    }
}
