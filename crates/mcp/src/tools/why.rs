//! Implements the tool `why`, which shows where a value came from, and the nearest lines that it
//! depends on in other ways.

use std::collections::BTreeSet;

use afterimage::present::document::objects::Position;
use afterimage::present::{LeftOut, WhyBranch, WhyEntry, WhyHead, WhyLed, WhyPlace, WhyText};
use afterimage::why::Byte;
use afterimage::{DecisionsQuery, WhyAbout, WhyQuery, check};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::near::{Near, Nearest, Starts};
use super::{Question, Subject, needs, next};
use crate::answer::{BODY, Next, ToolResult, Totals, page};
use crate::schemas;

/// The value whose origin to find.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// An execution of a statement: `parser.c:42#7`, `@0x1f3#last`, `parse#3`. With `var`, a
    /// moment.
    at: Option<String>,
    /// A variable of the source, or an expression such as `p->next`, right before `at`.
    var: Option<String>,
    /// An operand of the statement at `at` instead of its result: `left`, `right`, `address`,
    /// `value`, `condition`.
    operand: Option<String>,
    /// A part of the program's output: the last number of a line (`line:N`, `line:last`), the byte
    /// at a column (`line:N:COLUMN`), a string that the program printed, or a byte by its number
    /// from 0.
    #[serde(default, deserialize_with = "text_or_number")]
    #[schemars(with = "Option<TextOrNumber>")]
    stdout: Option<String>,
    /// A part of the program's error output, in the same form.
    #[serde(default, deserialize_with = "text_or_number")]
    #[schemars(with = "Option<TextOrNumber>")]
    stderr: Option<String>,
    /// Explain what killed the program: the operand that trapped, the exit code, or the branch that
    /// led to the end.
    #[serde(default)]
    trap: bool,
    /// Explain only a printed digit, not the number that contains it.
    #[serde(default)]
    digit: bool,
    /// Skip this many steps, to continue an answer.
    #[serde(default)]
    offset: usize,
    /// Show only the nearest lines, without this many, to continue a list that ends with `…`.
    #[serde(default)]
    nearest_after: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Number(u64),
}

fn text_or_number<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Option<String>, D::Error> {
    let found = Option::<TextOrNumber>::deserialize(from)?;
    Ok(found.map(|found| match found {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Number(number) => number.to_string(),
    }))
}

/// The number of rows left for the nearest lines if the chain fills the answer.
const ROWS: usize = 16;
/// The maximum number of branches and calls from which to trace a trap.
const STARTS: usize = 8;
/// The number of calls to show at the end of a run if a chain follows. More calls are shown if the
/// user's own code, or the branch that is followed, is farther out.
const FRAMES: usize = 6;
/// The maximum number of decisions to show.
const DECISIONS: usize = 4;
/// The maximum number of steps for which to find decisions. Also the maximum number of steps before
/// a library's decision from which to search for the nearest lines.
const BEHIND: usize = 4;
/// The number of steps to follow after the part of the chain that was already shown.
const STEPS: u64 = 120;
/// The maximum number of moves in libraries for which to suggest calls and operands.
const MOVES: usize = 3;

impl Question for Arguments {
    const NAME: &'static str = "why";
    const TITLE: &'static str = "Where a value came from";
    const ABOUT: &'static str = "Shows where a value came from, step by step back through \
        computations, memory, calls and arguments, to the constant, the input byte or the host \
        call where it started. Ask about a wrong byte or text of output (`stdout`), about a \
        statement or variable at a moment (`at`, `var`), or about what killed the program \
        (`trap`). `near` lists the closest lines of your own code on which the value depends in \
        any way. `next` lists operands and branches that were not followed.";

