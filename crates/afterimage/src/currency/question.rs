//! Decides whether a variable of an optimised program is current where a debugger stops.

use std::ops::Range;

use afterimage_analyses::currency::{Alignment, Comparison, Refusal, Symbols, compare};
use afterimage_present::{
    CurrencyCause, CurrencyReport, CurrencyRow, Unreported, Verdict, grouped,
};
use afterimage_replay::state::{Path, PathError};
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::cause::Causes;
use super::names;
use super::pair::{Both, Pair, Side};
use super::read::{Nowhere, ReadValue, read};
use crate::Session;
use crate::explain::explain_both;
use crate::inputs::remark_different_inputs;
use crate::places::{number, times};

/// Asks whether a debugger would show the value that the programmer expects a variable to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrencyQuery {
    /// The line, and the arrival at it in the optimised run: `file.c:42`, `file.c:42#7`.
    pub at: String,
    /// The variable, or an expression. The default is every variable in scope at the line.
    pub variable: Option<String>,
    /// Whether to also match statements by their effects, to find the moment that corresponds to a
    /// stop.
    pub matching: bool,
    /// The maximum number of stops to examine if no arrival is named.
    pub limit: u64,
}

impl CurrencyQuery {
    /// The default number of stops to examine.
    pub const STOPS: u64 = 10_000;

    /// Checks the expression.
    ///
    /// # Errors
    /// Returns an error if the text is not an expression.
    pub fn check(&self) -> Result<()> {
        let Some(name) = &self.variable else {
            return Ok(());
        };
        let path: Result<Path, PathError> = name.parse();
        path.map(drop).map_err(|error| {
            anyhow!("--var {name}: {error}; write a name, p->next, s.member, a[3] or *p")
        })
    }

    /// Returns one answer for each variable. The list is never empty. The values must exist.
    ///
    /// # Errors
    /// Returns an error if the runs cannot be compared, there is no such line or variable, or a
    /// recording is damaged.
    pub fn answer(&self, [a, b]: [&Session; 2]) -> Result<Vec<CurrencyReport>> {
        self.check()?;
        let name = |session: &Session| session.at().display().to_string();
        explain_both([a, b], |[a, b]| {
            let mut pair = Pair {
                a: Side::new(a, name(a.traced))?,
                b: Side::new(b, name(b.traced))?,
            };
            if self.matching {
                pair.match_statements()?;
            }
            self.of_pair(&pair)
        })
    }

    fn of_pair(&self, pair: &Pair<'_, '_>) -> Result<Vec<CurrencyReport>> {
        let (both, which) = pair.at(&self.at)?;
        let Both { moments, arrivals } = &both;
        let place = match (which, self.at.rsplit_once('#')) {
            (Some(_), Some((place, _))) => place,
            _ => &self.at,
        };
        let all = arrivals[1];
        if all == 0 {
            bail!(
                "{place} was never reached in the optimised run, so no debugger stops there; in \
                 the unoptimised run it was {}",
                times(arrivals[0])
            );
        }
        let known = moments.b.stops.len() as u64;
        let stops = match which {
            Some(which) => {
                let number = number(which, all, &format!("in the optimised run, {place}"))?;
                if number > known {
                    bail!(
                        "{place} was reached {}: only the first {} can be examined",
                        times(all),
                        grouped(known)
                    );
                }
                number - 1..number
            }
            None => 0..known.min(self.limit),
        };
        let stops = stops.start as u32..stops.end as u32;
        let settled = pair.confirmed(moments, &moments.parts_of(stops.clone()))?;
        let question = Question {
            pair,
            both: &both,
            settled: &settled,
            place,
            is_one: which.is_some(),
            stops,
        };
        let variables = match &self.variable {
            Some(name) => vec![name.clone()],
            None => {
                let found = names::in_scope(pair, moments, &settled, question.stops.clone())?;
                found.with_context(|| {
                    format!(
                        "no stop at {place} has a known counterpart in the unoptimised run, so \
                         it is not known which variables are in scope there: name one with --var"
                    )
                })?
            }
        };
        if variables.is_empty() {
            bail!("no variable is in scope at {place} in the unoptimised run");
        }
        question.reports(variables, self.variable.is_some())
    }
}

