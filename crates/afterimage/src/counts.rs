//! Exact counts of a recording.

use afterimage_ids::Counts;
use afterimage_placement::{Mode, PlanOptions};
use afterimage_record::{Cache, count};
use afterimage_trace::TraceWriter;

use crate::error::Reason;
use crate::monitor::{Note, Work};
use crate::path::TELLING;
use crate::session::Session;

/// How often each block was executed: as the file has it, or else made by running the program once more, and kept. `None` if the end of the run is not known.
pub(crate) fn ensure_counts(session: &Session) -> Result<Option<Counts>, Reason> {
    let file = session.newest();
    if let Some(lens) = file.counts()? {
        return Ok(Some(lens.counts));
    }
    let Some(end) = file.end()? else {
        return Ok(None);
    };
    let plan = PlanOptions::new(Mode::Program);
    let lens = {
        let events = Some(end.events).filter(|events| *events >= TELLING);
        let progress = session.monitor().begin(Work::Counts, events);
        let cache = Cache::of_user();
        count(
            &file,
            session.bytes(),
            session.program(),
            &plan,
            &cache,
            &progress,
        )?
    };
    let kept = TraceWriter::append(session.at()).and_then(|out| {
        let bytes = file.ignored_bytes();
        if bytes > 0 {
            session
                .monitor()
                .note(session.at(), &Note::Removed { bytes });
        }
        out.counts(&lens)?;
        out.commit()
    });
    if let Err(error) = kept {
        let why = error.to_string();
        session
            .monitor()
            .note(session.at(), &Note::CountsNotKept { why });
    }
    Ok(Some(lens.counts))
}
