//! `afterimage currency`

use std::ops::Range;
use std::path::PathBuf;

use afterimage::currency::cause::Causes;
use afterimage::currency::names;
use afterimage::currency::pair::{Both, Pair, Side};
use afterimage::currency::read::{Nowhere, Seen, read};
use afterimage::explain::explain_both;
use afterimage::given::say_if_given_otherwise;
use afterimage::places::{number, times};
use afterimage_analyses::currency::{Alignment, Comparison, Refusal, Symbols, compare};
use afterimage_present::{
    CurrenciesView, CurrencyCause, CurrencyReport, CurrencyRow, CurrencyView, Untold, Verdict,
    grouped, render,
};
use afterimage_profile::location::split_occurrence;
use afterimage_replay::state::{Path, PathError};
use anyhow::{Context, Result, anyhow, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::input;
use crate::lens::{traced_whole, values};
use crate::output::write;

/// Show whether what a debugger shows of a variable in an optimised program is what the programmer expects there
///
/// Both versions ran on the same input. Each stop of the optimised run at the line is found again in the unoptimised one, and the variable is read in both: it is *current* if it
/// holds the same; *not current* if it holds something else, because an assignment was moved or removed: which one is said; or *not available*. With #K one stop is looked at, otherwise all, so
/// the answer holds for this execution, not for all that there could be. What cannot be told is said by name; docs/CURRENCY.md has the rules.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "afterimage currency [OPTIONS] --unoptimised <A.aft> --at <LOC#K> <B.aft>"
)]
#[command(after_help = "\
Examples:
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17 --var total
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17#4 --var total
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17#last --var 'p->k'
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17 --var total --all
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17 --format json")]
pub(crate) struct Arguments {
    /// The recording of the unoptimised version, run on the same input: it says what the variable should hold
    #[arg(long, value_name = "FILE.aft")]
    unoptimised: PathBuf,
    /// The line, and which arrival at it in the optimised run: file.c:42, file.c:42#K, file.c:42#last
    #[arg(long, value_name = "LOC[#K]")]
    at: String,
    /// The variable of the source, or an expression: total, p->next, s.member [default: each variable that is in scope there, how often what]
    #[arg(long, value_name = "NAME")]
    var: Option<String>,
    /// Also count statements that correspond by what they did, as `afterimage match` finds them, to tell which moment a stop is: by evidence, not by proof
    #[arg(long = "match")]
    matching: bool,
    /// Show each stop, as text, of the variable that --var names
    #[arg(long)]
    all: bool,
    /// Without #K: look at the first N stops [default: 10,000]
    #[arg(long, value_name = "N", value_parser = entries)]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

formats!(Text, Json);

/// So many stops are looked at if nothing else is asked for.
const STOPS: u64 = 10_000;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let (optimised, unoptimised) = (&arguments.report.file, &arguments.unoptimised);
    for file in [unoptimised, optimised] {
        input::ended(file)?;
    }
    let expression = |name: &String| -> Result<Path> {
        name.parse().map_err(|error: PathError| {
            anyhow!("--var {name}: {error}; write a name, p->next, s.member, a[3] or *p")
        })
    };
    arguments.var.as_ref().map(expression).transpose()?;
    if arguments.all && arguments.var.is_none() {
        bail!("--all shows each stop for one variable: name it with --var");
    }
    let one = matches!(split_occurrence(&arguments.at), Ok((_, Some(_))));
    if one && arguments.limit.is_some() {
        bail!("--at {}: that is one stop: leave --limit out", arguments.at);
    }
    let a = traced_whole(unoptimised)?;
    let b = traced_whole(optimised)?;
    if a.bytes() == b.bytes() {
        bail!(
            "{} and {} are recordings of the same program: record a version without optimisation, too, on the same input",
            optimised.display(),
            unoptimised.display()
        );
    }
    let (args_a, args_b) = (a.file().meta()?.args, b.file().meta()?.args);
    if args_a != args_b {
        bail!(
            "the two runs had different arguments, {args_a:?} in {} and {args_b:?} in {}, so what one holds says nothing of the other: record both on the same input",
            unoptimised.display(),
            optimised.display()
        );
    }
    say_if_given_otherwise([&a, &b], "the optimiser did")?;
    for session in [&a, &b] {
        values(session)?;
    }
    explain_both([&a, &b], |[a, b]| {
        let mut pair = Pair {
            a: Side::new(a, unoptimised.display().to_string())?,
            b: Side::new(b, optimised.display().to_string())?,
        };
        if arguments.matching {
            pair.match_statements()?;
        }
        answer(&arguments, &pair)
    })?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, pair: &Pair<'_, '_>) -> Result<()> {
    let (both, which) = pair.at(&arguments.at)?;
    let Both { moments, arrivals } = &both;
    let place = match (which, arguments.at.rsplit_once('#')) {
        (Some(_), Some((place, _))) => place,
        _ => &arguments.at,
    };
    let all = arrivals[1];
    if all == 0 {
        bail!(
            "{place} was never reached in the optimised run, so no debugger stops there; in the unoptimised one it was {}",
            times(arrivals[0])
        );
    }
    let known = moments.b.stops.len() as u64;
    let stops = match which {
        Some(which) => {
            let number = number(which, all, &format!("in the optimised run, {place}"))?;
            if number > known {
                bail!(
                    "{place} was reached {}: only the first {} can be looked at",
                    times(all),
                    grouped(known)
                );
            }
            number - 1..number
        }
        None => 0..known.min(arguments.limit.unwrap_or(STOPS)),
    };
    let stops = stops.start as u32..stops.end as u32;
    let settled = pair.settled(moments, &moments.parts_of(stops.clone()))?;
    let question = Question {
        pair,
        both: &both,
        settled: &settled,
        place,
        is_one: which.is_some(),
        stops,
    };
    let variables = match &arguments.var {
        Some(name) => vec![name.clone()],
        None => {
            let found = names::in_scope(pair, moments, &settled, question.stops.clone())?;
            found.with_context(|| {
                format!(
                    "no stop at {place} has a counterpart that is told in the unoptimised run, so it is not known which variables are in scope there: name one with --var"
                )
            })?
        }
    };
    if variables.is_empty() {
        bail!("no variable is in scope at {place} in the unoptimised run");
    }
    let reports = question.reports(variables, arguments.var.is_some())?;
    let report = &reports[0];
    write(arguments.report.output.as_deref(), false, |out| {
        let (format, style) = (arguments.format, arguments.report.style());
        match arguments.var {
            Some(_) => {
                let all = arguments.all;
                render(out, &CurrencyView { report, all }, format, style)?;
            }
            None => render(out, &CurrenciesView(&reports), format, style)?,
        }
        Ok(())
    })
}

