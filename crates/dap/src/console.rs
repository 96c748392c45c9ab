//! Answers the commands of the debug console: questions about the selected frame, and movements of
//! the run.

use std::io::Write;

use afterimage::debugger::{Direction, StopAt};
use afterimage::explain::explain;
use afterimage::present::{SliceRows, SliceView, Style};
use afterimage::slice::{Wanted, find};
use afterimage::why::show::{Form, Rest};
use afterimage::{SliceAbout, SliceQuery, WhyAbout, WhyQuery};
use afterimage_present::{grouped, render};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::debuggee::{Answer, Debuggee};
use crate::motion::Motion;
use crate::protocol::Origins;

const HELP: &str = "\
x, p->next, a[3] + 1   the value of an expression (docs/EXPRESSIONS.md)
why x                  where the value of x comes from
why --trap             what killed the program
slice x                all lines that the value of x depends on
goto MOMENT            goes to a moment: parse#3, file.c:42#last, 50%, t=123456, start, end
when x < 0             goes to the next time that x is negative on this line
when-before x < 0      goes back to the last time that x was negative on this line
back, in-back, out-back  steps back: over, in, out";

/// Returns the forms of a command, for a user who typed only its name.
pub(crate) fn forms(word: &str) -> Option<String> {
    let forms = HELP.lines().filter_map(|line| {
        let (form, _) = line.split_once("  ")?;
        (form.split_once(' ')?.0 == word).then_some(form)
    });
    let forms = Vec::from_iter(forms);
    (!forms.is_empty()).then(|| format!("write {}", forms.join(" or ")))
}

/// The maximum number of rows of a slice in the console.
const ROWS: usize = 40;

impl<W: Write + Send + 'static> Debuggee<'_, '_, W> {
    /// Answers a command. Returns `None` if the text is not a command.
    pub(crate) fn command(&mut self, text: &str, frame: Option<u64>) -> Result<Option<Answer>> {
        use afterimage::debugger::Step;
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let told = |text: String| {
            Some(Answer {
                body: json!({ "result": text, "variablesReference": 0 }),
                motion: None,
            })
        };
        let going = |motion, text: &str| {
            Some(Answer {
                body: json!({ "result": text, "variablesReference": 0 }),
                motion: Some(motion),
            })
        };
        let step = |step| going(Motion::Step(step, Direction::Backward), "");
        Ok(match (word, rest) {
            ("help", "") => told(HELP.to_owned()),
            ("why", "") | ("slice", "") | ("goto", "") | ("when" | "when-before", "") => None,
            ("why", about) => told(self.why(about, frame)?),
            ("slice", about) => told(self.slice(about, frame)?),
            ("goto", moment) => {
                let at = match moment {
                    "start" => self.debugger.first()?,
                    moment => self.debugger.position(moment)?,
                };
                going(Motion::To(at), moment)
            }
            ("when", condition) => Some(self.when(condition, Direction::Forward)?),
            ("when-before", condition) => Some(self.when(condition, Direction::Backward)?),
            ("back", "") => step(Step::Over),
            ("in-back", "") => step(Step::In),
            ("out-back", "") => step(Step::Out),
            _ => None,
        })
    }

    fn about(&mut self, text: &str, frame: Option<u64>) -> Result<WhyQuery> {
        let about = match text {
            "--trap" => WhyAbout::Trap,
            name => {
                let frame = self.frame(frame)?;
                WhyAbout::Variable {
                    at: self.debugger.written(frame.position())?,
                    name: name.to_owned(),
                }
            }
        };
        Ok(WhyQuery::new(about))
    }

    fn why(&mut self, text: &str, frame: Option<u64>) -> Result<String> {
        let query = self.about(text, frame)?;
        let mut told = Vec::new();
        explain(self.debugger.session(), |scene| {
            let start = query.start(scene)?;
            let rest = Rest::Hidden("afterimage why --all shows them");
            let form = Form::Text(rest, Style::default());
            start.show(&mut told, scene, query.steps, form)
        })?;
        Ok(String::from_utf8_lossy(&told).trim_end().to_owned())
    }

    fn slice(&mut self, text: &str, frame: Option<u64>) -> Result<String> {
        let frame = self.frame(frame)?;
        let about = SliceAbout::Variable {
            at: self.debugger.written(frame.position())?,
            name: text.to_owned(),
        };
        let wanted = Wanted::Answer(SliceQuery::new(about));
        let mut told = Vec::new();
        find(self.debugger.session(), &wanted, None, |found| {
            let report = found.report()?;
            let view = SliceView {
                report: &report,
                rows: SliceRows::Lines,
                limit: ROWS,
                texts: &[],
                code: found.code(),
                sources: found.sources(),
                edges: Default::default(),
            };
            let style = Style::default();
            Ok(render(
                &mut told,
                &view,
                afterimage_present::Format::Text,
                style,
            )?)
        })?;
        Ok(String::from_utf8_lossy(&told).trim_end().to_owned())
    }

    /// Goes to the nearest execution of the current line at which a condition holds.
    fn when(&mut self, condition: &str, direction: Direction) -> Result<Answer> {
        let line = self.frame(None)?.line;
        let line = line.context("the run is not at a line of the source")?;
        let at = StopAt::Line {
            path: line.path.clone(),
            line: line.line,
        };
        let point = self.debugger.stop_point(&at, Some(condition), None)?;
        let found = self.debugger.run_to(self.at, &[&point], direction, None)?;
        let looked_at = format!("tested {} executions", grouped(found.looked_at));
        let unknown = match &found.why_unknown {
            Some(why) => format!(
                "; at {} of them it had no value: {why}",
                grouped(found.unknown)
            ),
            None => String::new(),
        };
        let Some(at) = found.at else {
            let when = match direction {
                Direction::Forward => "after",
                Direction::Backward => "before",
            };
            bail!(
                "{condition} never holds on line {} {when} this moment: {looked_at}{unknown}",
                line.line
            );
        };
        Ok(Answer {
            body: json!({
                "result": format!("{}: {looked_at}{unknown}", self.debugger.written(at)?),
                "variablesReference": 0,
            }),
            motion: Some(Motion::To(at)),
        })
    }

    /// Returns the origin of a value, step by step, as JSON.
    pub(crate) fn origins(&mut self, wanted: &Origins) -> Result<Value> {
        let mut query = self.about(wanted.expression.trim(), None)?;
        query.steps = wanted.steps.unwrap_or(query.steps);
        let report = self.debugger.session().why(&query)?;
        Ok(serde_json::to_value(&report)?)
    }
}
