//! Where a value came from, step by step back.

mod bounds;
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

use afterimage_analyses::why::{Chain, Folder, Stream};
use afterimage_present::{WhyEntry, WhyHead};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::explain::Scene;
use crate::places::and_why_not;
use crate::text::pasted;
pub use printed::Byte;
pub use start::{Held, Start};
use tell::Teller;

/// Where did a value come from?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyQuery {
    /// The value.
    pub about: WhyAbout,
    /// At most so many moves and computations are gone back.
    pub steps: u64,
}

/// The value that is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyAbout {
    /// Of an execution of a statement: `parser.c:42#7`, `@0x1f3#last`.
    Statement {
        /// The place, and which of its executions.
        at: String,
        /// An operand of it instead of its result: `left`, `address`, or its number from 1.
        operand: Option<String>,
    },
    /// Of a variable of the source, or of an expression such as `p->next`, at a moment.
    Variable {
        /// The moment.
        at: String,
        /// The variable.
        name: String,
    },
    /// A byte that the program printed.
    Output(Byte),
    /// A byte that the program printed as an error.
    Error(Byte),
    /// What killed the program.
    Trap,
}

/// Where a value came from.
#[derive(Clone, Debug, Serialize)]
pub struct WhyReport {
    /// What was asked about.
    #[serde(flatten)]
    pub head: WhyHead,
    /// The way back, the value first.
    pub entries: Vec<WhyEntry>,
}

impl WhyQuery {
    /// The same question with the usual bound.
    pub fn new(about: WhyAbout) -> Self {
        let steps = Self::STEPS;
        Self { about, steps }
    }

    /// So many moves and computations are gone back if nothing else is asked for.
    pub const STEPS: u64 = 10_000;

    /// Finds the value.
    ///
    /// # Errors
    /// If there is none, or the recording is damaged.
    pub fn start(&self, scene: &Scene<'_, '_>) -> Result<Start> {
        let file = scene.traced.at();
        match &self.about {
            WhyAbout::Statement { at, operand } => start::find(scene, file, at, operand.as_deref()),
            WhyAbout::Variable { at, name } => {
                variable::find(scene, at, name).map_err(|error| and_why_not(error, file, at))
            }
            WhyAbout::Output(byte) => printed::find(scene, &Stream::Output, *byte),
            WhyAbout::Error(byte) => printed::find(scene, &Stream::Error, *byte),
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

/// If the end is found within so many links, it is told in the first sentence.
const SOON: u64 = 500;

/// On stretches that are built as they are needed, the way back ends where it has built more than one in so many, and a few.
const BUILT: usize = 128;
/// These few.
const FEW_BUILT: usize = 16;

/// The way back, told entry by entry.
pub struct Way<'t, 'a> {
    chain: Option<Chain<'t, 'a>>,
    folder: Option<Folder>,
    teller: Teller<'t, 'a>,
    /// How many stretches may be built in all before it ends. `None` if the values are stored.
    most_built: Option<usize>,
}

impl<'t, 'a> Way<'t, 'a> {
    /// # Errors
    /// If the recording is damaged.
    pub fn new(scene: &'t Scene<'t, 'a>, start: &Start, most: u64) -> Result<Self> {
        let from = start.held(scene)?;
        let chain = from.map(|(at, bits)| {
            let chain = Chain::new(scene.walk(), &scene.controllers, at).at_most(most);
            match bits {
                Some(bits) => chain.only(bits),
                None => chain,
            }
        });
        Ok(Self {
            folder: chain.as_ref().map(|_| Folder::new()),
            chain,
            teller: Teller::new(scene, start)?,
            most_built: scene
                .traced
                .epochs()?
                .built()
                .map(|(built, all)| built + FEW_BUILT + all / BUILT),
        })
    }

    /// Whether enough stretches were built for one answer.
    fn is_enough(&self) -> Result<bool> {
        let Some(most) = self.most_built else {
            return Ok(false);
        };
        let built = self.teller.scene.traced.epochs()?.built();
        Ok(built.is_some_and(|(built, _)| built > most))
    }

    /// How many links it has gone back.
    pub fn links(&self) -> u64 {
        self.chain.as_ref().map_or(0, Chain::links)
    }

    /// Goes on until what the first sentence says is known.
    pub fn begin(&mut self, told: &mut Vec<WhyEntry>) -> Result<()> {
        while self.links() < SOON && self.more(told)? {}
        Ok(())
    }

    /// Goes one step on, and adds what is known to be told. Whether there may be more.
    pub fn more(&mut self, told: &mut Vec<WhyEntry>) -> Result<bool> {
        let is_enough = self.is_enough()?;
        let (Some(chain), Some(folder)) = (&mut self.chain, &mut self.folder) else {
            return Ok(false);
        };
        let mut entries = Vec::new();
        let links = chain.links();
        let step = match is_enough {
            true => None,
            false => Some(chain.next()),
        };
        let traced = self.teller.scene.traced;
        let (mut over, mut last, mut is_built) = (false, None, true);
        match step {
            Some(Ok(Some(step))) => folder.push(step, &mut entries),
            Some(Ok(None)) => over = true,
            Some(Err(error)) if error.is_outside() => {
                over = true;
                last = Some(ends::outside(&error.to_string()));
            }
            Some(Err(error)) if links == 0 || !traced.needs_too_many_stretches()? => {
                return Err(error.into());
            }
            None | Some(Err(_)) => {
                over = true;
                is_built = false;
            }
        }
        if over && let Some(folder) = self.folder.take() {
            folder.finish(&mut entries);
        }
        for entry in entries {
            self.teller.tell(entry, told)?;
        }
        if over && last.is_none() && !self.teller.ended {
            let further = match is_built {
                true => "its --steps N goes further".to_owned(),
                false => format!(
                    "all of it takes every value of the run: afterimage build --lens full {}",
                    pasted(traced.at())
                ),
            };
            last = Some(self.teller.stopped(self.links(), &further)?);
        }
        told.extend(last.map(WhyEntry::End));
        Ok(!over)
    }
}
