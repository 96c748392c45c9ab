//! Makes and stores the exact counts of a recording.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use afterimage_ids::Counts;
use afterimage_placement::{Mode, PlanOptions};
use afterimage_present::shell_name;
use afterimage_profile::Remarks;
use afterimage_record::{Cache, Progress, RecordedRun, check_blocks, count, progress_end};
use afterimage_trace::{TraceError, TraceFile, TraceWriter};

use crate::append::is_this_process;
use crate::cancel::cancelled;
use crate::error::Reason;
use crate::monitor::{Note, Work};
use crate::path::NEVER;
use crate::session::Session;

/// The way to count blocks. It affects only the cost of counting, never the counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting<'a> {
    /// The placement of counters.
    pub placement: CounterPlacement,
    /// An earlier recording of the same program: its file name and its contents. Its counts show
    /// where counters are cheap.
    pub weights: Option<(&'a Path, &'a TraceFile)>,
}

/// The placement of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CounterPlacement {
    /// Places the counters of each function where they are executed least.
    Quick,
    /// Places counters as the counts of an earlier run suggest.
    Feedback,
    /// Places counters for the whole program at once, which needs the fewest counters.
    #[default]
    Program,
    /// Works like `Program`, then puts a counter in every block to check the derived counts.
    Checked,
}

/// Returns the exact counts of the run. If the counts are not in the file, makes them by running
/// the program again, and stores them. Returns `None` if the end of the run is unknown.
pub(crate) fn ensure_counts(session: &Session) -> Result<Option<Counts>, Reason> {
    match session.newest().counts()? {
        Some(lens) => Ok(Some(lens.counts)),
        None => session.counts_once(|| made(session, &Counting::default())),
    }
}

/// Runs the program again to count its blocks. Stores the counts, or compares them with those in
/// the file. Returns `None` if the end of the run is unknown.
pub(crate) fn made(session: &Session, counting: &Counting<'_>) -> Result<Option<Counts>, Reason> {
    let (file, monitor) = (session.newest(), session.monitor());
    let Some(end) = file.end()? else {
        return Ok(None);
    };
    let weights = counting.weights;
    let earlier = weights.map(|weights| earlier(weights, &file)).transpose()?;
    let plan = PlanOptions {
        feedback: earlier.as_ref(),
        ..PlanOptions::new(match counting.placement {
            CounterPlacement::Quick => Mode::Quick,
            CounterPlacement::Feedback => Mode::Feedback,
            CounterPlacement::Program | CounterPlacement::Checked => Mode::Program,
        })
    };
    let (cache, events) = (Cache::of_user(), progress_end(&end));
    let cancel = session.stop_flag();
    let again = Again {
        session,
        file: &file,
        cache: &cache,
        cancel: cancel.as_deref().unwrap_or(&NEVER),
    };
    let lens = {
        let progress = monitor.begin(Work::Counts, events);
        count(&again.run(&progress), &plan).map_err(cancelled("the counts"))?
    };
    if counting.placement == CounterPlacement::Checked {
        let progress = monitor.begin(Work::Question("checking every block"), events);
        let checked = check_blocks(&again.run(&progress), &lens.counts);
        let checked = checked.map_err(cancelled("the counts"))?;
        session.remark(match checked {
            1 => "the counter of the block agrees with the derived counts".to_owned(),
            _ => format!("the counters of all {checked} blocks agree with the derived counts"),
        });
    }
    match file.counts()? {
        Some(kept) if kept.counts == lens.counts => {}
        Some(_) => return Err(Reason::CountsDiffer),
        None => {
            let kept = TraceWriter::append(session.at()).and_then(|out| {
                let bytes = file.ignored_bytes();
                if bytes > 0 {
                    monitor.note(session.at(), &Note::Removed { bytes });
                }
                out.counts(&lens)?;
                out.commit()
            });
            // While another question of the session is writing, the session keeps the counts in
            // memory.
            let is_writing =
                matches!(&kept, Err(TraceError::BeingWritten(other)) if is_this_process(other));
            if let Err(error) = kept
                && !is_writing
            {
                let why = error.to_string();
                monitor.note(session.at(), &Note::CountsNotKept { why });
            }
        }
    }
    Ok(Some(lens.counts))
}

/// A run to execute again.
struct Again<'a> {
    session: &'a Session,
    file: &'a TraceFile,
    cache: &'a Cache,
    cancel: &'a AtomicBool,
}

impl Again<'_> {
    fn run<'a>(&'a self, progress: &'a Progress) -> RecordedRun<'a> {
        RecordedRun {
            file: self.file,
            bytes: self.session.bytes(),
            program: self.session.program(),
            cache: self.cache,
            progress,
            cancel: Some(self.cancel),
        }
    }
}

/// Reads the counts of an earlier run of the same program.
fn earlier((at, file): (&Path, &TraceFile), of: &TraceFile) -> Result<Counts, Reason> {
    let failed = |why| Reason::Weights {
        at: at.to_owned(),
        why,
    };
    if file.meta()?.module_sha256 != of.meta()?.module_sha256 {
        return Err(failed("this is a recording of another program".to_owned()));
    }
    let lens = file.counts()?.ok_or_else(|| {
        failed(format!(
            "this recording has no counts yet; make them with: afterimage profile {}",
            shell_name(&at.display().to_string())
        ))
    })?;
    Ok(lens.counts)
}
