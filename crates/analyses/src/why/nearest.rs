//! Finds the shortest way from a value back to host input.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use afterimage_program::Import;

use super::bits::BitsQuery;
use super::chain::Room;
use super::{At, Computed, End, StepBack, Walk, WhyError};

/// The direction in which the search continues at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The search goes back through this operand.
    Operand(usize),
    /// The search goes back through the address, because nothing in the run wrote the value that
    /// was read.
    Address,
}

/// A computation, with the bits of its value that are of interest. `None` means all bits.
pub(super) type Part = (Computed, Option<u64>);

/// A node of the search.
struct Item {
    cost: u64,
    asked: BitsQuery,
    from: Option<usize>,
    choice: (Part, Choice),
}

/// The length of a table look-up, counted in computing operators.
const LOOKUP: u64 = 2;

const WASI: &str = "wasi_snapshot_preview1";

/// The WASI functions that give the guest its input.
const INPUT: [&str; 9] = [
    "args_get",
    "environ_get",
    "fd_read",
    "fd_pread",
    "fd_readdir",
    "path_readlink",
    "random_get",
    "clock_time_get",
    "sock_recv",
];

/// Finds the choices on the shortest way from some operands of an instruction to host input
/// (Dijkstra). The length of a way is its number of computing operators. Returns `None` if no such
/// way was found.
///
/// `left` is the number of links that may still be examined. The search gives up at 0, or when
/// `room` is no longer [`Room::Looking`]. Calls `room` before each link.
pub(super) fn nearest(
    walk: &Walk<'_, '_>,
    of: Part,
    operands: &[(usize, BitsQuery)],
    (left, room): (&mut u32, &dyn Fn() -> Room),
) -> Result<Option<Vec<(Part, Choice)>>, WhyError> {
    let mut items: Vec<Item> = Vec::new();
    let mut queue = BinaryHeap::new();
    let mut seen = HashSet::from([of]);
    let push = |items: &mut Vec<Item>, queue: &mut BinaryHeap<_>, item: Item| {
        queue.push(Reverse((item.cost, items.len())));
        items.push(item);
    };
    for &(operand, asked) in operands {
        let item = Item {
            cost: 1,
            asked,
            from: None,
            choice: (of, Choice::Operand(operand)),
        };
        push(&mut items, &mut queue, item);
    }
    while let Some(Reverse((cost, number))) = queue.pop() {
        let mut asked = items[number].asked;
        loop {
            if room() != Room::Looking {
                *left = 0;
            }
            let Some(less) = left.checked_sub(1) else {
                return Ok(None);
            };
            *left = less;
            let found = match asked.back(walk) {
                Err(error) if error.is_outside() => break,
                Err(error) if error.is_too_many() && room() != Room::Looking => {
                    *left = 0;
                    return Ok(None);
                }
                found => found?,
            };
            match found {
                StepBack::End(end) => {
                    if gives(walk, end)? {
                        return Ok(Some(way(&items, number)));
                    }
                    break;
                }
                StepBack::Computed(made) => {
                    let part = (made, asked.mask());
                    if seen.insert(part) {
                        let operands = walk.operands(made)?;
                        for (i, asked) in walk.open(made, &operands, asked)? {
                            let item = Item {
                                cost: cost + 1,
                                asked,
                                from: Some(number),
                                choice: (part, Choice::Operand(i)),
                            };
                            push(&mut items, &mut queue, item);
                        }
                    }
                    break;
                }
                StepBack::Moved {
                    how,
                    instance,
                    inst,
                    next,
                    ..
                } => {
                    let read = (Computed { instance, inst }, None);
                    if let At::End(End::Memory(_)) = next
                        && seen.insert(read)
                        && let Some(address) = walk.operands(read.0)?.first()
                        && !address.constant
                    {
                        let item = Item {
                            cost: cost + LOOKUP,
                            asked: At::Register(instance, address.register).into(),
                            from: Some(number),
                            choice: (read, Choice::Address),
                        };
                        push(&mut items, &mut queue, item);
                    }
                    asked = walk.before(asked, how, (instance, inst), next)?;
                }
            }
        }
    }
    Ok(None)
}

fn way(items: &[Item], last: usize) -> Vec<(Part, Choice)> {
    let mut choices = Vec::new();
    let mut next = Some(last);
    while let Some(number) = next {
        choices.push(items[number].choice);
        next = items[number].from;
    }
    choices
}

/// Whether an end is host input that the guest processes, rather than a count or an error number.
fn gives(walk: &Walk<'_, '_>, end: End) -> Result<bool, WhyError> {
    Ok(match end {
        End::Argument { .. } => true,
        End::Host { call, range } => {
            let Some(call) = walk.values.host()?.get(call)? else {
                return Ok(false);
            };
            let import = walk.program.imports.get(call.import.as_u32() as usize);
            // The last write of the call is the number of bytes read.
            let is_count = |import: &Import| {
                let last = call.writes.last();
                import.name.ends_with("read") && last.is_some_and(|it| it.address == range.address)
            };
            import.is_some_and(|import| {
                let is_input = INPUT.contains(&import.name.as_str()) && !is_count(import);
                import.module != WASI || is_input
            })
        }
        End::Returned { instance, .. } => {
            let Some(function) = walk.called(instance)? else {
                return Ok(true);
            };
            let import = walk.program.imports.get(function.as_u32() as usize);
            // The results of WASI functions are error numbers.
            import.is_some_and(|import| import.module != WASI)
        }
        _ => false,
    })
}
