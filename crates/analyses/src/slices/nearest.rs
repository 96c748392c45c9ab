//! Finds the lines nearest to an execution among the lines on which it depends.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::Hash;

use afterimage_ids::{FuncId, OpId};
use afterimage_replay::values::{HostReads, HostReadsError};
use afterimage_slice::{Criterion, Follows};

use super::near::{Dependence, Point, Steps, Stop};

/// The line of an operator, if that line may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility<L> {
    /// The operator belongs to a line that may be shown.
    Line(L),
    /// The operator belongs to code that is not shown. The search passes through it.
    Elsewhere,
    /// The operator's value says nothing about the program's data, so the search ends here.
    Origin,
}

/// The kind of a chain of dependences from one execution to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Through {
    /// Each execution uses the value of the next execution.
    Values,
    /// Some execution uses a value as an address to read or write.
    Addresses,
    /// Some execution occurred only because of a branch or call.
    Control,
}

/// A line on which an execution depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearby<L> {
    /// The line that was reached.
    pub line: L,
    /// The nearest execution of the line, with the time of its block.
    pub spot: (FuncId, OpId, u64),
    /// The sum of the lengths of all dependences on the shortest chain.
    pub distance: u32,
    /// The kind of the shortest chain.
    pub through: Through,
}

/// The lines nearest to an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest<L> {
    /// The lines, nearest first.
    pub lines: Vec<Nearby<L>>,
    /// Whether executions were left out, because enough lines were found or the maximum number of
    /// executions had been examined.
    pub cut: bool,
}

/// Finds the lines of the executions on which the given executions depend, nearest first.
///
/// A data dependence has length 1 within a line and 3 between lines. All code that is not shown
/// counts as a single line. An address has length 10, a branch 30, and the address of a write 60.
/// So values come before addresses, and addresses before branches, as in thin slices (Sridharan,
/// Fink and Bodík 2007). The distance of a line is the shortest over all its executions (Dijkstra
/// 1959). The search ends after `enough` lines. At most `most` executions are examined, each in
/// about 10 µs. So time does not depend on the size of the slice.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn nearest<'v, 'a, L: Copy + Eq + Hash>(
    host: &HostReads<'v, 'a>,
    module: &'a [u8],
    criteria: &[Criterion],
    place: &mut dyn FnMut(FuncId, OpId) -> Visibility<L>,
    (enough, most): (usize, usize),
) -> Result<Nearest<L>, HostReadsError> {
    let mut steps = Steps::new(host, module, Follows::ALL);
    let mut heap = BinaryHeap::new();
    // Among points at the same distance, the latest comes first.
    let push = |heap: &mut BinaryHeap<_>, far: u32, through: Through, point: Point| {
        heap.push((Reverse(far), point.start(), point, Reverse(through)));
    };
    for criterion in criteria {
        match steps.of_criterion(criterion, true) {
            Ok(points) => points
                .into_iter()
                .for_each(|(point, how)| push(&mut heap, 0, kind(how), point)),
            Err(Stop::Left) => {}
            Err(Stop::Error(error)) => return Err(error),
        }
    }
    let (mut lines, mut known, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut places = HashMap::new();
    let mut cut = false;
    while let Some((Reverse(distance), _, point, Reverse(through))) = heap.pop() {
        if !seen.insert(point) {
            continue;
        }
        if seen.len() > most || lines.len() >= enough {
            cut = true;
            break;
        }
        let mut placed = |steps: &mut Steps<'_, '_>, point| match steps.operator(point) {
            Ok(Some((function, op))) => Ok(*places
                .entry((function, op))
                .or_insert_with(|| place(function, op))),
            Ok(None) | Err(Stop::Left) => Ok(Visibility::Elsewhere),
            Err(Stop::Error(error)) => Err(error),
        };
        let at = placed(&mut steps, point)?;
        match at {
            Visibility::Line(line) if known.insert(line) => match steps.spot(point) {
                Ok(Some(spot)) => lines.push(Nearby {
                    line,
                    spot,
                    distance,
                    through,
                }),
                Ok(None) | Err(Stop::Left) => {}
                Err(Stop::Error(error)) => return Err(error),
            },
            Visibility::Origin => continue,
            Visibility::Line(_) | Visibility::Elsewhere => {}
        }
        let found = match steps.of(point) {
            Ok(found) => found,
            // A chain ends where slices treat the point differently from the stored values.
            Err(Stop::Left) => continue,
            Err(Stop::Error(error)) => return Err(error),
        };
        for (next, how) in found {
            if !seen.contains(&next) {
                let same = placed(&mut steps, next)? == at;
                let through = through.max(kind(how));
                push(&mut heap, distance + weight(how, same), through, next);
            }
        }
    }
    Ok(Nearest { lines, cut })
}

fn kind(how: Dependence) -> Through {
    match how {
        Dependence::Data => Through::Values,
        Dependence::Address | Dependence::Destination => Through::Addresses,
        Dependence::Control => Through::Control,
    }
}

/// Returns the length of a dependence. `same` means that both ends are on the same line.
fn weight(how: Dependence, same: bool) -> u32 {
    match (how, same) {
        (Dependence::Data, true) => 1,
        (Dependence::Data, false) => 3,
        (Dependence::Address, _) => 10,
        (Dependence::Control, _) => 30,
        (Dependence::Destination, _) => 60,
    }
}
