//! Maps calls to their numbers in the whole run, if a filter kept only some calls.

use std::collections::BTreeMap;

use afterimage_ids::{FuncId, grouped, times};
use afterimage_wpp::{Directory, Partial};
use thiserror::Error;

/// The numbers of calls in the whole run, regardless of any filter. By default, no call was left
/// out.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    partial: BTreeMap<FuncId, Partial>,
    /// Whether code of unknown functions was left out.
    unknown: bool,
}

/// The reason why a call of the whole run cannot be found among the kept calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NumberError {
    /// The call was left out.
    #[error(
        "call {} was left out when the path was built, {}",
        grouped(*number),
        kept(*nearest)
    )]
    LeftOut {
        /// The number of the call, from 1.
        number: u64,
        /// The nearest call that was kept, or `None` if no call was kept.
        nearest: Option<u64>,
    },
    /// The function was never called.
    #[error("it was never called")]
    Never,
    /// The function was called fewer times.
    #[error(
        "it was called {}, so there is no call {}; the last is call {}",
        times(*of),
        grouped(*number),
        grouped(*of)
    )]
    Fewer {
        /// The requested number of the call.
        number: u64,
        /// The number of calls to the function.
        of: u64,
    },
    /// The file does not list the kept calls.
    #[error(
        "the file does not record which of the function's calls the path kept; name a time, or build the path again with `afterimage build --lens paths --again`"
    )]
    Unknown,
}

fn kept(nearest: Option<u64>) -> String {
    match nearest {
        Some(nearest) => format!("and the nearest kept call is {}", grouped(nearest)),
        None => "and no call was kept".to_owned(),
    }
}

impl Numbering {
    /// Returns the numbering of the calls in a stored path.
    pub fn of(directory: &Directory) -> Self {
        let partial = directory.partial.iter().flatten().cloned();
        Self {
            partial: partial.map(|partial| (partial.function, partial)).collect(),
            unknown: directory.partial.is_none(),
        }
    }

    /// Whether blocks of a function were left out, or may have been left out.
    pub fn lacks(&self, function: FuncId) -> bool {
        self.unknown || self.partial.contains_key(&function)
    }

    /// Returns the number of calls to a function, if `kept` of them were kept, or `None` if
    /// unknown.
    pub fn calls(&self, function: FuncId, kept: u64) -> Option<u64> {
        let left_out = self
            .partial
            .get(&function)
            .map_or(0, |partial| partial.calls);
        kept.checked_add(left_out).filter(|_| !self.unknown)
    }

    /// Returns the number, in the whole run, of the k-th call that was kept, or `None` if unknown.
    /// Both numbers count from 1. O(log n).
    pub fn of_kept(&self, function: FuncId, kept: u64) -> Option<u64> {
        if self.unknown {
            return None;
        }
        let Some(partial) = self.partial.get(&function) else {
            return Some(kept);
        };
        let numbers = partial.numbers.as_ref()?;
        let at = numbers.partition_point(|pair| pair.0 <= kept);
        let &(first, number) = numbers.get(at.checked_sub(1)?)?;
        number.checked_add(kept - first)
    }

    /// Returns the position of call `number` of the whole run among the `count` kept calls to a
    /// function. Both numbers count from 1. O(log n).
    ///
    /// # Errors
    /// Returns an error if the call was left out, or there was no such call.
    pub fn kept(&self, function: FuncId, number: u64, count: u64) -> Result<u64, NumberError> {
        let of = self.calls(function, count).ok_or(NumberError::Unknown)?;
        match number {
            _ if of == 0 => return Err(NumberError::Never),
            0 => return Err(NumberError::Fewer { number, of }),
            _ if number > of => return Err(NumberError::Fewer { number, of }),
            _ => {}
        }
        let Some(partial) = self.partial.get(&function) else {
            return Ok(number);
        };
        let numbers = partial.numbers.as_ref().ok_or(NumberError::Unknown)?;
        let after = numbers.partition_point(|pair| pair.1 <= number);
        let next = numbers.get(after);
        let before = after.checked_sub(1).and_then(|at| {
            let (first, from) = numbers[at];
            let last = next.map_or(count, |next| next.0 - 1);
            Some((first, from, last.checked_sub(first)?))
        });
        let nearest = match (before, next) {
            (Some((first, from, more)), _) if number - from <= more => {
                return Ok(first + (number - from));
            }
            (Some((_, from, more)), Some(next)) if next.1 - number < number - (from + more) => {
                Some(next.1)
            }
            (Some((_, from, more)), _) => Some(from + more),
            (None, next) => next.map(|next| next.1),
        };
        Err(NumberError::LeftOut { number, nearest })
    }

    /// Returns the position of the last call to a function in the whole run, among the kept calls.
    ///
    /// # Errors
    /// Returns an error if that call was left out, or there was no call.
    pub fn last(&self, function: FuncId, count: u64) -> Result<u64, NumberError> {
        let of = self.calls(function, count).ok_or(NumberError::Unknown)?;
        self.kept(function, of, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any choice of kept calls, the numbers match the numbers in a list of all calls.
    #[test]
    fn numbers_are_those_of_the_whole_run() {
        let function = FuncId::from_u32(7);
        for bits in 0..1u32 << 9 {
            let all = 9;
            let kept: Vec<u64> = (1..=all)
                .filter(|call| bits >> (call - 1) & 1 == 1)
                .collect();
            let mut numbers: Vec<(u64, u64)> = Vec::new();
            for (at, &call) in kept.iter().enumerate() {
                if at == 0 || kept[at - 1] + 1 != call {
                    numbers.push((at as u64 + 1, call));
                }
            }
            let count = kept.len() as u64;
            let numbering = Numbering::of(&Directory {
                partial: Some(vec![Partial {
                    function,
                    blocks: 1,
                    calls: all - count,
                    numbers: Some(numbers),
                }]),
                ..Directory::default()
            });
            assert_eq!(numbering.calls(function, count), Some(all));
            for number in 1..=all {
                let at = kept.iter().position(|&call| call == number);
                let distance = |call: &&u64| (call.abs_diff(number), **call);
                let nearest = kept.iter().min_by_key(distance).copied();
                let expected = at.map(|at| at as u64 + 1);
                let expected = expected.ok_or(NumberError::LeftOut { number, nearest });
                assert_eq!(
                    numbering.kept(function, number, count),
                    expected,
                    "{kept:?}"
                );
                if let Some(at) = at {
                    assert_eq!(numbering.of_kept(function, at as u64 + 1), Some(number));
                }
            }
            assert_eq!(
                numbering.last(function, count),
                numbering.kept(function, all, count)
            );
            let beyond = NumberError::Fewer {
                number: 10,
                of: all,
            };
            assert_eq!(numbering.kept(function, 10, count), Err(beyond));
            assert_eq!(numbering.kept(FuncId::from_u32(1), 3, 4), Ok(3));
        }
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let numbering = Numbering::of(&Directory {
            left_out: "f".to_owned(),
            partial: None,
            ..Directory::default()
        });
        let function = FuncId::from_u32(0);
        assert_eq!(numbering.kept(function, 1, 1), Err(NumberError::Unknown));
        assert_eq!(numbering.of_kept(function, 1), None);
        assert!(numbering.lacks(function));
    }
}
