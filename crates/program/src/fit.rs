//! Decides whether debug information belongs to the code of a module.
//!
//! Tools that rewrite a linked module mostly copy its `.debug_*` sections unchanged. Every address
//! in these sections then refers to different code.
//!
//! The input is the bodies of functions, and the *claims* of the debug information about their
//! extents. The output is whether each body is claimed exactly, and whether it has foreign debug
//! information. A linker's claims fit exactly. A function's entry begins where a body begins, and
//! ends where that body ends. A sequence of the line table begins with a body, before or after the
//! declarations of its locals, and ends where that body or a later body ends. An extent that does
//! not fit shows that code moved, so the functions that it overlaps count as foreign. A sequence
//! that is part of one body proves nothing by itself, so the function's entry decides. Extents of
//! code that the linker removed are not claims, because they begin at 0, −1 or −2, outside all
//! bodies.
//!
//! Code that was replaced by code of the same length, function by function, is not detected.

use std::ops::Range;

use afterimage_ids::OrigOffset;

/// For each body of a module, whether a claim fits it exactly, and whether a claim crosses its
/// bounds.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    /// The bodies, ascending.
    bodies: Vec<Range<OrigOffset>>,
    /// For each body, the last offset at which a claim may begin.
    begins: Vec<OrigOffset>,
    exact: Vec<bool>,
    across: Vec<bool>,
    of: Claimed,
}

/// The kind of claim that covers a stretch of code.
#[derive(Clone, Copy, Debug, Default)]
enum Claimed {
    /// A claim covers one function as a whole.
    #[default]
    Function,
    /// A claim covers one function or several.
    Sequence,
}

impl Fit {
    /// Checks the extents of functions in the debug information. The bodies ascend. O((bodies +
    /// claims) · log bodies).
    pub fn of_functions(
        bodies: &[Range<OrigOffset>],
        claims: impl Iterator<Item = Range<OrigOffset>>,
    ) -> Self {
        let begins = bodies.iter().map(|body| body.start).collect();
        Self::new(bodies, begins, claims, Claimed::Function)
    }

    /// Checks the sequences of line tables, which may cover several functions. Such a claim begins
    /// with a body or with the first of its `operators`, because compilers disagree on whether the
    /// declarations of locals have a line.
    pub fn of_sequences(
        bodies: &[Range<OrigOffset>],
        operators: &[OrigOffset],
        claims: impl Iterator<Item = Range<OrigOffset>>,
    ) -> Self {
        Self::new(bodies, operators.to_vec(), claims, Claimed::Sequence)
    }

    fn new(
        bodies: &[Range<OrigOffset>],
        begins: Vec<OrigOffset>,
        claims: impl Iterator<Item = Range<OrigOffset>>,
        of: Claimed,
    ) -> Self {
        let mut fit = Self {
            bodies: bodies.to_vec(),
            begins,
            exact: Vec::new(),
            across: Vec::new(),
            of,
        };
        // These are the changes in the number of open claims at each body. The exact claims come
        // first.
        let mut changes = [vec![0i64; bodies.len() + 1], vec![0i64; bodies.len() + 1]];
        for claim in claims {
            let touched = fit.touched(&claim);
            let changes = &mut changes[usize::from(!fit.fits(&claim))];
            changes[touched.start] += 1;
            changes[touched.end] -= 1;
        }
        let marks = |changes: &[i64]| {
            let open = changes.iter().scan(0, |open, change| {
                *open += change;
                Some(*open > 0)
            });
            open.take(bodies.len()).collect()
        };
        fit.exact = marks(&changes[0]);
        fit.across = marks(&changes[1]);
        fit
    }

    /// Whether a stretch of code is exactly one body. If a claim may cover several bodies, a series
    /// of exact bodies also counts.
    pub fn fits(&self, claim: &Range<OrigOffset>) -> bool {
        let touched = self.touched(claim);
        let is_enough = match self.of {
            Claimed::Function => touched.len() == 1,
            Claimed::Sequence => !touched.is_empty(),
        };
        is_enough
            && self.bodies[touched.start].start <= claim.start
            && claim.start <= self.begins[touched.start]
            && self.bodies[touched.end - 1].end == claim.end
    }

    /// Whether a stretch of code lies within one body.
    pub(crate) fn is_part(&self, claim: &Range<OrigOffset>) -> bool {
        let touched = &self.bodies[self.touched(claim)];
        touched.len() == 1 && touched[0].start <= claim.start && claim.end <= touched[0].end
    }

    /// Returns the bodies that overlap a stretch of code.
    fn touched(&self, claim: &Range<OrigOffset>) -> Range<usize> {
        let first = self.bodies.partition_point(|body| body.end <= claim.start);
        let past = self.bodies.partition_point(|body| body.start < claim.end);
        first..past.max(first)
    }

    /// Whether a claim exactly fits the body at an offset.
    pub fn is_exact(&self, at: OrigOffset) -> bool {
        self.body(at).is_some_and(|body| self.exact[body])
    }

    /// Whether the debug information of the body at an offset belongs to other code. If so, a claim
    /// crosses the body's bounds, and no claim fits the body.
    pub fn is_foreign(&self, at: OrigOffset) -> bool {
        self.body(at)
            .is_some_and(|body| self.across[body] && !self.exact[body])
    }

    /// Returns the bodies whose debug information belongs to other code, ascending.
    pub fn foreign(&self) -> impl Iterator<Item = &Range<OrigOffset>> {
        let marks = self.across.iter().zip(&self.exact);
        let foreign = self.bodies.iter().zip(marks);
        foreign.filter_map(|(body, (across, exact))| (*across && !exact).then_some(body))
    }

    /// Returns the number of bodies that the debug information covers.
    pub fn claimed(&self) -> usize {
        let marks = self.across.iter().zip(&self.exact);
        marks.filter(|(across, exact)| **across || **exact).count()
    }

    fn body(&self, at: OrigOffset) -> Option<usize> {
        let body = self.bodies.partition_point(|body| body.end <= at);
        self.bodies.get(body).filter(|body| body.start <= at)?;
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_outweighs_what_lies_across() {
        let range = |(from, to)| OrigOffset(from)..OrigOffset(to);
        let bodies = [(10, 20), (22, 30), (31, 40), (42, 50), (51, 60)].map(range);
        let operators = [11, 23, 31, 43, 51].map(OrigOffset);
        // The first claim begins after the locals. The second covers two functions. The third is a
        // definition that the linker did not choose. The next two were moved, and the last was
        // moved to the end of a body.
        let claims = [(11, 20), (22, 40), (10, 18), (12, 22), (41, 49), (53, 60)].map(range);
        let fit = Fit::of_sequences(&bodies, &operators, claims.into_iter());
        assert_eq!(
            Vec::from_iter(fit.foreign()),
            [&range((42, 50)), &range((51, 60))]
        );
        assert!(fit.is_foreign(OrigOffset(45)) && !fit.is_foreign(OrigOffset(41)));
        assert!(fit.is_exact(OrigOffset(39)) && !fit.is_exact(OrigOffset(55)));
        assert_eq!(fit.claimed(), 5);
    }
}
