//! Decides which values to add to a recording that may already have some.

use std::sync::atomic::AtomicBool;

use afterimage_profile::Remarks;
use afterimage_replay::RecordingError;
use afterimage_replay::values::recorded_epochs;
use afterimage_replay::whole_path::coded_path;
use afterimage_wet::LeftOut;
use anyhow::{Context, Result, bail};

use crate::text::{pasted, sentence};
use crate::values::build::{Adds, KeptValues};
use crate::{Beyond, Filters, Session, SessionError};

/// Determines which values of a run the filters keep. The path must exist.
///
/// # Errors
/// Returns an error if the program has no such place, or nothing is left.
fn kept_values(session: &Session, filters: &Filters, beyond: Beyond) -> Result<KeptValues> {
    let source = session.source_map();
    let names = session.program_names();
    let positions = session.positions(names, source)?;
    let (module, length) = (session.module(), session.path()?.length());
    let time = |text: &str| Ok(positions.time(text)?);
    let kept = filters.values(names, source, module, (length, beyond), time);
    kept.with_context(|| session.at().display().to_string())
}

/// Adds the values that filters keep, for a run that has just ended. Informs the monitor if the
/// filters keep nothing.
///
/// # Errors
/// Returns an error if the run cannot be followed, or the work is cancelled.
pub fn add_first_values(
    session: &Session,
    filters: &Filters,
    stop: &AtomicBool,
) -> Result<(), SessionError> {
    session.ensure_whole_path()?;
    match kept_values(session, filters, Beyond::Cut) {
        // Another process may have asked about the run as soon as it ended, so values may already
        // exist.
        Ok(kept) if session.add_values(&kept, Adds::First, stop)? => Ok(()),
        Ok(_) => session.ensure_values(stop),
        Err(why) => {
            session.remark(format!(
                "{}; no values were added, but the path exists; to add values: afterimage build --lens full {}",
                sentence(&why),
                pasted(session.at())
            ));
            Ok(())
        }
    }
}

/// Returns the values that the filters keep but the recording lacks, and how to add them. Returns
/// `None` if the recording lacks none. With `again`, returns all values that the filters keep, and
/// does not read existing values, which may be damaged. Builds the path if it does not exist.
///
/// # Errors
/// Returns an error if the program has no such place, nothing is left, or the existing values are
/// of other functions.
pub fn missing_values(
    session: &Session,
    filters: &Filters,
    again: bool,
) -> Result<Option<(KeptValues, Adds)>> {
    let name = || session.at().display().to_string();
    if again {
        let coded = coded_path(session.file(), session.program()).with_context(name)?;
        coded.map(|path| session.use_path(path));
    }
    session.ensure_whole_path()?;
    let kept = kept_values(session, filters, Beyond::Refused)?;
    let there = match (again, session.epochs()) {
        (true, _) | (false, Err(RecordingError::NoValues)) => {
            // The index of the values shows which blocks have values.
            let known = recorded_epochs(&session.newest(), session.path()?);
            let adds = if matches!(known, Ok(Some(_))) {
                Adds::Instead
            } else {
                Adds::First
            };
            return Ok(Some((kept, adds)));
        }
        (false, found) => found.with_context(name)?,
    };
    let left_out = Vec::from_iter(there.windows().map(|index| &index.left_out));
    let is_enough = left_out.iter().all(|there| there.is_within(&kept.left_out));
    if is_enough && there.covers(kept.first, kept.last) {
        return Ok(None);
    }
    if left_out.iter().any(|there| **there != kept.left_out) {
        let lacks = |left_out: &LeftOut| {
            if left_out.is_nothing() {
                "of all functions".to_owned()
            } else {
                format!("without {}", left_out.words)
            }
        };
        bail!(
            "{}: the recording already has values {}, and these would be {}; all windows must \
             have the same functions: build the values again with --again",
            name(),
            left_out.first().map_or(String::new(), |there| lacks(there)),
            lacks(&kept.left_out)
        );
    }
    // After an interruption, values exist for the windows up to some block. The build continues
    // after this block.
    let first = there.missing_from(kept.first);
    Ok(Some((KeptValues { first, ..kept }, Adds::More)))
}
