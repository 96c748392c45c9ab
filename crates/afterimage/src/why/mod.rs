//! Finds the origin of a value by following it back step by step.

mod bounds;
mod decisions;
mod ends;
mod led;
#[doc(hidden)]
pub mod printed;
#[doc(hidden)]
pub mod show;
mod start;
mod tell;
mod trap;
mod variable;

use std::cell::Cell;
use std::rc::Rc;

use afterimage_analyses::why::{Chain, Folder, Room, Stream};
use afterimage_present::{SEARCHED, WhyEntry, WhyHead};
use afterimage_replay::whole_path::FileSegments;
use afterimage_wet::FileEpochs;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::explain::Scene;
use crate::monitor::{Monitor, Work, begin_shares};
use crate::places::and_why_not;
use crate::text::pasted;
pub use decisions::DecisionsQuery;
pub use printed::Byte;
use printed::Whole;
pub use start::{Held, Start};
use tell::Teller;

/// Asks where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyQuery {
    /// The value to explain.
    pub about: WhyAbout,
    /// The maximum number of moves and computations to follow back.
    pub steps: u64,
    /// Whether to follow only the byte of a printed digit, not the number to which the digit
    /// belongs.
    #[serde(default)]
    pub digit: bool,
}

/// A value to explain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyAbout {
    /// An execution of a statement: `parser.c:42#7`, `@0x1f3#last`.
    Statement {
        /// The place and the execution.
        at: String,
        /// An operand to explain instead of the result: `left`, `address`, or its number from 1.
        operand: Option<String>,
    },
    /// A source variable, or an expression such as `p->next`, at a moment.
    Variable {
        /// The moment at which the variable has the value.
        at: String,
        /// The variable's name, or the expression.
        name: String,
    },
    /// A byte of standard output.
    Output(Byte),
    /// A byte of standard error.
    Error(Byte),
    /// The operator that killed the program.
    Trap,
}

/// The origin of a value.
#[derive(Clone, Debug, Serialize)]
pub struct WhyReport {
    /// The subject of the report.
    #[serde(flatten)]
    pub head: WhyHead,
    /// The chain, beginning with the value.
    pub entries: Vec<WhyEntry>,
}

impl WhyQuery {
    /// Creates a query with the default number of steps.
    pub fn new(about: WhyAbout) -> Self {
        let steps = Self::STEPS;
        Self {
            about,
            steps,
            digit: false,
        }
    }

    /// The default of `steps`.
    pub const STEPS: u64 = 10_000;

    /// Finds the value to explain.
    ///
    /// # Errors
    /// Returns an error if there is no such value, or the recording is damaged.
    pub fn start(&self, scene: &Scene<'_, '_>) -> Result<Start> {
        let file = scene.traced.at();
        let whole = if self.digit {
            Whole::Digit
        } else {
            Whole::Number
        };
        match &self.about {
            WhyAbout::Statement { at, operand } => start::find(scene, file, at, operand.as_deref()),
            WhyAbout::Variable { at, name } => {
                variable::find(scene, at, name).map_err(|error| and_why_not(error, file, at))
            }
            WhyAbout::Output(byte) => printed::find(scene, &Stream::Output, byte, whole),
            WhyAbout::Error(byte) => printed::find(scene, &Stream::Error, byte, whole),
            WhyAbout::Trap => trap::find(scene),
        }
    }

    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<WhyReport> {
        let start = self.start(scene)?;
        let mut entries = start.prelude.clone();
        let mut way = Way::new(scene, &start, self.steps)?;
        while way.more(&mut entries)? {}
        let head = start.head(scene)?;
        Ok(WhyReport { head, entries })
    }
}

/// The maximum number of links to follow in search of the end, so that the first sentence can name
/// it.
const SOON: u64 = 500;

/// The number of stretches that a chain may build in any run. In addition, it may build one of
/// every [`SHARE`] stretches of the run.
const BUILT: usize = 12;
/// The reciprocal of the share of the run's stretches that a chain may also build. See [`BUILT`].
const SHARE: usize = 1024;

/// The chain, entry by entry.
pub struct Way<'t, 'a> {
    chain: Option<Chain<'t, 'a>>,
    folder: Option<Folder>,
    teller: Teller<'t, 'a>,
    budget: Option<Rc<Budget<'a>>>,
    used: Rc<Used>,
    /// The maximum number of links.
    most: u64,
    /// The number of links that had been followed when the budget ran out.
    cut: Option<u64>,
}

/// Reports how much of its limits a chain has used: of the limit on links or on stretches,
/// whichever is closer.
struct Used {
    tell: Box<dyn Fn(f64)>,
    links: Cell<f64>,
    built: Cell<f64>,
}

impl Used {
    fn begin(monitor: &dyn Monitor) -> Self {
        let work = Work::Search("looking for causes");
        Self {
            tell: Box::new(begin_shares(monitor, work)),
            links: Cell::new(0.0),
            built: Cell::new(0.0),
        }
    }

    /// Records that `followed` of at most `most` links have been followed.
    fn links(&self, followed: u64, most: u64) {
        self.links.set(followed as f64 / most.max(1) as f64);
        self.report();
    }

    /// Records the used share of the limit on stretches.
    fn built(&self, share: f64) {
        self.built.set(share);
        self.report();
    }

