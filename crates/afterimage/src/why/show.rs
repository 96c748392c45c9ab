//! Shows the chain while it is being found, because its subject is known long before its origin.

use std::collections::VecDeque;
use std::io::Write;

use afterimage_present::document::row;
use afterimage_present::{
    LeftOut, Style, WhyCsv, WhyDot, WhyEntry, WhyHead, WhyText, grouped, shell_word, why_head,
    why_origin, wrapped,
};
use anyhow::Result;

use super::{Start, Way, WhyAbout, WhyQuery};
use crate::explain::Scene;
use crate::text::pasted;

/// The form in which to show the chain.
#[derive(Clone, Copy)]
pub enum Form<'t> {
    /// Text for people, in this style.
    Text(Rest<'t>, Style),
    /// JSON for programs. docs/JSON.md describes the document.
    Json,
    /// CSV for tables.
    Csv,
    /// DOT for Graphviz.
    Dot,
}

/// Whether to show the middle of a long chain.
#[derive(Clone, Copy)]
pub enum Rest<'t> {
    /// Show the middle.
    Shown,
    /// Hide the middle, and tell the user how to see it.
    Hidden(&'t str),
}

impl Start {
    /// Writes the origin of the value, and at most `steps` steps to it, each as soon as it is
    /// found. Text names the origin first, so it waits for the first 500 steps.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged, or `out` fails.
    pub fn show(
        &self,
        out: &mut dyn Write,
        scene: &Scene<'_, '_>,
        steps: u64,
        form: Form<'_>,
    ) -> Result<()> {
        match form {
            Form::Text(rest, style) => text(out, scene, self, steps, (rest, style)),
            Form::Dot => {
                let mut graph = WhyDot::new(out, self.about())?;
                self.each(scene, steps, |entry| Ok(graph.entry(&entry)?))?;
                Ok(graph.finish()?)
            }
            Form::Csv => {
                let mut table = WhyCsv::new(out)?;
                self.each(scene, steps, |entry| Ok(table.entry(&entry)?))?;
                Ok(table.finish()?)
            }
            Form::Json => {
                why_head(out, &self.head(scene)?)?;
                out.flush()?;
                self.each(scene, steps, |entry| {
                    row::<WhyHead>(out, &entry)?;
                    Ok(out.flush()?)
                })
            }
        }
    }

    /// Describes the subject.
    pub(super) fn head(&self, scene: &Scene<'_, '_>) -> Result<WhyHead> {
        let place = self.place(scene)?;
        let place = place.map(|spot| scene.place(spot)).transpose()?;
        Ok(WhyHead {
            about: self.about().to_owned(),
            value: self.value.clone(),
            at: place.map(|place| place.at),
            death: self.death.clone(),
            written: self.written.map(Into::into),
            in_line: self.in_line.clone(),
        })
    }

