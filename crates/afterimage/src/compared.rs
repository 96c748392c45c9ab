//! Compares how often functions or lines were executed in two groups of runs.

use afterimage_present::{CompareView, Format, Sources};
use afterimage_profile::{By, Comparison, Options, Scope};
use anyhow::{Result, bail};

use crate::counted::{Counted, ProfileQuery};
use crate::monitor::{Monitor, Note};
use crate::text::pasted;

impl ProfileQuery {
    /// Refuses comparisons that are not supported, or not supported in this format.
    ///
    /// # Errors
    /// Returns an error if the comparison is not of functions or lines, or the format does not
    /// support it.
    pub fn refuse_comparison(&self, format: Format) -> Result<()> {
        if !matches!(self.by, By::Function | By::Line) {
            bail!("--compare works for functions and lines: choose --by function or --by line");
        }
        if self.is_bound() {
            bail!("--compare compares whole runs: leave out --from and --to");
        }
        if !matches!(format, Format::Text | Format::Json | Format::Csv) {
            bail!("--compare cannot write {format}: choose --format text, json or csv");
        }
        Ok(())
    }
}

/// Compares B with A, and passes the result to `ask`. If the query has no order, the rows that grew
/// most come first. Functions of different programs are matched by name. Refuses to compare lines
/// of different programs, because the same line number may mean different code.
///
/// # Errors
/// Returns an error if there is no such function, the programs have nothing in common, or `ask`
/// fails.
pub fn compare<R>(
    [a, b]: [&Counted; 2],
    query: &ProfileQuery,
    sources: &dyn Sources,
    monitor: &dyn Monitor,
    ask: impl FnOnce(&CompareView<'_>) -> Result<R>,
) -> Result<R> {
    query.refuse_comparison(Format::Json)?;
    let by_name = !a.is_same_program(b);
    if by_name && query.by == By::Line {
        bail!(
            "{} and {} are recordings of different programs, whose lines cannot be matched by \
             number; choose --by function, or use: afterimage diff {} {}",
            a.name().display(),
            b.name().display(),
            pasted(a.name()),
            pasted(b.name())
        );
    }
    if a.name().canonicalize().ok() == b.name().canonicalize().ok() {
        let remark = format!("{}: compared with itself", a.name().display());
        monitor.note(a.name(), &Note::Remark(remark));
    }
    a.ask(monitor, |in_a| {
        b.ask(monitor, |in_b| {
            // A function may be in only one of two programs.
            let of_a = query.options(in_a);
            let of_b = query.options(in_b);
            let none = |options: &Options| Options {
                scope: Scope::Only(Vec::new()),
                ..options.clone()
            };
            let (of_a, of_b) = match (of_a, of_b) {
                (Ok(of_a), Ok(of_b)) => (of_a, of_b),
                (Ok(of_a), Err(_)) if by_name => (of_a.clone(), none(&of_a)),
                (Err(_), Ok(of_b)) if by_name => (none(&of_b), of_b),
                (Err(error), _) | (_, Err(error)) => return Err(error),
            };
            let profiles = [&in_a.profile, &in_b.profile];
            let comparison = Comparison::new(profiles, [&of_a, &of_b], by_name)?;
            if by_name && comparison.common == 0 && query.functions.is_empty() {
                bail!(
                    "{} and {} have no function name in common, so there is nothing to compare",
                    a.name().display(),
                    b.name().display()
                );
            }
            let view = CompareView {
                profiles,
                names: [in_a.title(), in_b.title()],
                comparison: &comparison,
                sources,
            };
            ask(&view)
        })
    })
}
