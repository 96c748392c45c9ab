//! Counts the dependences that need no label, by reason, and the dependences that need a label. The
//! reasons are the optimisations of section 3 of Zhang and Gupta 2005, as far as they apply here.

use afterimage_streams::Stream;
use afterimage_wet::{Content, Epochs, FileEpochs, Index, InputForm, Origin, Part, Role};
use anyhow::{Result, ensure};
use serde::Serialize;

use super::observed::Observed;
use super::variables::Uses;
use super::{Row, name};
use crate::paths::columns::{Column, table};

/// The largest size of a stream that is a single rule for all of its numbers.
const RULE: usize = 8;

/// The number of dependences in a group, and the bytes that their labels take.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Group {
    pub count: u64,
    pub bytes: u64,
}

impl Group {
    fn add(&mut self, part: &Part<'_>) {
        self.count += part.length;
        if !part.shared {
            self.bytes += part.bytes.len() as u64;
        }
    }
}

/// The numbers of dependences, by the fact that determines them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Dependences {
    /// Operands that are results of the same block (OPT-1a).
    in_block: u64,
    /// Operands that are results of another block of the node (OPT-2b).
    in_node: u64,
    /// Variables that are already an operand of the node (OPT-2a).
    again: u64,
    /// The first use of a variable as an operand.
    variables: Uses,
    /// Explicitly stored definitions of variables. A distant definition is stored where it changes.
    far: Group,
    /// Reads of data that the same execution of the node wrote, without exception in the epoch
    /// (OPT-1b).
    same: Group,
    /// Reads of unwritten data, without exception in the epoch.
    initial: Group,
    /// Reads with one rule for the whole epoch. The writer is always the same, at a fixed distance
    /// or execution by execution.
    rule: Group,
    /// Reads with the same labels as another read of the node (OPT-3).
    shared: Group,
    /// Reads that each have a label.
    explicit: Group,
    /// The part of the labels that selects one of several writers.
    choices: u64,
    /// Runs of elements that memory copies read.
    copies: Group,
    /// The number of statements. Each depends on one predicate or call, which follows from the
    /// path.
    control: u64,
    /// The number of blocks, which is the number of control dependences if each block counts as
    /// one.
    control_blocks: u64,
}

impl Dependences {
    /// Returns the number of data dependences.
    pub(crate) fn data(&self) -> u64 {
        self.registers() + self.memory()
    }

    /// Returns the number of register operands that depend on something.
    fn registers(&self) -> u64 {
        let v = &self.variables;
        let variables = v.path + v.far + v.arguments + v.results + v.host + v.caught;
        self.in_block + self.in_node + self.again + variables
    }

    /// Returns the number of parts read from memory and globals.
    fn memory(&self) -> u64 {
        let groups = [self.same, self.initial, self.rule, self.shared];
        let known: u64 = groups.iter().map(|group| group.count).sum();
        known + self.explicit.count + self.copies.count
    }

    /// Returns the number of dependences with a separate label.
    pub(crate) fn explicit(&self) -> u64 {
        self.far.count + self.explicit.count + self.copies.count
    }

    pub(crate) fn control(&self, by_block: bool) -> u64 {
        if by_block {
            self.control_blocks
        } else {
            self.control
        }
    }

    fn label(&mut self, content: &Content<'_>) -> Result<()> {
        let choice = content.parts.iter().find(|part| part.role == Role::Choice);
        let pieces = || {
            content
                .parts
                .iter()
                .filter(|part| part.role != Role::Choice)
        };
        if let Some(choice) = choice {
            let known = choice.shared && pieces().all(|part| part.shared);
            let group = if known {
                &mut self.shared
            } else {
                &mut self.explicit
            };
            pieces().for_each(|part| group.add(part));
            if !choice.shared {
                self.explicit.bytes += choice.bytes.len() as u64;
                self.choices += choice.bytes.len() as u64;
            }
            return Ok(());
        }
        let pattern = content.patterns.first().into_iter().flatten();
        for (part, piece) in pieces().zip(pattern) {
            let group = if piece.origin == Origin::Initial {
                &mut self.initial
            } else if part.bytes.len() > RULE {
                if part.shared {
                    &mut self.shared
                } else {
                    &mut self.explicit
                }
            } else if part.role == Role::Ages && all_zero(part)? {
                &mut self.same
            } else {
                &mut self.rule
            };
            group.add(part);
        }
        Ok(())
    }
}

