//! Reads and writes simulations in a file.

use std::collections::HashSet;
use std::error::Error;

use afterimage_simulate::{Epoch, HistoryError, Misses, Spec, Summary, Tally};
use afterimage_trace::{
    Kind, SectionInfo, SectionReader, SectionWriter, TraceError, TraceFile, TraceWriter,
};

/// The reason why the simulations of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] TraceError),
    /// A simulation's history is damaged.
    #[error("{simulation}: {error}; simulate it again with --again")]
    History {
        /// The text of the simulation's specification, which also names its section.
        simulation: String,
        /// The fault in the history.
        error: HistoryError,
    },
    /// Parts of a simulation are inconsistent.
    #[error("{simulation}: {what}; simulate it again with --again")]
    Inconsistent {
        /// The text of the simulation's specification, which also names its section.
        simulation: String,
        /// The inconsistency, as a clause.
        what: &'static str,
    },
}

/// Appends simulations to a file. Epochs come first, as they are produced, and then the summaries.
pub struct SimulationWriter {
    sections: Vec<SectionWriter>,
}

impl SimulationWriter {
    /// Begins a section for each simulation.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(out: &TraceWriter, specs: &[Spec]) -> Result<Self, TraceError> {
        let begin = |spec: &Spec| out.section(Kind::SIMULATION, Some(&spec.to_string()));
        Ok(Self {
            sections: specs.iter().map(begin).collect::<Result<_, _>>()?,
        })
    }

    /// Adds an epoch, as [`simulate`](super::simulate) delivers it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn put(
        &mut self,
        simulation: usize,
        before: u64,
        epoch: &[u8],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.sections[simulation].put(before, epoch)?)
    }

    /// Ends the sections. They become part of the file with the commit.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(self, summaries: &[Summary]) -> Result<(), TraceError> {
        for (section, summary) in self.sections.into_iter().zip(summaries) {
            section.finish(summary.blocks, &summary.encode())?;
        }
        Ok(())
    }
}

/// A simulation in a file.
#[derive(Debug)]
pub struct StoredSimulation {
    file: TraceFile,
    /// The position of the simulation's section.
    position: usize,
    /// The simulation's summary. The history is read only on demand.
    pub summary: Summary,
}

/// The simulations of a file, in the order of its sections. If several simulations share a name,
/// only the last counts.
#[derive(Debug, Default)]
pub struct StoredSimulations {
    /// The simulations whose summaries are readable.
    pub sound: Vec<StoredSimulation>,
    /// The simulations whose summaries cannot be read.
    pub damaged: Vec<DamagedSimulation>,
}

/// A simulation that cannot be read.
#[derive(Debug)]
pub struct DamagedSimulation {
    /// The simulation's specification, if it can be read.
    pub spec: Option<Spec>,
    /// The reason why the simulation cannot be read.
    pub error: StoredError,
}

/// Reads the summaries of a file's simulations.
///
/// # Errors
/// Returns an error if the file's sections cannot be listed.
pub fn stored_simulations(file: &TraceFile) -> Result<StoredSimulations, TraceError> {
    let mut found = StoredSimulations::default();
    for (position, name) in named_sections(file)? {
        match StoredSimulation::open(file, position) {
            Ok(stored) => found.sound.push(stored),
            Err(error) => found.damaged.push(DamagedSimulation {
                spec: name.and_then(|name| name.parse().ok()),
                error,
            }),
        }
    }
    Ok(found)
}

/// Reads a simulation of a file. Returns `None` if there is no such simulation.
///
/// # Errors
/// Returns an error if the simulation is damaged.
pub fn stored_simulation(
    file: &TraceFile,
    spec: &Spec,
) -> Result<Option<StoredSimulation>, StoredError> {
    let name = spec.to_string();
    let sections = file.sections()?;
    let is_it = |section: &SectionInfo| {
        let kind = section.kind == Kind::SIMULATION && section.complete;
        kind && section.name.as_deref() == Some(&name)
    };
    let position = sections.iter().rposition(is_it);
    let found = position.map(|position| StoredSimulation::open(file, position));
    found.transpose()
}

/// Returns the complete sections of simulations, by position. If several simulations share a name,
/// only the last counts.
pub(super) fn simulation_sections(file: &TraceFile) -> Result<Vec<usize>, TraceError> {
    let found = named_sections(file)?.into_iter();
    Ok(found.map(|(position, _)| position).collect())
}

