//! Finds redundant loads, and redundant computations of expressions.

use afterimage_analyses::dataflow::{path_expressions, path_redundancy};
use afterimage_analyses::redundancy::{expression_redundancy, load_redundancy};
use afterimage_present::{RedundancyOf, RedundancyReport, RedundancyScene, RedundancyView, Style};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::dataflow::run_calls;
use crate::monitor::{Note, Work, begin_shares};
use crate::named::NamedProgram;
use crate::steps::follow;

/// Asks which executions were redundant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedundancyQuery {
    /// Whether to examine loads or pure operators.
    pub of: RedundancyOf,
    /// The only function to examine, if one is given.
    pub function: Option<String>,
    /// The maximum number of operators. The operators with the most redundant executions come
    /// first.
    pub top: Option<u64>,
    /// The maximum number of routes to list for each operator, most frequent first.
    pub ways: u64,
    /// Whether to leave out the operators of library code.
    #[serde(default)]
    pub own: bool,
    /// Whether to also show the result that follows from the path alone. It is shown for at most
    /// `top` operators, or [`BY_PATH`](Self::BY_PATH) if all operators are listed.
    pub by_path: bool,
}

impl RedundancyQuery {
    /// The maximum number of operators with a result from the path alone, if all operators are
    /// listed.
    pub const BY_PATH: u64 = 20;

    /// Answers the question.
    ///
    /// # Errors
    /// Returns an error if there is no such function, or the run cannot be followed.
    pub fn answer(&self, program: NamedProgram<'_>) -> Result<RedundancyReport> {
        let traced = program.session;
        let loaded = traced.module();
        let function = self.function.as_deref();
        let function = function.map(|text| program.function(text)).transpose()?;
        let mut redundancy = follow(traced, |run, log| {
            Ok(match self.of {
                RedundancyOf::Loads => load_redundancy(run, log)?,
                RedundancyOf::Expressions => expression_redundancy(run, log)?,
            })
        })?;
        let is_own = self.own && function.is_none();
        if let Some(function) = function {
            let own = &mut redundancy.operators;
            own.retain(|operator| operator.site.function == function);
        }
        let function = function.map(|function| program.names.function(function).to_owned());
        let shows = |function| !is_own || program.own.shows(function);
        let mut report = RedundancyReport::new(self.of, redundancy, function, self.top, shows);
        report.ways = self.ways as usize;
        if !self.by_path {
            return Ok(report);
        }
        let Some(calls) = run_calls(traced)? else {
            let remark =
                "how the run ended was not recorded, so results by path alone are left out";
            let note = Note::Remark(remark.to_owned());
            traced.monitor().note(traced.at(), &note);
            return Ok(report);
        };
        let work = Work::Question("going back along the path");
        let tell = begin_shares(traced.monitor(), work);
        let most = self.top.unwrap_or(Self::BY_PATH) as usize;
        let hottest = report.operators.iter().take(most);
        let mut sites = Vec::from_iter(hottest.map(|operator| operator.site));
        sites.sort_unstable();
        let (code, module) = (&loaded.program, &loaded.bytes);
        report.by_path = match self.of {
            RedundancyOf::Loads => path_redundancy(&calls, code, module, &sites, &tell),
            RedundancyOf::Expressions => path_expressions(&calls, code, module, &sites, &tell),
        };
        Ok(report)
    }

    /// Returns the answer, with the data needed to show it.
    ///
    /// # Errors
    /// Returns the same errors as [`answer`](Self::answer).
    pub fn shown<'a>(&self, program: NamedProgram<'a>, style: Style) -> Result<RedundancyView<'a>> {
        Ok(RedundancyView {
            report: self.answer(program)?,
            scene: RedundancyScene {
                steps: if self.own {
                    program.own_scene(style)
                } else {
                    program.scene(style)
                },
                program: program.session.program(),
                paths: program.session.path()?.nodes(),
            },
        })
    }
}
