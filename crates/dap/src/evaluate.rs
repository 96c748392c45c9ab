//! Evaluates expressions in a frame.

use std::io::Write;

use afterimage_replay::state::{Condition, Path};
use anyhow::{Result, anyhow, bail};
use serde_json::json;

use crate::console::forms;
use crate::debuggee::{Answer, Debuggee};
use crate::protocol::Evaluate;
use crate::variables::Opened;

/// Parses an expression.
pub(crate) fn parsed(text: &str) -> Result<Condition> {
    let expression: Result<Condition, _> = text.parse();
    expression.map_err(|error| {
        let error = error.to_string();
        anyhow!(
            "{text}: {}",
            error.replace("of the condition", "of the expression")
        )
    })
}

impl<'a, W: Write + Send + 'static> Debuggee<'_, 'a, W> {
    pub(crate) fn evaluate(&mut self, wanted: &Evaluate) -> Result<Answer> {
        let text = wanted.expression.trim();
        if text.is_empty() {
            bail!("the expression is empty");
        }
        if wanted.context.as_deref() != Some("repl") {
            return self.value(text, wanted.frame_id);
        }
        match self.command(text, wanted.frame_id)? {
            Some(answer) => Ok(answer),
            // The name of a command may also be the name of a variable.
            None => self
                .value(text, wanted.frame_id)
                .map_err(|error| forms(text).map_or(error, |forms| anyhow!(forms))),
        }
    }

    /// Returns the value of an expression.
    fn value(&mut self, text: &str, frame: Option<u64>) -> Result<Answer> {
        let frame = self.frame(frame)?;
        let number = frame.number;
        if let Ok(path) = text.parse::<Path>() {
            let known = self.debugger.variables();
            let known = known.map_err(|error| anyhow!("{text}: {error}"))?;
            let opened = self.debugger.inspect(self.at, number + 1, |inspection| {
                let object = inspection.object((number, frame.inlined), &path)?;
                let object = object.map_err(|why| anyhow!("{text}: {why}"))?;
                inspection.with(number, |moment, _| {
                    Ok(Opened::of(known, text.to_owned(), object, moment))
                })
            })?;
            let variable = self.shown(number, opened, Some(text.to_owned()));
            let mut body = serde_json::to_value(&variable)?;
            if let Some(fields) = body.as_object_mut() {
                fields.remove("name");
                fields.remove("evaluateName");
                if let Some(value) = fields.remove("value") {
                    fields.insert("result".to_owned(), value);
                }
            }
            return Ok(Answer { body, motion: None });
        }
        let expression = parsed(text)?;
        let result = self.debugger.inspect(self.at, number + 1, |inspection| {
            inspection.evaluate(number, &expression)
        })?;
        let result = result.map_err(|why| anyhow!("{text}: {why}"))?;
        Ok(Answer {
            body: json!({ "result": result, "variablesReference": 0 }),
            motion: None,
        })
    }
}
