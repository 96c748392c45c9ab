//! Pairs an optimised run with an unoptimised run, and finds a line in both.

use std::collections::BTreeSet;

use crate::explain::Scene;
use crate::steps::follow;
use afterimage_analyses::currency::{
    Alignment, MatchedStatements, Moments, OperatorValues, Refusal, Version, moments,
    operator_values,
};
use afterimage_analyses::matching::{match_versions, same_names, version};
use afterimage_ids::{FuncId, OpId};
use afterimage_profile::location::{Form, Occurrence, Place, ResolveError, form};
use afterimage_profile::{Line, Resolver};
use afterimage_replay::state::{Bodies, Variables};
use afterimage_replay::whole_path::{ArrivalTimes, FileSegments};
use anyhow::{Context, Result, bail};

use crate::monitor::Work;

/// The maximum number of executions of a line to compare.
const MOST: usize = 8_000_000;

/// A run, with the data needed to find its lines and variables.
pub struct Side<'p, 'a> {
    pub scene: &'p Scene<'p, 'a>,
    pub variables: &'a Variables<'a>,
    pub bodies: Bodies<'a>,
    /// The name of the recording.
    pub name: String,
    /// The statements that are matched with statements of the other version, if requested.
    matched: Option<MatchedStatements>,
}

impl<'p, 'a> Side<'p, 'a> {
    pub fn new(scene: &'p Scene<'p, 'a>, name: String) -> Result<Self> {
        let loaded = scene.traced.module();
        Ok(Self {
            scene,
            variables: scene.traced.variables().with_context(|| name.clone())?,
            bodies: Bodies::new(&loaded.program, &loaded.bytes),
            name,
            matched: None,
        })
    }

    fn resolver(&self) -> Resolver<'a> {
        let loaded = self.scene.traced.module();
        Resolver::new(
            &loaded.program,
            &loaded.bytes,
            self.scene.names,
            self.scene.source(),
        )
    }

    /// Resolves a line such as `file.c:42`, and finds the functions that contain its code.
    fn line(&self, text: &str) -> Result<(OneLine, Option<Occurrence>), NoLine> {
        let resolved = self.resolver().location(text).map_err(NoLine::Resolve)?;
        let Place::Line(line, operators) = resolved.place else {
            return Err(NoLine::Other);
        };
        let mut functions: Vec<FuncId> = operators.iter().map(|(function, _)| *function).collect();
        functions.sort_unstable();
        functions.dedup();
        Ok((OneLine { line, functions }, resolved.occurrence))
    }

    /// Returns the arrivals at a line.
    fn arrivals(&self, line: &OneLine) -> Result<ArrivalTimes<'a, FileSegments>> {
        let scene = self.scene;
        let positions = scene.traced.positions(scene.names, scene.source())?;
        let functions = line.functions.iter().copied();
        let found = positions.arrivals(line.line, functions);
        found.with_context(|| self.name.clone())
    }

    /// Finds the values that operators produced.
    fn operator_values(&self, wanted: &[(u64, OpId)]) -> Result<OperatorValues> {
        if wanted.is_empty() {
            return Ok(OperatorValues::new());
        }
        let found = follow(self.scene.traced, |run, log| {
            Ok(operator_values(run, log, wanted)?)
        });
        found.with_context(|| self.name.clone())
    }

    fn version<'v>(
        &'v self,
        line: &'v OneLine,
        arrivals: &'v ArrivalTimes<'a, FileSegments>,
    ) -> Result<Version<'v, 'a, FileSegments>> {
        let traced = self.scene.traced;
        Ok(Version {
            path: traced.path()?,
            program: traced.program(),
            module: traced.bytes(),
            names: self.scene.names,
            source: self.scene.source(),
            line: line.line,
            functions: &line.functions,
            arrivals,
            matched: self.matched.as_ref(),
        })
    }
}

/// The reason why a string does not name a line of the program.
#[derive(Debug)]
enum NoLine {
    Resolve(ResolveError),
    /// The text does not name a line.
    Other,
}

/// Both runs: first the unoptimised run, then the optimised one.
pub struct Pair<'p, 'a> {
    pub a: Side<'p, 'a>,
    pub b: Side<'p, 'a>,
}

/// A line of a program.
struct OneLine {
    line: Line,
    functions: Vec<FuncId>,
}

/// The events at a line in both runs.
pub struct Both {
    pub moments: Moments,
    /// The number of arrivals in each run.
    pub arrivals: [u64; 2],
}

/// The events at a line in both runs, or the version that has no code for the line.
pub enum LineOfBoth {
    Both(Box<Both>),
    /// The unoptimised or the optimised version has no such line.
    Lacking(&'static str),
}

impl Pair<'_, '_> {
    /// Matches statements by their effects. Follows both runs.
    pub fn match_statements(&mut self) -> Result<()> {
        let sketched = |scene: &Scene<'_, '_>| {
            follow(scene.traced, |run, _| {
                Ok(version(run, scene.traced.file().log()?)?)
            })
        };
        let of_a = sketched(self.a.scene).with_context(|| self.a.name.clone())?;
        let of_b = sketched(self.b.scene).with_context(|| self.b.name.clone())?;
        let named = (
            (self.a.scene.traced.program(), self.a.scene.names),
            (self.b.scene.traced.program(), self.b.scene.names),
        );
        let names = same_names(named.0, named.1);
        let found = match_versions(&of_a.version, &of_b.version, Some(&names));
        let (mut a, mut b) = (MatchedStatements::new(), MatchedStatements::new());
        for (place, counterpart) in of_b.places.iter().zip(&found.of_b) {
            let Some(counterpart) = counterpart else {
                continue;
            };
            let other = of_a.places[counterpart.a as usize];
            a.insert((other.function, other.op), counterpart.a);
            b.insert((place.function, place.op), counterpart.a);
        }
        self.a.matched = Some(a);
        self.b.matched = Some(b);
        Ok(())
    }