    fn reports() -> Vec<Value> {
        let mut why = schemas::document("why", Some("entries"));
        schemas::add(&mut why, "near", schemas::report::<Vec<Near>>());
        schemas::add(
            &mut why,
            "one_way",
            schemas::report::<Option<Vec<Position>>>(),
        );
        schemas::add(&mut why, "decisions", schemas::report::<Vec<WhyBranch>>());
        vec![why]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let mut query = self.query()?;
        if query.about == WhyAbout::Trap {
            check::killed(asked.session()?, "ask with at or stdout")?;
        }
        let (report, kept, library) = loop {
            let report = asked.answered(|session| session.why(&query))?;
            let (kept, library) = kept(&report.entries);
            let (way, ends) = split(&kept);
            // Many steps may be folded. The answer must continue with at least one entry.
            if !is_cut(ends) || way.len() > self.offset + 1 {
                break (report, kept, library);
            }
            query.steps = query.steps.saturating_mul(2);
        };
        let (way, ends) = split(&kept);
        let cut = is_cut(ends);
        // With more steps, the last entry of a chain that was cut may be longer.
        let way = if cut { &way[..way.len() - 1] } else { way };
        let own = |entry: &&WhyEntry| places(entry).iter().any(|place| !place.library);
        let made = |entry: &&WhyEntry| matches!(entry, WhyEntry::Made(_)) && own(entry);
        let first = kept.iter().find(made).or(kept.iter().find(own));
        let first = first.and_then(|entry| places(entry).into_iter().find(|place| !place.library));
        // A run may end in a library, but because of a line of the user's own code.
        let first = first.or(report.head.death.as_ref().map(|death| &death.place));
        // If only libraries moved a value, the earliest move leads to the code that chose the
        // value. Later moves copy a whole buffer.
        let entries = report.entries.iter().rev();
        let moved = entries.flat_map(|entry| places(entry).into_iter().rev());
        let mut starts = Vec::from_iter(first.or_else(|| moved.clone().next()));
        // If a library made the decision, the value on which it decided may come from the user's
        // own code.
        let behind = match library_decision(&kept) {
            Some(led) if !kept.iter().any(|entry| own(&entry)) => {
                asked
                    .answered(|session| session.why(&self.behind_decision(led)))?
                    .entries
            }
            _ => Vec::new(),
        };
        let behind = Vec::from_iter(own_steps(&behind).take(BEHIND));
        starts.extend(behind.iter().copied());
        let decisions = match self.offset {
            0 => {
                let steps = own_steps(&kept).chain(behind.iter().copied());
                let mut times = Vec::from_iter(steps.chain(first).map(|place| place.t));
                times.dedup();
                times.truncate(BEHIND);
                self.decisions(asked, times, &kept)?
            }
            _ => Vec::new(),
        };
        // The end of a run depends on the branches and calls that led to it, regardless of the
        // value that the chain follows. A chain without the user's own code may end at a decision
        // of a library.
        starts.extend(kept.iter().flat_map(branches).take(STARTS));
        if behind.is_empty() && !kept.iter().any(|entry| own(&entry)) {
            starts.extend(library_decision(&kept));
        }
        let starts = Vec::from_iter(starts.iter().map(|place| place.at.clone()));
        let near = match self.offset {
            0 if !starts.is_empty() => {
                let starts = Starts {
                    at: starts,
                    trap: self.trap,
                };
                Nearest::find(asked, starts, &lines(&kept), self.nearest_after)?
            }
            _ => Nearest::default(),
        };
        let head = &report.head;
        if self.nearest_after > 0 {
            return self.farther(head, &near);
        }
        let show = |rows: &[WhyEntry], near_rows: usize| -> Result<(String, Option<usize>)> {
            let mut out = Vec::new();
            let mut said = head.about.clone();
            if let Some(death) = &head.death {
                said = format!("{}\n{said}", death.text());
            }
            out.extend(format!("{said}\n").into_bytes());
            let more = way.len() - (self.offset + rows.len()).min(way.len());
            let mut text = text(&mut out);
            for row in rows {
                text.entry(row)?;
            }
            if more > 0 {
                text.out
                    .write_all(format!("  … {more} more steps\n").as_bytes())?;
            }
            for end in ends {
                text.entry(end)?;
            }
            text.left_out(&library)?;
            out.extend(decided(&decisions).into_bytes());
            let (lines, farther) = near.text(0, near_rows);
            out.extend(lines.into_bytes());
            Ok((String::from_utf8_lossy(&out).into_owned(), farther))
        };
        let fit = |rows: &[WhyEntry]| show(rows, ROWS).map(|(text, _)| text);
        let (rows, shown) = page(way, self.offset.min(way.len()), fit)?;
        // The nearest lines get the rows that the chain leaves free.
        let near_rows = (ROWS + BODY).saturating_sub(shown.lines().count());
        let (shown, farther) = show(rows, near_rows)?;
        let until = self.offset.min(way.len()) + rows.len();
        let entries = Vec::from_iter(rows.iter().chain(ends));
        let mut document = serde_json::to_value(head)?;
        document["schema"] = json!("afterimage/why/2");
        document["entries"] = serde_json::to_value(&entries)?;
        document["near"] = serde_json::to_value(&near.lines)?;
        document["one_way"] = serde_json::to_value(&near.one_way)?;
        document["decisions"] = serde_json::to_value(&decisions)?;
        let mut found = ToolResult::new(
            document,
            shown,
            Totals {
                unit: "steps",
                shown: rows.len() as u64
                    + if until < way.len() || cut {
                        0
                    } else {
                        ends.len() as u64
                    },
                all: (!cut).then_some(kept.len() as u64),
            },
        );
        found.next = self.next(&entries, first, &decisions);
        if !kept.iter().any(|entry| own(&entry)) {
            found.next.extend(self.behind(moved));
        }
        let leads = |one: &Next| one.own && one.tool == Self::NAME;
        if !found.next.iter().any(leads) {
            found.next.extend(self.nearest(&near.lines));
        }
        if let Some(farther) = farther {
            let calls = found.next.iter().take_while(|one| one.tool != Self::NAME);
            let at = calls.count();
            found.next.insert(at, self.nearest_after(farther));
        }
        found.more = (until < way.len() || cut).then(|| json!({ "offset": until }));
        Ok(found)
    }
}

