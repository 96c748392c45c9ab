//! The specification of a simulation, as written on a command line and in a file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{CacheSpec, LevelSpec, PredictorSpec};

/// The model to simulate, which is a branch predictor or caches. Its text has the form of the
/// command-line options, such as `--branch-predictor gshare:bits=14,history=12,targets=9` or
/// `--cache 32768,8,64 --cache2 1048576,16,64`. Parsing that text gives an equal value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Spec {
    /// A branch predictor, for branches.
    Branches(PredictorSpec),
    /// One or two cache levels, for memory accesses.
    Caches(CacheSpec),
}

/// The reason why a string is not a valid specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub(crate) String);

const PREDICTOR: &str = "--branch-predictor ";
const CACHE: &str = "--cache ";
const CACHE2: &str = " --cache2 ";

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Branches(predictor) => write!(f, "{PREDICTOR}{predictor}"),
            Spec::Caches(CacheSpec { first, second }) => {
                write!(f, "{CACHE}{first}")?;
                match second {
                    Some(second) => write!(f, "{CACHE2}{second}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl From<Spec> for String {
    fn from(spec: Spec) -> Self {
        spec.to_string()
    }
}

impl TryFrom<String> for Spec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if let Some(predictor) = text.strip_prefix(PREDICTOR) {
            return Ok(Spec::Branches(predictor.parse()?));
        }
        let Some(levels) = text.strip_prefix(CACHE) else {
            return Err(SpecError(format!(
                "{text:?} names neither a branch predictor nor a cache"
            )));
        };
        let (first, second) = match levels.split_once(CACHE2) {
            Some((first, second)) => (first, Some(second.parse::<LevelSpec>()?)),
            None => (levels, None),
        };
        Ok(Spec::Caches(CacheSpec::new(first.parse()?, second)?))
    }
}

#[cfg(test)]
mod tests {
    use super::Spec;

    #[test]
    fn texts_lead_back() {
        for text in [
            "--branch-predictor bimodal:bits=12,targets=9",
            "--branch-predictor gshare:bits=14,history=12,targets=9",
            "--branch-predictor tage:base=13,bits=10,tables=7,tag=11,min=5,max=130,targets=9",
            "--cache 32768,8,64",
            "--cache 32768,8,64 --cache2 1048576,16,64",
            "--cache 1024,full,64",
        ] {
            let spec: Spec = text.parse().expect(text);
            assert_eq!(spec.to_string(), text);
        }
        for wrong in ["", "gshare", "--cache ", "--cache 1,2", "--cache2 1k,1,64"] {
            assert!(wrong.parse::<Spec>().is_err(), "{wrong}");
        }
    }
}
