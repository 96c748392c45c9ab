//! Implements the tool `slice`, which shows all lines that a value depends on or influenced.

use afterimage::analyses::slices::Direction;
use afterimage::present::{SliceLine, SliceReport};
use afterimage::{SliceAbout, SliceAlong, SliceQuery};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject, needs, next};
use crate::answer::{ToolResult, Totals, page};
use crate::schemas;

/// The subject of the question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// An execution of a place: `parser.c:42#7`, `@0x1f3#last`. With `var`, a moment.
    at: Option<String>,
    /// A variable of the source right before `at`.
    var: Option<String>,
    /// An operand of the statement at `at`: `left`, `address`, `condition`.
    operand: Option<String>,
    /// Start the slice at the operator that killed the program.
    #[serde(default)]
    trap: bool,
    /// List instead everything that depends on the value.
    #[serde(default)]
    forward: bool,
    /// The dependences to follow: `all`, `data` (without control dependences) or `thin` (values
    /// only, without addresses).
    along: Option<Along>,
    /// List only lines at a distance of at most this number of dependences, from 1 to 253.
    depth: Option<u8>,
    /// Skip this many lines, to continue an answer.
    #[serde(default)]
    offset: usize,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Along {
    All,
    Data,
    Thin,
}

impl Question for Arguments {
    const NAME: &'static str = "slice";
    const TITLE: &'static str = "All lines that something depends on";
    const ABOUT: &'static str = "Shows all source lines that an execution of a statement or a \
        variable depends on, directly or indirectly. With `forward`, shows all lines that it \
        influenced. The user's own code comes first. `depth` limits the distance, and `along: \
        thin` limits the slice to the computation of the value.";

    fn reports() -> Vec<Value> {
        vec![schemas::document("slice", None)]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let query = self.query()?;
        let session = asked.session()?;
        let whole = asked.once(|| {
            let mut whole = match query.depth {
                Some(_) => asked.answered(|session| session.slice(&query))?,
                None => {
                    session.ensure_whole_path()?;
                    session.ensure_values(asked.cancel)?;
                    session.slice(&query)?
                }
            };
            // The sort is stable: the user's own code comes first, with its lines in their
            // previous order.
            let is_foreign = |line: &SliceLine| !session.code().shows(&line.source.file);
            whole.lines.sort_by_key(is_foreign);
            Ok(whole)
        })?;
        let lines = &whole.lines;
        let all = lines.len();
        let sources = session.sources();
        let title = format!(
            "{}: {} lines of the {} executed, {} statements\n   times       of  line\n",
            whole.title,
            all,
            whole.executed_lines,
            whole.statements.len()
        );
        let show = |rows: &[SliceLine]| {
            let mut text = title.clone();
            for one in rows {
                let file = &one.source.file;
                let mark = if one.criterion { '>' } else { ' ' };
                let source = sources
                    .lines(file)
                    .and_then(|mut lines| lines.line(one.source.line));
                let source = source.unwrap_or_default();
                let (times, of, line) = (one.sliced, one.executed, one.source.line);
                text += &format!(
                    "{times:>8} {of:>8} {mark}{file}:{line}  {}\n",
                    source.trim_end()
                );
            }
            Ok(text)
        };
        let (rows, text) = page(lines, self.offset.min(all), show)?;
        let until = self.offset.min(all) + rows.len();
        let report = SliceReport {
            lines: rows.to_vec(),
            statements: Vec::new(),
            ..SliceReport::clone(&whole)
        };
        let mut document = serde_json::to_value(&report)?;
        document["schema"] = json!("afterimage/slice/2");
        let totals = Totals {
            unit: "lines",
            shown: rows.len() as u64,
            all: Some(all as u64),
        };
        let mut found = ToolResult::new(document, text, totals);
        found.more = (until < all).then(|| json!({ "offset": until }));
        let first = rows.iter().find(|line| !line.criterion).map(|line| {
            let (file, line) = (&line.source.file, line.source.line);
            let about = (format!("the lines around {file}:{line}"), true);
            next(
                "source",
                &self.recording,
                json!({ "file": file, "line": line }),
                about,
            )
        });
        Ok(found.with_next(first.into_iter().collect()))
    }
}

impl Arguments {
    fn query(&self) -> Result<SliceQuery> {
        let about = match (&self.at, &self.var, &self.operand, self.trap) {
            (None, None, None, true) => SliceAbout::Trap,
            (Some(at), Some(name), None, false) => SliceAbout::Variable {
                at: at.clone(),
                name: name.clone(),
            },
            (Some(at), None, Some(operand), false) => SliceAbout::Operand {
                at: at.clone(),
                operand: operand.clone(),
            },
            (Some(at), None, None, false) => SliceAbout::Statement { at: at.clone() },
            _ => {
                return Err(needs(
                    "slice: give at (with or without var or operand), or trap",
                ));
            }
        };
        if self
            .depth
            .is_some_and(|depth| depth == 0 || depth > SliceQuery::DEEPEST)
        {
            return Err(needs("slice: depth must be from 1 to 253"));
        }
        Ok(SliceQuery {
            direction: if self.forward {
                Direction::Forward
            } else {
                Direction::Backward
            },
            along: match self.along {
                None | Some(Along::All) => SliceAlong::All,
                Some(Along::Data) => SliceAlong::Data,
                Some(Along::Thin) => SliceAlong::Thin,
            },
            depth: self.depth,
            ..SliceQuery::new(about)
        })
    }
}