/// Returns the entries to show, and a summary of the moves in libraries.
fn kept(entries: &[WhyEntry]) -> (Vec<WhyEntry>, LeftOut) {
    let mut kept = Vec::new();
    let mut library = LeftOut::default();
    for (index, entry) in entries.iter().enumerate() {
        // Keep the first entry, which is the value itself, even if a library computed it.
        if WhyText::folds(entry) && index > 0 {
            library.add(entry)
        } else {
            kept.push(entry.clone())
        }
    }
    shorten(&mut kept);
    (kept, library)
}

/// Splits entries into the steps and the last entries, which describe the origin.
fn split(kept: &[WhyEntry]) -> (&[WhyEntry], &[WhyEntry]) {
    let ends = kept
        .iter()
        .rev()
        .take_while(|entry| matches!(entry, WhyEntry::End(_)));
    kept.split_at(kept.len() - ends.count())
}

/// Whether a chain continues after its last step.
fn is_cut(ends: &[WhyEntry]) -> bool {
    let stopped = |end: &WhyEntry| matches!(end, WhyEntry::End(end) if end.kind == "stopped");
    ends.iter().any(stopped)
}

/// Returns the lines of entries.
fn lines(entries: &[WhyEntry]) -> BTreeSet<(String, u32)> {
    let places = entries.iter().flat_map(places);
    let lines = places.filter_map(|place| place.around.as_ref().or(place.source.as_ref()));
    lines.map(|line| (line.path.clone(), line.line)).collect()
}

/// Creates a writer that formats entries as the command line does.
fn text(out: &mut Vec<u8>) -> WhyText<'_> {
    WhyText {
        out,
        file: "FILE".to_owned(),
        shown: None,
        width: None,
    }
}