/// Refuses runs that cannot be compared. Reports where the host gave them different data.
///
/// # Errors
/// Returns an error if both runs are of the same program or had different arguments, or a recording
/// is damaged.
pub fn refuse_unlike([a, b]: [&Session; 2]) -> Result<()> {
    let (unoptimised, optimised) = (a.at().display(), b.at().display());
    if a.bytes() == b.bytes() {
        bail!(
            "{optimised} and {unoptimised} are recordings of the same program: also record a \
             version without optimisation, on the same input"
        );
    }
    let (args_a, args_b) = (a.file().meta()?.args, b.file().meta()?.args);
    if args_a != args_b {
        bail!(
            "the two runs had different arguments, {args_a:?} in {unoptimised} and {args_b:?} \
             in {optimised}, so their variables cannot be compared: record both on the same \
             input"
        );
    }
    remark_different_inputs([a, b], "the optimiser did")
}

/// A currency question about several variables.
struct Question<'q, 'a> {
    pair: &'q Pair<'q, 'a>,
    both: &'q Both,
    settled: &'q Alignment<'q>,
    /// The line as named by the user.
    place: &'q str,
    /// Whether the question concerns a single stop.
    is_one: bool,
    stops: Range<u32>,
}

impl Question<'_, '_> {
    /// Returns one answer for each variable or expression. A named expression that has no meaning
    /// at any stop is an error.
    fn reports(&self, variables: Vec<String>, named: bool) -> Result<Vec<CurrencyReport>> {
        let Self {
            pair,
            both,
            settled,
            ..
        } = *self;
        let Both { moments, arrivals } = both;
        let paths = variables.iter().map(|name| name.parse());
        let paths: Vec<Path> = paths.collect::<Result<_, PathError>>()?;
        let stops = || self.stops.clone();
        let shown = read(&pair.b, &paths, &moments.b, stops(), false)?;
        let counterparts = stops().map(|at| pair.counterpart(settled, moments, at));
        let counterparts = counterparts.collect::<Result<Vec<_>>>()?;
        let known = moments.a.stops.len() as u32;
        let wanted = counterparts.iter().copied().filter_map(Result::ok);
        let mut wanted: Vec<u32> = wanted.filter(|&at| at < known).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let expected = read(&pair.a, &paths, &moments.a, wanted, true)?;
        let symbols = [
            Symbols::new(pair.b.variables),
            Symbols::new(pair.a.variables),
        ];
        let causes = Causes::new(pair, moments);
        let mut reports = Vec::new();
        for (which, variable) in variables.into_iter().enumerate() {
            if named {
                refuse_unknown(&variable, &pair.b, shown.values().map(|all| &all[which]))?;
                refuse_unknown(&variable, &pair.a, expected.values().map(|all| &all[which]))?;
            }
            let mut rows = Vec::new();
            let mut type_name = None;
            for (at, counterpart) in stops().zip(&counterparts) {
                // The last arrival is not a stop if the run ended before it.
                let Some(shown) = shown.get(&at).map(|all| &all[which]) else {
                    continue;
                };
                let truth = counterpart.ok().and_then(|other| {
                    let seen = expected.get(&other)?;
                    Some((other, &seen[which]))
                });
                let kind = |seen: &Result<ReadValue, Nowhere>| {
                    let seen = seen.as_ref().ok()?;
                    Some(seen.rendered.type_name.clone())
                };
                type_name = type_name.or_else(|| kind(shown)).or_else(|| kind(truth?.1));
                let mut row = CurrencyRow {
                    number: u64::from(at) + 1,
                    time: moments.b.stops[at as usize].time,
                    counterpart: truth.map(|(other, _)| {
                        let time = moments.a.stops[other as usize].time;
                        (u64::from(other) + 1, time)
                    }),
                    shown: text(shown),
                    expected: truth.map(|(_, seen)| text(seen)),
                    verdict: match counterpart {
                        Err(why) if shown.is_ok() => Verdict::NotTold {
                            why: why.map(unreported),
                        },
                        _ => verdict(shown, truth.map(|(_, seen)| seen), &symbols),
                    },
                };
                if let (Verdict::NotCurrent { .. }, Some((_, Ok(seen)))) = (&row.verdict, truth)
                    && causes.is_unset(seen)?
                {
                    row.verdict = Verdict::NotSet;
                }
                rows.push(row);
            }
            let mut report = CurrencyReport {
                variable,
                type_name,
                at: self.place.to_owned(),
                which: rows.first().map(|row| row.number).filter(|_| self.is_one),
                arrivals: *arrivals,
                rows,
                explained: None,
            };
            report.explained = self.explained(&causes, &report)?;
            reports.push(report);
        }
        Ok(reports)
    }