/// What is asked about each variable.
struct Question<'q, 'a> {
    pair: &'q Pair<'q, 'a>,
    both: &'q Both,
    settled: &'q Alignment<'q>,
    /// The line, as it was named.
    place: &'q str,
    /// It is about one stop.
    is_one: bool,
    stops: Range<u32>,
}

impl Question<'_, '_> {
    /// What was found about variables, or expressions. What means nothing at any stop is refused if it was named.
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
            Symbols::new(&pair.b.variables),
            Symbols::new(&pair.a.variables),
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
                // What the run did not come to any more is no stop.
                let Some(shown) = shown.get(&at).map(|all| &all[which]) else {
                    continue;
                };
                let truth = counterpart.ok().and_then(|other| {
                    let seen = expected.get(&other)?;
                    Some((other, &seen[which]))
                });
                let kind = |seen: &Result<Seen, Nowhere>| {
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
                            why: why.map(untold),
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

    /// Why it is not current, at the first stop where it is not.
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

fn untold(why: Refusal) -> Untold {
    match why {
        Refusal::Differs { column, b, a } => Untold::Differs {
            column,
            optimised: b,
            unoptimised: a,
        },
        Refusal::Alike { column } => Untold::Alike { column },
    }
}

fn text(seen: &Result<Seen, Nowhere>) -> Result<String, String> {
    match seen {
        Ok(seen) => Ok(seen.text.clone()),
        Err(nowhere) => Err(nowhere.to_string()),
    }
}

/// Refuses an expression that means nothing at any stop.
fn refuse_unknown<'r>(
    name: &str,
    side: &Side<'_, '_>,
    mut seen: impl Iterator<Item = &'r Result<Seen, Nowhere>>,
) -> Result<()> {
    let first = seen.next().and_then(|seen| seen.as_ref().err());
    if let Some(first) = first.filter(|first| first.is_misnomer())
        && seen.all(|seen| seen.as_ref().is_err_and(|other| other == first))
    {
        bail!("{}: --var {name}: {}", side.name, first.why);
    }
    Ok(())
}

/// Whether what is shown is what is expected.
fn verdict(
    shown: &Result<Seen, Nowhere>,
    expected: Option<&Result<Seen, Nowhere>>,
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
