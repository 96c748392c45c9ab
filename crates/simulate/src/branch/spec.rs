//! The kind and size of a branch predictor, and its text form.

use std::fmt;
use std::str::FromStr;

use super::tage::{self, TageSpec};
use crate::size::number;
use crate::spec::SpecError;

/// A branch predictor and its size. It is written as `bimodal`, `gshare:bits=14,history=12` or
/// `tage:tables=7,max=130`. Missing options have defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictorSpec {
    /// The prediction method and its table sizes.
    pub kind: PredictorKind,
    /// Log2 of the number of remembered targets of indirect branches.
    pub targets: u32,
}

/// The method that predicts directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictorKind {
    /// One two-bit counter per branch.
    Bimodal {
        /// Log2 of the number of counters.
        bits: u32,
    },
    /// One two-bit counter per pair of branch and history.
    Gshare {
        /// Log2 of the number of counters.
        bits: u32,
        /// The number of outcomes of the global history to use. At most `bits`.
        history: u32,
    },
    /// Tagged tables with geometrically growing history lengths.
    Tage(TageSpec),
}

/// The largest permitted log2 of a table size.
pub(super) const MOST_BITS: u32 = 24;

/// An option: its name, its current value and its permitted range.
type Known<'s> = (&'static str, &'s mut u32, std::ops::RangeInclusive<u32>);

impl FromStr for PredictorSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = PredictorSpec {
            kind: match name.trim() {
                "bimodal" => PredictorKind::Bimodal { bits: 12 },
                "gshare" => PredictorKind::Gshare {
                    bits: 14,
                    history: 12,
                },
                "tage" => PredictorKind::Tage(TageSpec::default()),
                other => {
                    return Err(SpecError(format!(
                        "there is no branch predictor {other:?}: choose bimodal, gshare or tage"
                    )));
                }
            },
            targets: 9,
        };
        for option in options.split(',').filter(|_| !options.is_empty()) {
            spec.set(name.trim(), option)?;
        }
        match spec.kind {
            PredictorKind::Gshare { bits, history } if history > bits => {
                return Err(SpecError(format!(
                    "gshare's history of {history} does not fit into an index of {bits} bits; write history={bits} or less, or more bits"
                )));
            }
            PredictorKind::Tage(spec) => spec.check()?,
            _ => {}
        }
        Ok(spec)
    }
}

impl PredictorSpec {
    fn set(&mut self, name: &str, option: &str) -> Result<(), SpecError> {
        let powers = 1..=MOST_BITS;
        let mut known: Vec<Known<'_>> = match &mut self.kind {
            PredictorKind::Bimodal { bits } => vec![("bits", bits, powers.clone())],
            PredictorKind::Gshare { bits, history } => vec![
                ("bits", bits, powers.clone()),
                ("history", history, 0..=MOST_BITS),
            ],
            PredictorKind::Tage(tage) => vec![
                ("base", &mut tage.base, powers.clone()),
                ("bits", &mut tage.bits, 1..=20),
                ("tables", &mut tage.tables, 1..=tage::MOST_TABLES),
                ("tag", &mut tage.tag, 4..=16),
                ("min", &mut tage.min, 1..=tage::LONGEST),
                ("max", &mut tage.max, 1..=tage::LONGEST),
            ],
        };
        known.push(("targets", &mut self.targets, 1..=16));
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let key = key.trim();
        let Some((_, place, range)) = known.iter_mut().find(|(known, ..)| *known == key) else {
            let known = Vec::from_iter(known.iter().map(|(known, ..)| *known));
            return Err(SpecError(format!(
                "{name} has no option {key:?}; it has {}",
                known.join(", ")
            )));
        };
        let value = number(value).and_then(|value| u32::try_from(value).ok());
        **place = value.filter(|value| range.contains(value)).ok_or_else(|| {
            let (first, last) = (range.start(), range.end());
            SpecError(format!(
                "{name}:{option}: {key} must be a number from {first} to {last}"
            ))
        })?;
        Ok(())
    }
}

impl fmt::Display for PredictorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            PredictorKind::Bimodal { bits } => write!(f, "bimodal:bits={bits}")?,
            PredictorKind::Gshare { bits, history } => {
                write!(f, "gshare:bits={bits},history={history}")?;
            }
            PredictorKind::Tage(TageSpec {
                base,
                bits,
                tables,
                tag,
                min,
                max,
            }) => write!(
                f,
                "tage:base={base},bits={bits},tables={tables},tag={tag},min={min},max={max}"
            )?,
        }
        write!(f, ",targets={}", self.targets)
    }
}

#[cfg(test)]
mod tests {
    use super::PredictorSpec;

    fn error(text: &str) -> String {
        text.parse::<PredictorSpec>().expect_err(text).to_string()
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let text = |text: &str| text.parse::<PredictorSpec>().expect(text).to_string();
        assert_eq!(text("bimodal"), "bimodal:bits=12,targets=9");
        assert_eq!(
            text("gshare:history=8"),
            "gshare:bits=14,history=8,targets=9"
        );
        assert_eq!(
            text("tage:tables=4,max=80,targets=11"),
            "tage:base=13,bits=10,tables=4,tag=11,min=5,max=80,targets=11"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(error("perceptron").contains("bimodal, gshare or tage"));
        assert!(error("gshare:size=3").contains("bits, history, targets"));
        assert!(error("gshare:bits=25").contains("from 1 to 24"));
        assert!(error("gshare:bits=many").contains("from 1 to 24"));
        assert!(error("gshare:bits=8,history=9").contains("history=8 or less"));
        assert!(error("tage:min=20,max=20").contains("max"));
        assert!(error("gshare:,").contains("no option"));
    }
}