    /// Finds the first stop where the variable is not current, and explains why it is not.
    fn explained(
        &self,
        causes: &Causes<'_, '_>,
        report: &CurrencyReport,
    ) -> Result<Option<(u64, CurrencyCause)>> {
        let mut rows = report.rows.iter();
        let first = rows.find_map(|row| match (&row.verdict, row.counterpart) {
            (Verdict::NotCurrent { part }, Some((other, _))) => Some((row.number, other, part)),
            _ => None,
        });
        let Some((number, other, part)) = first else {
            return Ok(None);
        };
        let stops = (number as u32 - 1, other as u32 - 1);
        let cause = causes.explain(&report.variable, stops, part)?;
        Ok(Some((number, cause)))
    }
}

fn unreported(why: Refusal) -> Unreported {
    match why {
        Refusal::Differs { column, b, a } => Unreported::Differs {
            column,
            optimised: b,
            unoptimised: a,
        },
        Refusal::Alike { column } => Unreported::Alike { column },
    }
}

fn text(seen: &Result<ReadValue, Nowhere>) -> Result<String, String> {
    match seen {
        Ok(seen) => Ok(seen.text.clone()),
        Err(nowhere) => Err(nowhere.to_string()),
    }
}

/// Refuses an expression that has no meaning at any stop.
fn refuse_unknown<'r>(
    name: &str,
    side: &Side<'_, '_>,
    mut seen: impl Iterator<Item = &'r Result<ReadValue, Nowhere>>,
) -> Result<()> {
    let first = seen.next().and_then(|seen| seen.as_ref().err());
    if let Some(first) = first.filter(|first| first.is_misnomer())
        && seen.all(|seen| seen.as_ref().is_err_and(|other| other == first))
    {
        bail!("{}: --var {name}: {}", side.name, first.why);
    }
    Ok(())
}

/// Compares the shown value with the expected one.
fn verdict(
    shown: &Result<ReadValue, Nowhere>,
    expected: Option<&Result<ReadValue, Nowhere>>,
    symbols: &[Symbols; 2],
) -> Verdict {
    let shown = match shown {
        Ok(shown) => shown,
        Err(nowhere) => {
            return Verdict::NotAvailable {
                why: nowhere.to_string(),
            };
        }
    };
    let expected = match expected {
        None => return Verdict::NotTold { why: None },
        Some(Err(nowhere)) => {
            return Verdict::NotComparable {
                why: format!("in the unoptimised run, {nowhere}"),
            };
        }
        Some(Ok(expected)) => expected,
    };
    if shown.declared != expected.declared {
        return Verdict::NotComparable {
            why: "another variable of that name is in scope in the unoptimised run".to_owned(),
        };
    }
    let behind = |part: &str| match part {
        "" => String::new(),
        part => format!("{part} is "),
    };
    let [of_b, of_a] = symbols;
    match compare(&shown.rendered, &expected.rendered, [of_b, of_a]) {
        Comparison::Same => Verdict::Current,
        Comparison::Different(part) => Verdict::NotCurrent { part },
        Comparison::Incomparable { part, why } => Verdict::NotComparable {
            why: format!("{}{why}", behind(&part)),
        },
        Comparison::Missing { part, why } => Verdict::NotAvailable {
            why: match part.as_str() {
                "" => why,
                part => format!("{part}: {why}"),
            },
        },
    }
}