    fn report(&self) {
        (self.tell)(self.links.get().max(self.built.get()));
    }
}

/// The limit on the stretches that one chain may build.
struct Budget<'a> {
    epochs: &'a FileEpochs,
    segments: &'a FileSegments,
    /// The number of stretches built before the chain began.
    before: usize,
    /// The number of built stretches at which to stop searching for operands that lead to input.
    looking: usize,
    /// The number of built stretches at which to end the chain.
    most: usize,
}

/// The factor by which the budget is larger before the first step, because a chain without steps
/// explains nothing.
const FIRST: usize = 3;

impl<'a> Budget<'a> {
    /// Creates a budget. Returns `None` if stretches are not limited.
    fn new(epochs: &'a FileEpochs, segments: &'a FileSegments) -> Option<Self> {
        let (built, all) = epochs.built()?;
        let more = BUILT + all / SHARE;
        epochs.limit(Some(built + FIRST * more));
        Some(Self {
            epochs,
            segments,
            before: built,
            looking: built + more / 2,
            most: built + more,
        })
    }

    /// Records that the first step was made.
    fn begun(&self) {
        self.epochs.limit(Some(self.most));
    }

    fn room(&self) -> Room {
        match self.epochs.built() {
            _ if self.epochs.is_over_limit() || self.segments.are_many() => Room::Nothing,
            Some((built, _)) if built >= self.looking => Room::GoingOn,
            _ => Room::Looking,
        }
    }

    /// Returns the used share of the limit on stretches.
    fn used(&self) -> f64 {
        let built = self.epochs.built().map_or(0, |(built, _)| built);
        let own = built.saturating_sub(self.before);
        own as f64 / (self.most - self.before).max(1) as f64
    }
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        self.epochs.limit(None);
    }
}

impl<'t, 'a> Way<'t, 'a> {
    /// Begins a chain.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn new(scene: &'t Scene<'t, 'a>, start: &Start, most: u64) -> Result<Self> {
        let from = start.held(scene)?;
        let traced = scene.traced;
        let segments = traced.path()?.segments();
        let budget = Budget::new(traced.epochs()?, segments).map(Rc::new);
        let used = Rc::new(Used::begin(traced.monitor()));
        let chain = from.map(|(at, bits)| {
            let chain = Chain::new(scene.walk(), &scene.controllers, at).at_most(most);
            let chain = match (budget.clone(), Rc::clone(&used)) {
                (Some(budget), used) => chain.within(move || {
                    used.built(budget.used());
                    budget.room()
                }),
                (None, _) => chain,
            };
            match bits {
                Some(bits) => chain.only(bits),
                None => chain,
            }
        });
        Ok(Self {
            folder: chain.as_ref().map(|_| Folder::new()),
            chain,
            teller: Teller::new(scene, start)?,
            budget,
            used,
            most,
            cut: None,
        })
    }

    /// Returns the number of links followed back.
    pub fn links(&self) -> u64 {
        self.chain.as_ref().map_or(0, Chain::links)
    }

    /// Continues until all facts for the first sentence are known.
    pub fn begin(&mut self, told: &mut Vec<WhyEntry>) -> Result<()> {
        while self.links() < SOON && self.more(told)? {}
        Ok(())
    }

    /// Takes one more step, and adds the entries that are complete. Returns whether there may be
    /// more entries.
    pub fn more(&mut self, told: &mut Vec<WhyEntry>) -> Result<bool> {
        let (Some(chain), Some(folder)) = (&mut self.chain, &mut self.folder) else {
            return Ok(false);
        };
        let budget = self.budget.as_ref().filter(|_| self.cut.is_none());
        if let Some(budget) = budget
            && chain.links() > 0
        {
            budget.begun();
        }
        let mut entries = Vec::new();
        let (mut over, mut last) = (false, None);
        match chain.next() {
            Ok(Some(step)) => folder.push(step, &mut entries),
            Ok(None) => over = true,
            Err(error) if error.is_outside() => {
                over = true;
                last = Some(ends::outside(&error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        self.used.links(chain.links(), self.most);
        if let Some(budget) = budget
            && budget.room() == Room::Nothing
        {
            self.cut = Some(chain.links());
            // The limit applies only to the chain. Describing its steps may need more stretches.
            budget.epochs.limit(None);
            over = true;
        }
        let searched = !chain.is_search_cut();
        if over && let Some(folder) = self.folder.take() {
            folder.finish(&mut entries);
        }
        for entry in entries {
            self.teller.tell(entry, told)?;
        }
        let file = pasted(self.teller.scene.traced.at());
        let build = || format!("first build all values: afterimage build --lens full {file}");
        if over && last.is_none() && !self.teller.ended {
            let further = match self.cut {
                None => "its --steps N goes further".to_owned(),
                Some(_) => format!("to follow it to its beginning, {}", build()),
            };
            last = Some(self.teller.stopped(self.links(), &further)?);
        }
        told.extend(last.map(WhyEntry::End));
        if over && !searched {
            let what = format!(
                "only part of the run was searched for an operand that leads to input, so \
                 another operand may be the better one; to search all of it, {}",
                build()
            );
            told.push(WhyEntry::End(ends::none(SEARCHED, what)));
        }
        Ok(!over)
    }
}
