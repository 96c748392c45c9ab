//! Writes the chain as a table: a row for each move, value, branch and end.

use std::io::Write;

use super::{WhyEntry, WhyHow, WhyMade, WhyPlace, expression};
use crate::PresentError;
use crate::csv::{Csv, known};
use crate::number::counted;

/// Writes the chain as comma-separated values, entry by entry.
pub struct WhyCsv<'o>(Csv<'o>);

impl<'o> WhyCsv<'o> {
    /// Begins the table.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn new(out: &'o mut dyn Write) -> Result<Self, PresentError> {
        let header = "step,what,value,times,function,name,file,line,column,operator,at,t";
        Ok(Self(Csv::new(out, header)?))
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn entry(&mut self, entry: &WhyEntry) -> Result<(), PresentError> {
        match entry {
            WhyEntry::Led { frames, more } => {
                for frame in frames {
                    self.row("open", "", "", 1, Some(&frame.place))?;
                    if let Some(led) = &frame.branch {
                        let branch = &led.branch;
                        self.row("branch", "", &branch.value, 1, Some(&branch.place))?;
                    }
                }
                self.more("open", *more)
            }
            WhyEntry::Moved { moves, more } => {
                for one in moves {
                    self.row(&one.how, &one.what, &one.value, 1, Some(&one.place))?;
                }
                self.more("moved", *more)
            }
            WhyEntry::Made(made) => self.made(made, 1),
            WhyEntry::Again {
                period,
                times,
                back,
            } => {
                let steps = counted(*period as u64, "step");
                self.row("again", &steps, "", *times, None)?;
                self.made(back, 1)
            }
            WhyEntry::End(end) => {
                let place = end.place.as_ref().or(end.read.as_ref());
                self.row(end.kind, &end.what, "", 1, place)
            }
        }
    }

    /// Ends the table.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn finish(self) -> Result<(), PresentError> {
        self.0.finish()
    }

    fn made(&mut self, made: &WhyMade, times: u64) -> Result<(), PresentError> {
        let step = match made.step {
            WhyHow::Computed => "computed",
            WhyHow::LookedUp => "looked up",
        };
        self.row(
            step,
            &expression(made),
            &made.value,
            times,
            Some(&made.place),
        )
    }

    /// Writes a row for items that are not listed one by one.
    fn more(&mut self, step: &str, more: u64) -> Result<(), PresentError> {
        if more > 0 {
            self.row(step, "more", "", more, None)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        step: &str,
        what: &str,
        value: &str,
        times: u64,
        place: Option<&WhyPlace>,
    ) -> Result<(), PresentError> {
        let source = place.and_then(|place| place.source.as_ref());
        self.0.row(&[
            &step,
            &what,
            &value,
            &times,
            &known(place.map(|place| place.function.index)),
            &known(place.map(|place| &place.function.name)),
            &known(source.map(|source| &source.path)),
            &known(source.map(|source| source.line)),
            &known(
                source
                    .map(|source| source.column)
                    .filter(|column| *column > 0),
            ),
            &known(place.map(|place| &place.operator)),
            &known(place.map(|place| &place.at)),
            &known(place.map(|place| place.t)),
        ])
    }
}
