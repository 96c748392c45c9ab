//! Finds which arrivals at a line correspond in two runs.

use std::collections::HashMap;
use std::error::Error;

use afterimage_ids::FuncId;
use afterimage_program::{Names, Program};
use afterimage_wpp::{Segments, WholePath};

use super::anchors::Calling;
use super::parts::{LineParts, MatchedStatements, OperatorNames};
use super::walker::Walker;
use super::{Anchors, CurrencyError, Trail, align};
use afterimage_profile::{Line, Source};
use afterimage_replay::whole_path::ArrivalTimes;

/// A version of a program, its run, and one of its lines.
pub struct Version<'v, 'a, S: Segments> {
    /// The path of the run.
    pub path: &'v WholePath<S>,
    /// The program that ran.
    pub program: &'v Program,
    /// The bytes from which the program was parsed.
    pub module: &'v [u8],
    /// The names in the program.
    pub names: &'v Names,
    /// The source of the program's code.
    pub source: &'v dyn Source,
    /// The line at which the run is examined.
    pub line: Line,
    /// The functions with code of the line.
    pub functions: &'v [FuncId],
    /// The arrivals at the line.
    pub arrivals: &'v ArrivalTimes<'a, S>,
    /// Statements that are known to correspond, if requested.
    pub matched: Option<&'v MatchedStatements>,
}

/// The events at a line in two runs.
#[derive(Clone, Debug)]
pub struct Moments {
    /// The events in the unoptimised run.
    pub a: Trail,
    /// The events in the optimised run.
    pub b: Trail,
    /// For each part of the optimised run, its counterpart in the unoptimised run, found by
    /// counting.
    pub pairs: Vec<Option<u32>>,
}

/// The maximum number of times that functions are excluded because their calls differ in order.
/// After that, only host calls are compared.
const TRIALS: usize = 24;

/// Finds which arrivals at a line correspond. `a` is the unoptimised run, and `b` is the optimised
/// run. Both walks stop as soon as either run has more than `most` stops, or pairs of a stop and a
/// part. `progress` receives the current block of the optimised run.
///
/// Time is linear in the length of both runs. It is several times as long if their calls turn out
/// to be in different orders.
///
/// # Errors
/// Returns an error if a path cannot be read, the runs did not call the host in the same way, or
/// the line is executed too often between two common calls.
pub fn moments<S: Segments>(
    a: &Version<'_, '_, S>,
    b: &Version<'_, '_, S>,
    most: usize,
    progress: &dyn Fn(u64),
) -> Result<Moments, CurrencyError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut anchors = Anchors::new(calling(a), calling(b))?;
    let mut names = OperatorNames::new();
    let parts = [
        LineParts::new(a, &mut names)?,
        LineParts::new(b, &mut names)?,
    ];
    for trial in 0.. {
        let mut both = (
            walker(a, &parts[0], &anchors.of[0], most, &|_| {}),
            walker(b, &parts[1], &anchors.of[1], most, progress),
        );
        let mut hosts = 0;
        let apart = loop {
            let (x, y) = (both.0.next()?, both.1.next()?);
            if x != y {
                break Some((x, y));
            }
            let Some(call) = x else { break None };
            hosts += u64::from(anchors.is_host[call as usize]);
            if both.0.trail.size() > most || both.1.trail.size() > most {
                both.0.cut();
                both.1.cut();
                break None;
            }
        };
        let Some((x, y)) = apart else {
            let (a, b) = (both.0.finish(), both.1.finish());
            let pairs = align(&a, &b);
            return Ok(Moments { a, b, pairs });
        };
        drop(both);
        let is_host = |call: &u32| anchors.is_host[*call as usize];
        let mut other: Vec<u32> = [x, y].into_iter().flatten().collect();
        other.retain(|call| !is_host(call));
        if other.is_empty() {
            let name = |call: Option<u32>| call.map(|call| anchors.names[call as usize].clone());
            return Err(CurrencyError::Apart {
                number: hosts + 1,
                a: name(x),
                b: name(y),
            });
        }
        if trial >= TRIALS {
            let calls = 0..anchors.names.len() as u32;
            other = calls.filter(|call| !is_host(call)).collect();
        }
        anchors.remove(&other);
    }
    unreachable!("the loop ends when only the host's calls are left")
}

fn walker<'v, 'a, S: Segments>(
    version: &Version<'v, 'a, S>,
    parts: &'v LineParts,
    anchors: &HashMap<FuncId, u32>,
    most: usize,
    progress: &'v dyn Fn(u64),
) -> Walker<'v, 'a, S>
where
    S::Error: Error + 'static,
{
    Walker::new(
        version,
        parts,
        |function| anchors.get(&function).copied(),
        2 * most,
        progress,
    )
}

fn calling<'v, S: Segments>(version: &Version<'v, '_, S>) -> Calling<'v, S> {
    Calling {
        path: version.path,
        program: version.program,
        names: version.names,
    }
}
