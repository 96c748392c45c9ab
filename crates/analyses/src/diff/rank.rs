//! Ranks lines by how well they separate failing runs from passing runs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use afterimage_profile::Line;

/// A line, with the numbers of failing and of passing runs that executed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedLine {
    /// The line.
    pub line: Line,
    /// The number of failing runs that executed the line.
    pub failing: usize,
    /// The number of passing runs that executed the line.
    pub passing: usize,
    /// Ochiai's coefficient. It is 1 if exactly the failing runs executed the line, and 0 if none
    /// of them did.
    pub score: f64,
    /// The numbers of arrivals at the line, in all failing and in all passing runs.
    pub arrivals: [u64; 2],
}

/// Ranks lines by how well they separate failing runs from passing runs, the most suspicious first.
/// Lines that no failing run executed are left out. A run is represented by the number of arrivals
/// at each line.
///
/// The measure is Ochiai's coefficient, `ef / √((ef + nf) · (ef + ep))`. Abreu, Zoeteweij and van
/// Gemund (2007, section 4) found it the best of the usual measures. Here `ef` and `ep` are the
/// numbers of failing and passing runs that executed the line, and `nf` is the number of failing
/// runs that did not. The order is computed in integers, and `score` is only for display. O(lines ·
/// runs).
pub fn rank_lines(
    passing: &[BTreeMap<Line, u64>],
    failing: &[BTreeMap<Line, u64>],
) -> Vec<RankedLine> {
    let mut ran: BTreeMap<Line, ([usize; 2], [u64; 2])> = BTreeMap::new();
    for (side, executions) in [failing, passing].into_iter().enumerate() {
        for (&line, &arrivals) in executions.iter().flatten() {
            if arrivals > 0 {
                let (runs, all) = ran.entry(line).or_default();
                runs[side] += 1;
                all[side] = all[side].saturating_add(arrivals);
            }
        }
    }
    let rows = ran.into_iter().filter(|(_, (runs, _))| runs[0] > 0);
    let rows = rows.map(|(line, ([ef, ep], arrivals))| RankedLine {
        line,
        failing: ef,
        passing: ep,
        score: ef as f64 / ((failing.len() * (ef + ep)) as f64).sqrt(),
        arrivals,
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|x, y| compare(y, x).then(x.line.cmp(&y.line)));
    rows
}

/// Compares two lines by ef² / (ef + ep), which is the square of the measure times a factor common
/// to all lines.
fn compare(x: &RankedLine, y: &RankedLine) -> Ordering {
    let part = |row: &RankedLine| {
        let ef = row.failing as u128;
        (ef * ef, ef + row.passing as u128)
    };
    let ((xn, xd), (yn, yd)) = (part(x), part(y));
    (xn * yd).cmp(&(yn * xd))
}

#[cfg(test)]
mod tests {
    use afterimage_program::FileId;

    use super::*;

    fn line(number: u32) -> Line {
        Line {
            file: FileId(0),
            number,
        }
    }

    fn execution(lines: &[(u32, u64)]) -> BTreeMap<Line, u64> {
        lines
            .iter()
            .map(|&(number, count)| (line(number), count))
            .collect()
    }

    #[test]
    fn lines_of_failing_executions_only_come_first() {
        let passing = [
            execution(&[(1, 5), (2, 1), (3, 0)]),
            execution(&[(1, 5), (4, 1)]),
        ];
        let failing = [
            execution(&[(1, 5), (3, 2)]),
            execution(&[(1, 5), (2, 3), (3, 1)]),
        ];
        let rows = rank_lines(&passing, &failing);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.line.number, row.failing, row.passing, row.arrivals))
            .collect();
        assert_eq!(
            told,
            [(3, 2, 0, [3, 0]), (1, 2, 2, [10, 10]), (2, 1, 1, [3, 1])]
        );
        assert_eq!(rows[0].score, 1.0);
        assert!((rows[1].score - 0.5f64.sqrt()).abs() < 1e-12);
        assert!((rows[2].score - 0.5).abs() < 1e-12);
    }
}