impl Arguments {
    fn query(&self) -> Result<WhyQuery> {
        let byte = |text: &String| {
            let byte = text.parse::<Byte>();
            byte.map_err(|why| needs(&format!("why: {text}: {why}")))
        };
        let about = match (&self.at, &self.stdout, &self.stderr, self.trap) {
            (Some(at), None, None, false) => match &self.var {
                Some(name) => WhyAbout::Variable {
                    at: at.clone(),
                    name: name.clone(),
                },
                None => WhyAbout::Statement {
                    at: at.clone(),
                    operand: self.operand.clone(),
                },
            },
            (None, Some(text), None, false) => WhyAbout::Output(byte(text)?),
            (None, None, Some(text), false) => WhyAbout::Error(byte(text)?),
            (None, None, None, true) => WhyAbout::Trap,
            _ => return Err(needs("why: give one of at, stdout, stderr and trap")),
        };
        Ok(WhyQuery {
            digit: self.digit,
            // An entry may fold several steps. Eight steps for each entry are enough.
            steps: (self.offset as u64).saturating_mul(8).saturating_add(STEPS),
            ..WhyQuery::new(about)
        })
    }

    /// Returns a query for the origin of the value on which a library decided.
    fn behind_decision(&self, led: &WhyPlace) -> WhyQuery {
        let about = WhyAbout::Statement {
            at: led.at.clone(),
            operand: None,
        };
        WhyQuery {
            steps: STEPS,
            ..WhyQuery::new(about)
        }
    }

    /// Finds the decisions that caused blocks to be executed. Leaves out branches that the chain
    /// shows, and other executions of the branch in question, which say the same about a loop.
    fn decisions(
        &self,
        asked: &Subject<'_>,
        times: Vec<u64>,
        shown: &[WhyEntry],
    ) -> Result<Vec<WhyBranch>> {
        let led = shown.iter().flat_map(|entry| match entry {
            WhyEntry::End(end) => end.led.iter().map(|led| &led.place).collect(),
            entry => branches(entry),
        });
        let mut known = BTreeSet::from_iter(led.map(WhyPlace::site));
        known.extend(self.at.as_deref().map(site));
        let query = DecisionsQuery {
            times,
            most: DECISIONS + known.len(),
        };
        let mut all = asked.answered(|session| session.decisions(&query))?;
        all.retain(|one| !known.contains(one.place.site()));
        all.truncate(DECISIONS);
        Ok(all)
    }