/// Returns the complete sections of simulations, with their names. If the first chunk of a section
/// is damaged, the section's name is doubtful. Such a section replaces no other section, but a
/// later sound section of the same name replaces it.
fn named_sections(file: &TraceFile) -> Result<Vec<(usize, Option<String>)>, TraceError> {
    let sections = file.sections()?;
    let mut taken: HashSet<String> = HashSet::new();
    let mut found = Vec::new();
    for (position, section) in sections.into_iter().enumerate().rev() {
        if section.kind != Kind::SIMULATION || !section.complete {
            continue;
        }
        let seeming = || file.seeming_name(position);
        let is_whole = section.name.is_some();
        let name = section.name.or_else(seeming);
        if name.as_ref().is_some_and(|name| taken.contains(name)) {
            continue;
        }
        if is_whole {
            taken.extend(name.clone());
        }
        found.push((position, name));
    }
    found.reverse();
    Ok(found)
}

impl StoredSimulation {
    pub(super) fn open(file: &TraceFile, position: usize) -> Result<Self, StoredError> {
        let mut reader = section(file, position)?;
        let simulation = reader.name()?.unwrap_or_default().to_owned();
        reader.go(reader.chunks().saturating_sub(1));
        reader.advance()?;
        let summary = Summary::decode(reader.bytes()).map_err(|error| StoredError::History {
            simulation: simulation.clone(),
            error,
        })?;
        if summary.spec.to_string() != simulation || reader.first() != summary.blocks {
            return Err(StoredError::Inconsistent {
                simulation,
                what: "its summary belongs to another simulation",
            });
        }
        Ok(Self {
            file: file.clone(),
            position,
            summary,
        })
    }

    /// Returns the simulation's size in the file in bytes, without the headers of chunks.
    pub fn stored_bytes(&self) -> u64 {
        self.reader().map_or(0, |section| section.stored())
    }

    pub(super) fn reader(&self) -> Result<SectionReader, StoredError> {
        section(&self.file, self.position)
    }

    /// Passes the epochs to `each` in order, each with the number of blocks executed before it.
    ///
    /// # Errors
    /// Returns an error if an epoch is damaged, or `each` fails.
    pub fn epochs<E: From<StoredError>>(
        &self,
        mut each: impl FnMut(u64, &Epoch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.reader()?;
        for _ in 1..reader.chunks() {
            reader.advance().map_err(StoredError::from)?;
            let epoch = Epoch::open(reader.bytes(), self.summary.spec.is_two());
            each(reader.first(), &epoch.map_err(|error| self.damaged(error))?)?;
        }
        Ok(())
    }

    /// Passes the misses of a site to `each`, epoch by epoch. `each` receives the number of earlier
    /// executions, the counts in the epoch, and the executions that missed, numbered from the
    /// beginning of the run. Epochs without executions of the site are skipped. Needs memory for
    /// the misses of one epoch.
    ///
    /// # Errors
    /// Returns an error if the history is damaged, or `each` fails.
    pub fn misses<E: From<StoredError>>(
        &self,
        site: usize,
        mut each: impl FnMut(u64, Tally, &Misses) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut sum, mut misses) = (Tally::default(), Misses::default());
        let inconsistent = || StoredError::Inconsistent {
            simulation: self.summary.spec.to_string(),
            what: "its history and its summary have different counts",
        };
        let expected = self.summary.sites.get(site).map(|(_, tally)| *tally);
        let expected = expected.unwrap_or_default();
        self.epochs(|_, epoch| -> Result<(), E> {
            let Some(found) = epoch.get(site as u64) else {
                return Ok(());
            };
            misses.first.clear();
            misses.last.clear();
            let before = sum.executions;
            let read = found.misses(before, &mut misses);
            read.map_err(|error| self.damaged(error))?;
            sum = sum.plus(found.tally);
            // The number in the summary bounds the number of executions, and is itself bounded.
            if sum.executions > expected.executions {
                return Err(inconsistent().into());
            }
            each(before, found.tally, &misses)
        })?;
        if sum == expected {
            Ok(())
        } else {
            Err(inconsistent().into())
        }
    }

    fn damaged(&self, error: HistoryError) -> StoredError {
        StoredError::History {
            simulation: self.summary.spec.to_string(),
            error,
        }
    }
}

fn section(file: &TraceFile, position: usize) -> Result<SectionReader, StoredError> {
    let missing = TraceError::Missing(Kind::SIMULATION);
    Ok(file.section(position).ok_or(missing)?)
}