    /// Returns what happened in both runs at the line in `text`, and the selected stop.
    pub fn at(&self, text: &str) -> Result<(Both, Option<Occurrence>)> {
        let (b, occurrence) = self
            .b
            .line(text)
            .map_err(|why| self.refused(text, why, 1))?;
        let place = match text.rsplit_once('#') {
            Some((place, _)) if occurrence.is_some() => place,
            _ => text,
        };
        if let Form::Line {
            column: Some(_), ..
        } = form(place)
        {
            bail!("--at {place} names a column, but stops are at lines: leave out the column");
        }
        let (a, _) = self
            .a
            .line(place)
            .map_err(|why| self.refused(text, why, 0))?;
        Ok((self.both(&a, &b)?, occurrence))
    }

    fn refused(&self, text: &str, why: NoLine, which: usize) -> anyhow::Error {
        let name = [&self.a.name, &self.b.name][which];
        match why {
            NoLine::Resolve(error @ ResolveError::Line(_)) => {
                let version = ["unoptimised", "optimised"][which];
                anyhow::anyhow!("{name}: --at {text}: in the {version} program, {error}")
            }
            NoLine::Resolve(error) => anyhow::anyhow!("{name}: --at {text}: {error}"),
            NoLine::Other => anyhow::anyhow!(
                "--at {text} is not a source line: write file.c:42, because only lines are the \
                 same place in both versions"
            ),
        }
    }

    /// Returns what happened in both runs at a line. The file is identified by its path and by the
    /// shortest suffix of the path that is unique, since the other version may have been compiled
    /// elsewhere.
    pub fn at_line(&self, [path, short]: [&str; 2], number: u32) -> Result<LineOfBoth> {
        let find = |side: &dyn Fn(&str) -> Result<OneLine, NoLine>| {
            let found = side(&format!("{path}:{number}"));
            found.or_else(|_| side(&format!("{short}:{number}")))
        };
        let a = find(&|text| Ok(self.a.line(text)?.0));
        let b = find(&|text| Ok(self.b.line(text)?.0));
        Ok(match (a, b) {
            (Ok(a), Ok(b)) => LineOfBoth::Both(Box::new(self.both(&a, &b)?)),
            (Err(_), _) => LineOfBoth::Lacking("unoptimised"),
            (_, Err(_)) => LineOfBoth::Lacking("optimised"),
        })
    }

    /// Returns the stop of the unoptimised run that corresponds to a stop of the optimised run.
    /// Returns an error if it is unknown, or if the stops are in different functions of the source:
    /// a line may contain closures.
    pub fn counterpart(
        &self,
        settled: &Alignment<'_>,
        moments: &Moments,
        stop: u32,
    ) -> Result<Result<u32, Option<Refusal>>> {
        let found = match settled.counterpart(stop) {
            Ok(found) => found,
            refused => return Ok(refused),
        };
        // The unoptimised run may have ended before the counterpart.
        let Some(a) = moments.a.stops.get(found as usize) else {
            return Ok(Ok(found));
        };
        let b = moments.b.stops[stop as usize];
        let of_a = self.a.scene.written_in(a.function, a.op)?;
        let of_b = self.b.scene.written_in(b.function, b.op)?;
        Ok(match of_a.zip(of_b) {
            Some((a, b)) if a != b => Err(None),
            _ => Ok(found),
        })
    }

    /// Compares values to check the counterparts of some parts of the optimised run, which were
    /// found by counting executions. Follows both runs.
    pub fn confirmed<'m>(
        &self,
        moments: &'m Moments,
        parts: &BTreeSet<u32>,
    ) -> Result<Alignment<'m>> {
        let [of_a, of_b] = moments.to_be_known(parts);
        let given = [
            self.a.operator_values(&of_a)?,
            self.b.operator_values(&of_b)?,
        ];
        Ok(moments.confirmed(parts, given))
    }

    fn both(&self, a: &OneLine, b: &OneLine) -> Result<Both> {
        let (of_a, of_b) = (self.a.arrivals(a)?, self.b.arrivals(b)?);
        let versions = (self.a.version(a, &of_a)?, self.b.version(b, &of_b)?);
        let length = self.b.scene.traced.path()?.length();
        let work = Work::Question("following both runs");
        let progress = self.b.scene.traced.monitor().begin(work, Some(length));
        let mut moments = moments(&versions.0, &versions.1, MOST, &|time| progress(time))?;
        let arrivals = [of_a.count(), of_b.count()];
        // The last arrival is not a stop if the run ended before it.
        moments.a.stops.truncate(arrivals[0] as usize);
        moments.b.stops.truncate(arrivals[1] as usize);
        Ok(Both { moments, arrivals })
    }
}