fn all_zero(part: &Part<'_>) -> Result<bool> {
    let stream = Stream::open(part.bytes, part.length)?;
    let mut cursor = stream.cursor();
    while let Some(value) = cursor.next()? {
        if value != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts the dependences of the whole trace.
pub(crate) fn measure(
    epochs: &FileEpochs,
    observed: &Observed,
    totals: &super::facts::Totals,
    index: &Index,
) -> Result<Dependences> {
    let mut all = Dependences {
        in_block: totals.in_block,
        in_node: totals.in_node,
        again: totals.again,
        variables: observed.uses,
        far: Group {
            count: index.sizes.far.1,
            bytes: index.sizes.far.0,
        },
        control: totals.statements,
        control_blocks: totals.blocks,
        ..Dependences::default()
    };
    let mut labelled = 0;
    for position in 0..epochs.before().len() {
        for content in epochs.load(position)?.contents()? {
            match content.told {
                InputForm::Labels => {
                    labelled += content.count;
                    all.label(&content)?;
                }
                InputForm::Copies => all.copies.count += content.count,
                InputForm::Far | InputForm::Values => {}
            }
        }
    }
    ensure!(
        labelled == totals.reads,
        "{labelled} reads have labels, {} were executed",
        totals.reads
    );
    all.copies.bytes = index.sizes.copies.0;
    Ok(all)
}

pub(crate) fn report(rows: &[Row]) -> String {
    let share = |title: &str, of: fn(&Dependences) -> u64| {
        Column::fact(title, 2, move |row: &Row| {
            let all = row.dependences.data() + row.dependences.control(false);
            100.0 * of(&row.dependences) as f64 / all as f64
        })
    };
    let mut out = table(
        "Dependences that need no label, in percent of all dependences, data and control (one control dependence per statement): all control dependences, which the path gives; operands that are results of the same block (OPT-1a) or of the same node (OPT-2b), and variables already used in the node (OPT-2a); variables found through the path up to 64 nodes back, further back, through calls and returns, or in the log",
        rows,
        name,
        &[
            share("control", |d| d.control),
            share("OPT-1a", |d| d.in_block),
            share("OPT-2b", |d| d.in_node),
            share("OPT-2a", |d| d.again),
            share("path", |d| d.variables.path),
            share("far", |d| d.variables.far),
            share("arguments", |d| d.variables.arguments),
            share("results", |d| d.variables.results),
            share("host", |d| d.variables.host + d.variables.caught),
        ],
    );
    out += &table(
        "The other dependences, in percent of all: reads that throughout an epoch take data written by the same execution of the node (OPT-1b), reads of data that nobody wrote, reads with one rule for an epoch, reads with another read's labels (OPT-3), and explicit dependences: labels of reads, far variables where they change, runs of copies. The last columns: explicit dependences in percent of all, and of data dependences",
        rows,
        name,
        &[
            share("OPT-1b", |d| d.same.count),
            share("initial", |d| d.initial.count),
            share("rule", |d| d.rule.count),
            share("OPT-3", |d| d.shared.count),
            share("labels", |d| d.explicit.count),
            share("far", |d| d.far.count),
            share("copies", |d| d.copies.count),
            Column::cost("explicit", 3, |row: &Row| 100.0 * row.explicit_share(true)),
            Column::cost("of data", 3, |row: &Row| 100.0 * row.explicit_share(false)),
        ],
    );
    let bytes = |title: &str, of: fn(&Dependences) -> u64| {
        Column::fact(title, 4, move |row: &Row| {
            of(&row.dependences) as f64 / row.statements()
        })
    };
    out += &table(
        "Bytes of the streams of these dependences per statement; choices: the part of labels that selects one of several writers",
        rows,
        name,
        &[
            bytes("OPT-1b", |d| d.same.bytes),
            bytes("initial", |d| d.initial.bytes),
            bytes("rule", |d| d.rule.bytes),
            bytes("OPT-3", |d| d.shared.bytes),
            bytes("labels", |d| d.explicit.bytes),
            bytes("choices", |d| d.choices),
            bytes("far", |d| d.far.bytes),
            bytes("copies", |d| d.copies.bytes),
            Column::cost("bits a label", 2, |row: &Row| {
                let explicit = &row.dependences.explicit;
                8.0 * explicit.bytes as f64 / explicit.count as f64
            }),
        ],
    );
    out
}

impl Row {
    /// Returns the share of explicit dependences among all, or among data dependences.
    pub(super) fn explicit_share(&self, with_control: bool) -> f64 {
        let d = &self.dependences;
        let control = if with_control { d.control(false) } else { 0 };
        d.explicit() as f64 / (d.data() + control) as f64
    }
}
