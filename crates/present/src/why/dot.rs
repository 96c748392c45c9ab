//! Writes the chain as a graph for Graphviz.

use std::fmt::Write as _;
use std::io::Write;

use super::{WhyEnd, WhyEntry, WhyMade, WhyMove, WhyPlace, expression};
use crate::number::counted;
use crate::{PresentError, grouped};

/// Writes the chain as a graph, entry by entry: each computation with its place, and arrows to the
/// values from which it was computed. The label of an arrow says how the value was moved. Operands
/// that are not followed are dashed. A loop of steps is a dotted arrow.
pub struct WhyDot<'o> {
    /// The receiver.
    pub out: &'o mut dyn Write,
    vertices: u64,
    /// The lines of the label of the next arrow.
    label: Vec<String>,
    /// The style of the next arrow.
    style: &'static str,
}

impl<'o> WhyDot<'o> {
    /// Begins the graph with a vertex for the subject.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn new(out: &'o mut dyn Write, about: &str) -> Result<Self, PresentError> {
        writeln!(out, "digraph why {{")?;
        writeln!(out, "  node [shape=box, fontname=\"monospace\"];")?;
        writeln!(out, "  n0 [label={}, penwidth=3];", quoted(&[about]))?;
        Ok(Self {
            out,
            vertices: 1,
            label: Vec::new(),
            style: "",
        })
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn entry(&mut self, entry: &WhyEntry) -> Result<(), PresentError> {
        match entry {
            WhyEntry::Led { frames, .. } => {
                let Some(branch) = frames.iter().find_map(|frame| frame.followed()) else {
                    return Ok(());
                };
                let what = format!("{} on {}", branch.place.operator, branch.value);
                self.vertex(&what, Some(&branch.place), "")?;
                Ok(())
            }
            WhyEntry::Moved { moves, more } => {
                self.moved(moves, *more);
                Ok(())
            }
            WhyEntry::Made(made) => self.made(made),
            WhyEntry::Again {
                period,
                times,
                back,
            } => {
                let steps = match period {
                    1 => "this step".to_owned(),
                    steps => format!("these {steps} steps"),
                };
                self.label
                    .push(format!("{steps} {}", counted(*times, "more time")));
                self.style = "dotted";
                self.made(back)
            }
            WhyEntry::End(end) => self.end(end),
        }
    }

    /// Ends the graph.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn finish(self) -> Result<(), PresentError> {
        writeln!(self.out, "}}")?;
        Ok(())
    }

    fn moved(&mut self, moves: &[WhyMove], more: u64) {
        for one in moves {
            self.label
                .push(format!("{} at {}", one.how, one.place.described()));
        }
        if more > 0 {
            self.label
                .push(format!("moved {}", counted(more, "more time")));
        }
    }

    fn made(&mut self, made: &WhyMade) -> Result<(), PresentError> {
        let what = format!("{} = {}", made.value, expression(made));
        let number = self.vertex(&what, Some(&made.place), "")?;
        for (k, operand) in made.operands.iter().enumerate() {
            let other = made.followed().is_some_and(|followed| followed != k);
            if operand.constant || !other {
                continue;
            }
            let label = quoted(&[&format!("{} {}", operand.role, operand.value)]);
            writeln!(self.out, "  n{number}_{k} [label={label}, style=dashed];")?;
            writeln!(self.out, "  n{number} -> n{number}_{k} [style=dashed];")?;
        }
        Ok(())
    }

    fn end(&mut self, end: &WhyEnd) -> Result<(), PresentError> {
        let mut what = end.what.clone();
        if let Some(remark) = &end.remark {
            what.push('\n');
            what.push_str(remark);
        }
        if let Some(led) = end.led.as_deref() {
            let branch = &led.place;
            let on = if led.value.is_empty() {
                String::new()
            } else {
                format!(" on {}", led.value)
            };
            let _ = write!(
                what,
                "\nled there by {} at {}{on}",
                branch.operator,
                branch.described()
            );
        }
        self.vertex(&what, end.place.as_ref(), ", shape=ellipse")?;
        Ok(())
    }

    /// Writes a vertex with an arrow from the previous vertex, and returns its number.
    fn vertex(
        &mut self,
        what: &str,
        place: Option<&WhyPlace>,
        style: &str,
    ) -> Result<u64, PresentError> {
        let number = self.vertices;
        self.vertices += 1;
        let mut lines: Vec<String> = what.lines().map(str::to_owned).collect();
        if let Some(place) = place {
            lines.push(format!("{}  t={}", place.described(), grouped(place.t)));
            lines.extend(place.text.clone());
        }
        let lines = Vec::from_iter(lines.iter().map(String::as_str));
        writeln!(self.out, "  n{number} [label={}{style}];", quoted(&lines))?;
        let label = std::mem::take(&mut self.label);
        let label = Vec::from_iter(label.iter().map(String::as_str));
        let mut drawn = Vec::new();
        if !label.is_empty() {
            drawn.push(format!("label={}", quoted(&label)));
        }
        if !self.style.is_empty() {
            drawn.push(format!("style={}", std::mem::take(&mut self.style)));
        }
        if drawn.is_empty() {
            writeln!(self.out, "  n{} -> n{number};", number - 1)?
        } else {
            let drawn = drawn.join(", ");
            writeln!(self.out, "  n{} -> n{number} [{drawn}];", number - 1)?;
        }
        Ok(number)
    }
}

/// Formats lines as a left-aligned label.
fn quoted(lines: &[&str]) -> String {
    let mut text = String::from("\"");
    for (k, line) in lines.iter().enumerate() {
        text.push_str(&crate::dot::escaped(line));
        if k > 0 || lines.len() > 1 {
            text.push_str("\\l");
        }
    }
    text.push('"');
    text
}