    /// Passes the entries to `show`, one at a time.
    fn each(
        &self,
        scene: &Scene<'_, '_>,
        steps: u64,
        mut show: impl FnMut(WhyEntry) -> Result<()>,
    ) -> Result<()> {
        let mut way = Way::new(scene, self, steps)?;
        let mut begun = self.prelude.clone();
        loop {
            for entry in begun.drain(..) {
                show(entry)?;
            }
            if !way.more(&mut begun)? && begun.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Writes the origin of the value of a statement, of one of its operands, or of a variable. If the
/// chain is long, the text says how to see all of it.
///
/// # Errors
/// Returns an error if there is no such value, the recording is damaged, or `out` fails.
pub fn chain(
    out: &mut dyn Write,
    scene: &Scene<'_, '_>,
    at: &str,
    (name, operand): (Option<&str>, Option<&str>),
) -> Result<()> {
    let query = WhyQuery::new(match name {
        Some(name) => WhyAbout::Variable {
            at: at.to_owned(),
            name: name.to_owned(),
        },
        None => WhyAbout::Statement {
            at: at.to_owned(),
            operand: operand.map(str::to_owned),
        },
    });
    let start = query.start(scene)?;
    let about = match (name, operand) {
        (Some(name), _) => format!(" --var {}", shell_word(name)),
        (_, Some(operand)) => format!(" --operand {}", shell_word(operand)),
        _ => String::new(),
    };
    let more = format!(
        "see them with afterimage why {} --at {}{about} --all",
        pasted(scene.traced.at()),
        shell_word(at)
    );
    start.show(
        out,
        scene,
        query.steps,
        Form::Text(Rest::Hidden(&more), Style::default()),
    )
}

fn text(
    out: &mut dyn Write,
    scene: &Scene<'_, '_>,
    start: &Start,
    steps: u64,
    (rest, style): (Rest<'_>, Style),
) -> Result<()> {
    let width = style.width;
    // Write the subject first, because it is known long before the origin.
    match &start.death {
        Some(death) => {
            writeln!(out, "{}", style.heading(&death.text(), 2))?;
            writeln!(out, "{}", wrapped(&start.what, width, 2))?;
        }
        None => writeln!(out, "{}", style.heading(&start.what, 2))?,
    }
    out.flush()?;
    let mut way = Way::new(scene, start, steps)?;
    let mut begun = start.prelude.clone();
    way.begin(&mut begun)?;
    if start.from.is_some() {
        let origin = why_origin(&begun, way.links());
        writeln!(out, "{}", wrapped(&origin, width, 2))?;
    }
    let mut text = WhyText {
        out,
        file: pasted(scene.traced.at()),
        shown: None,
        width,
    };
    if let Some(in_line) = &start.in_line {
        text.in_line(in_line)?;
    }
    // If the run ended in a library, also show a few steps of the check that ended it.
    let check = if start.death.is_some() { CHECK } else { 0 };
    let mut shown = Shown::new(rest, check);
    loop {
        for entry in begun.drain(..) {
            shown.next(&mut text, entry)?;
        }
        text.out.flush()?;
        if !way.more(&mut begun)? && begun.is_empty() {
            break;
        }
    }
    shown.finish(&mut text)
}

/// The parts of a long chain that are shown: its beginning and its end.
struct Shown<'t> {
    /// The number of further entries that may be shown as soon as they are found.
    left: usize,
    /// The last entries. Each comes with the library steps that were left out before it.
    last: VecDeque<(LeftOut, WhyEntry)>,
    /// The number of entries that are not shown.
    between: u64,
    /// The library steps that were left out after the last entry.
    folded: LeftOut,
    /// The number of further library steps to show at the beginning, plus 1.
    check: usize,
    /// The text that says how to see the rest.
    more: &'t str,
}

/// The number of entries to show at the beginning of the chain, unless it is short.
const FIRST: usize = 40;
/// One more than the number of library steps to show for a check that ended the run.
const CHECK: usize = 5;
/// The number of entries to show at the end of the chain.
const LAST: usize = 12;

impl<'t> Shown<'t> {
    fn new(rest: Rest<'t>, check: usize) -> Self {
        let (left, more) = match rest {
            Rest::Shown => (usize::MAX, ""),
            Rest::Hidden(more) => (FIRST, more),
        };
        Self {
            left,
            last: VecDeque::new(),
            between: 0,
            folded: LeftOut::default(),
            check,
            more,
        }
    }

    fn next(&mut self, text: &mut WhyText<'_>, entry: WhyEntry) -> Result<()> {
        let folds = WhyText::folds(&entry);
        self.check = match &entry {
            WhyEntry::Led { .. } => self.check,
            _ if folds => self.check.saturating_sub(1),
            _ => 0,
        };
        if folds && self.check == 0 {
            self.folded.add(&entry);
            return Ok(());
        }
        if WhyText::hides(&entry) {
            return Ok(());
        }
        let folded = std::mem::take(&mut self.folded);
        if self.left > 0 {
            self.left -= 1;
            text.left_out(&folded)?;
            return Ok(text.entry(&entry)?);
        }
        self.last.push_back((folded, entry));
        if self.last.len() > LAST {
            self.last.pop_front();
            self.between += 1;
        }
        Ok(())
    }

    fn finish(self, text: &mut WhyText<'_>) -> Result<()> {
        if self.between > 0 {
            let between = grouped(self.between);
            writeln!(
                text.out,
                "  … {between} more lines like these: {}",
                self.more
            )?;
        }
        for (folded, entry) in self.last {
            text.left_out(&folded)?;
            text.entry(&entry)?;
        }
        Ok(text.left_out(&self.folded)?)
    }
}