    /// Returns the follow-up questions for moves in libraries. They concern the calls in the user's
    /// own code and the origin of the moved value. `moved` lists the moves, the earliest first.
    fn behind<'p>(&self, moved: impl Iterator<Item = &'p WhyPlace>) -> Vec<Next> {
        let (mut all, mut calls) = (Vec::new(), BTreeSet::new());
        for place in moved.take(MOVES) {
            if let Some(call) = &place.called_from
                && calls.insert(call.t)
            {
                let about = format!(
                    "your own code that called the library at {}",
                    call.described()
                );
                let at = json!({ "at": format!("t={}", call.t) });
                all.push(next("call", &self.recording, at, (about, true)));
            }
            if place.operator.starts_with("memory.") {
                for operand in ["from", "length"] {
                    let arguments = json!({ "at": place.at, "operand": operand });
                    let about = (
                        format!("`{operand}` of the copy at {}", place.described()),
                        true,
                    );
                    all.push(next("why", &self.recording, arguments, about));
                }
            }
        }
        all
    }

    /// Returns the question that continues the list of the nearest lines.
    fn nearest_after(&self, lines: usize) -> Next {
        let mut arguments = json!({ "nearest_after": lines });
        let texts = [
            ("at", &self.at),
            ("var", &self.var),
            ("operand", &self.operand),
            ("stdout", &self.stdout),
            ("stderr", &self.stderr),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                arguments[name] = json!(text);
            }
        }
        for (name, flag) in [("trap", self.trap), ("digit", self.digit)] {
            if flag {
                arguments[name] = json!(true);
            }
        }
        let about = "farther lines on which it depends".to_owned();
        next(Self::NAME, &self.recording, arguments, (about, true))
    }

    /// Returns the answer that continues the list of the nearest lines.
    fn farther(&self, head: &WhyHead, near: &Nearest) -> Result<ToolResult> {
        let (lines, farther) = near.text(self.nearest_after, BODY - 2);
        let said = if lines.is_empty() {
            "there are no farther lines\n"
        } else {
            &lines
        };
        let shown = near.lines.get(self.nearest_after..).unwrap_or_default();
        let mut document = serde_json::to_value(head)?;
        document["schema"] = json!("afterimage/why/2");
        document["entries"] = json!([]);
        document["near"] = serde_json::to_value(shown)?;
        document["one_way"] = serde_json::to_value(&near.one_way)?;
        document["decisions"] = json!([]);
        let until = farther.unwrap_or(near.lines.len());
        let totals = Totals {
            unit: "lines",
            shown: until.saturating_sub(self.nearest_after) as u64,
            all: farther.is_none().then_some(until as u64),
        };
        let mut found = ToolResult::new(document, format!("{}\n{said}", head.about), totals);
        found.next = farther
            .map(|lines| self.nearest_after(lines))
            .into_iter()
            .collect();
        found.more = farther.map(|lines| json!({ "nearest_after": lines }));
        Ok(found)
    }

    /// Returns questions about the nearest lines, for a chain that suggests no other questions.
    fn nearest(&self, near: &[Near]) -> Vec<Next> {
        let named = near.iter().filter_map(|one| {
            let at = json!({ "at": one.at.as_ref()? });
            let about = format!("the nearest line {}", one.place());
            Some(next(Self::NAME, &self.recording, at, (about, true)))
        });
        named.collect()
    }

    /// Returns the next questions, in the order of the answer: first the whole call of the first
    /// step, then the paths that were not followed. `start` is the place from which the nearest
    /// lines start.
    fn next(
        &self,
        entries: &[&WhyEntry],
        start: Option<&WhyPlace>,
        decisions: &[WhyBranch],
    ) -> Vec<Next> {
        let mut all = Vec::new();
        let first = entries
            .iter()
            .flat_map(|entry| places(entry))
            .find(|place| !place.library);
        if let Some(place) = first.or(start) {
            let about = (format!("the whole call around {}", place.described()), true);
            all.push(next(
                "call",
                &self.recording,
                json!({ "at": place.at }),
                about,
            ));
        }
        let mut lead = |place: &WhyPlace, operand: Option<&str>, what: String| {
            let arguments = match operand {
                Some(operand) => json!({ "at": place.at, "operand": operand }),
                None => json!({ "at": place.at }),
            };
            let about = (format!("{what} at {}", place.described()), !place.library);
            all.push(next("why", &self.recording, arguments, about));
        };
        // If the chain has ended, the branch that led to its end comes first, and then the other
        // decisions. The calls around the end of a run come last, because the steps are nearer.
        let ends = entries.iter().filter_map(|entry| match entry {
            WhyEntry::End(end) => Some(end),
            _ => None,
        });
        for end in ends {
            if let Some(branch) = end.led.as_deref() {
                lead(&branch.place, None, "the branch that led there".to_owned());
            }
            if let Some(read) = &end.read {
                lead(
                    read,
                    Some("address"),
                    "the address from which it was read".to_owned(),
                );
            }
        }
        for one in decisions {
            lead(&one.place, None, "a branch that caused it".to_owned());
        }
        for entry in entries {
            match entry {
                WhyEntry::Made(made) | WhyEntry::Again { back: made, .. } => {
                    for (number, operand) in made.operands.iter().enumerate() {
                        let open = !operand.constant || operand.elsewhere;
                        let other = made.followed().is_some_and(|followed| followed != number);
                        if open && other {
                            let what = format!("{} ({})", operand.value, operand.role);
                            lead(&made.place, Some(&operand.role), what);
                        }
                    }
                }
                WhyEntry::Moved { moves, .. } => {
                    for one in moves.iter().filter(|one| one.how == "selected") {
                        let what = "which of two values it was".to_owned();
                        lead(&one.place, Some("condition"), what);
                    }
                }
                WhyEntry::Led { .. } | WhyEntry::End(_) => {}
            }
        }
        for entry in entries {
            if let WhyEntry::Led { frames, .. } = entry {
                let led = frames.iter().filter_map(|frame| frame.branch.as_ref());
                for WhyLed { branch, .. } in led.filter(|led| !led.followed) {
                    lead(&branch.place, None, "the branch that led there".to_owned());
                }
            }
        }
        // If all suggestions are in libraries, they are the only way back to the user's own code.
        if !all.iter().any(|one| one.own && one.tool == Self::NAME) {
            all.iter_mut().for_each(|one| one.own = true);
        }
        all
    }
}

