//! The nearest lines that an execution depends on: slices of growing depth, each line with the
//! depth at which it came in.

use std::collections::BTreeSet;

use afterimage_analyses::slices::{SliceAbout, SliceAlong, SliceQuery};
use afterimage_present::document::objects::Position;
use afterimage_replay::steps::Operators;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::made::made;
use crate::explain::Scene;

/// Which lines of the user's own code are nearest to an execution, among those that it depends on?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearQuery {
    /// The execution: `parser.c:42#7`, `@0x1f3#last`.
    pub at: String,
    /// The number of lines that is enough. Half of them are searched for along data only:
    /// dependences of branches soon reach every function.
    pub enough: usize,
}

/// A line that something depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearLine {
    /// Which.
    pub source: Position,
    /// The distance is at most this many dependences.
    pub within: u8,
}

/// The distances searched until there are enough lines.
const DISTANCES: [u8; 6] = [4, 8, 13, 20, 32, 60];
/// The largest slice, in executions, for which the next larger one is made; otherwise it would take
/// too long.
const LARGE: u64 = 700;

impl NearQuery {
    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<Vec<NearLine>> {
        let session = scene.traced;
        let operators = Operators::new(session.program(), session.bytes(), scene.source());
        let (mut found, mut known) = (Vec::new(), BTreeSet::new());
        for (along, enough) in [
            (SliceAlong::Data, self.enough / 2),
            (SliceAlong::All, self.enough),
        ] {
            for within in DISTANCES {
                let query = SliceQuery {
                    depth: Some(within),
                    along,
                    ..SliceQuery::new(SliceAbout::Statement {
                        at: self.at.clone(),
                    })
                };
                let (saved, _) = made(scene, &query, None)?;
                let mut lines = BTreeSet::new();
                for &(function, op) in saved.slice.operators.keys() {
                    let operator = operators.get(function, op)?;
                    if let Some(at) = operator.and_then(|found| found.position) {
                        let path = &scene.source().files()[at.file.0 as usize];
                        lines.insert((path.as_str(), at.line));
                    }
                }
                for (file, line) in lines {
                    let is_wanted = session.code().shows(file) && found.len() < enough;
                    if is_wanted && known.insert((file.to_owned(), line)) {
                        let source = Position::line(file, line);
                        found.push(NearLine { source, within });
                    }
                }
                if saved.slice.executions() > LARGE || found.len() >= enough {
                    break;
                }
            }
        }
        Ok(found)
    }
}
