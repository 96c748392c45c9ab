//! Finds the calls that filled the stack.

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyFrame, WhyPlace, grouped};
use afterimage_replay::state::Call;
use anyhow::{Context, Result};

use crate::explain::Scene;
use crate::text::harmless;
use crate::why::led::last_of;

/// The maximum number of innermost activations that do not belong to the repeated calls.
const BESIDE: usize = 8;
/// The maximum number of repeated calls to name.
const NAMED: usize = 4;

/// Repeated calls on a stack.
pub struct Repeated {
    /// The position of the first repeated call, counted from the innermost activation.
    from: usize,
    /// The number of calls in one repetition.
    period: usize,
    /// The number of repetitions.
    times: usize,
}

impl Repeated {
    /// Returns the number of innermost activations that include one whole repetition.
    pub fn end(&self) -> usize {
        self.from + self.period
    }
}

/// Returns the place of each activation.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn sites(scene: &Scene<'_, '_>, stack: &[Call], ended: OpId) -> Result<Vec<(FuncId, OpId)>> {
    let site = |(depth, call): (usize, &Call)| {
        if depth == 0 {
            return Ok((call.function, ended));
        }
        let instance = scene
            .values
            .at(call.time)?
            .context("the time of a call is not in the path")?;
        let op = last_of(scene, instance, call.time).context("a block has no operators")?;
        Ok((call.function, op))
    };
    stack.iter().enumerate().map(site).collect()
}

/// Finds the calls that repeat over most of the stack, if there are such calls. Takes linear time.
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

/// Returns the length of the longest prefix that consists of one part repeated at least twice, and
/// the length of that part (Knuth, Morris and Pratt 1977). Takes linear time.
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

/// Describes the stack, for a sentence that begins with the place where the run ended. `it` is the
/// name of the stack in this sentence.
pub fn described(
    open: usize,
    it: &str,
    frames: &[WhyFrame],
    repeated: Option<&Repeated>,
) -> String {
    let open = match open {
        1 => "1 activation".to_owned(),
        open => format!("{} activations", grouped(open as u64)),
    };
    let Some(repeated) = repeated else {
        return format!(", with {open} on {it}");
    };
    // A caller is further out than its callee. The innermost call of a repetition calls the
    // outermost call of the next repetition.
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
        Some(1) => ", and 1 more call".to_owned(),
        Some(more) => format!(", and {} more calls", grouped(more as u64)),
    };
    format!(
        ", with {open} on {it}: {}{more}, {} times",
        Vec::from_iter(calls.take(NAMED)).join(", "),
        grouped(repeated.times as u64)
    )
}

/// Formats a caller as `f at file.c:42`.
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