/// Shortens the list of calls that were open at the end of the run, so that the chain after it has
/// room. `state` lists all calls.
fn shorten(entries: &mut [WhyEntry]) {
    if own_steps(entries).next().is_some()
        && let Some(WhyEntry::Led { frames, more }) = entries.first_mut()
    {
        let own = frames.iter().position(|frame| frame.own).unwrap_or(0);
        let followed = frames.iter().rposition(|frame| frame.followed().is_some());
        let shown = FRAMES.max(own + 2).max(followed.map_or(0, |at| at + 1));
        *more += frames.len().saturating_sub(shown) as u64;
        frames.truncate(shown);
    }
}

/// Returns the branch in a library that led to the end of a chain.
fn library_decision(entries: &[WhyEntry]) -> Option<&WhyPlace> {
    entries.iter().find_map(|entry| match entry {
        WhyEntry::End(end) => {
            let led = end.led.as_deref().map(|led| &led.place);
            led.filter(|place| place.library)
        }
        _ => None,
    })
}

/// Returns the steps of a chain in the user's own code, the latest first.
fn own_steps(entries: &[WhyEntry]) -> impl Iterator<Item = &WhyPlace> {
    let steps = entries
        .iter()
        .filter(|entry| !matches!(entry, WhyEntry::Led { .. }));
    steps.flat_map(places).filter(|place| !place.library)
}

/// Formats decisions.
fn decided(decisions: &[WhyBranch]) -> String {
    let mut text = String::new();
    if !decisions.is_empty() {
        text += "these branches caused it:\n";
    }
    for WhyBranch { place, value } in decisions {
        text += &format!("  {}", place.described());
        if !value.is_empty() {
            text += &format!(", on {value}");
        }
        if let Some(line) = &place.text {
            text += &format!("  | {line}");
        }
        text.push('\n');
    }
    text
}

/// Returns a position without its execution.
fn site(at: &str) -> &str {
    at.split_once('#').map_or(at, |(site, _)| site)
}

/// Returns the branches of the user's own code that led to the end of the run.
fn branches(entry: &WhyEntry) -> Vec<&WhyPlace> {
    let WhyEntry::Led { frames, .. } = entry else {
        return Vec::new();
    };
    let led = frames.iter().filter_map(|frame| frame.branch.as_ref());
    let places = led.map(|led| &led.branch.place);
    places.filter(|place| !place.library).collect()
}

/// Returns the places of an entry.
fn places(entry: &WhyEntry) -> Vec<&WhyPlace> {
    match entry {
        WhyEntry::Led { frames, .. } => frames.iter().map(|frame| &frame.place).collect(),
        WhyEntry::Moved { moves, .. } => moves.iter().map(|one| &one.place).collect(),
        WhyEntry::Again { back: made, .. } | WhyEntry::Made(made) => vec![&made.place],
        WhyEntry::End(end) => end.place.iter().collect(),
    }
}
