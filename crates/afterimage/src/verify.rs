//! Verifies a recording: checks every byte and every invariant, and repeats the run.

use std::path::Path;
use std::sync::Arc;

use afterimage_analyses::simulate::{Followed, verify_followed, verify_simulations};
use afterimage_analyses::slices::verify_slices;
use afterimage_placement::{Mode, PlanOptions, block_counts};
use afterimage_present::counted;
use afterimage_present::verify::{
    VerifiedPath, VerifiedSimulation, VerifiedSlice, VerifiedValues, VerifyReport,
};
use afterimage_program::Module;
use afterimage_record::{
    Cache, CheckedWords, Progress, RecordError, RecordedRun, check, count, progress_end,
    verify_words,
};
use afterimage_replay::values::{recorded_epochs, verify_values};
use afterimage_replay::whole_path::{recorded_directory, recorded_path, verify_path};
use afterimage_trace::{Existing, Kind as Section, Rule, TraceError, TraceFile, repair};
use anyhow::{Context, Result};

use crate::early::verify_snapshots;
use crate::files;
use crate::filters::said;
use crate::monitor::{Monitor, Work};
use crate::path::NEVER;
use crate::source::source_map;

/// Whether to execute and follow the run again, to check that it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execute {
    /// Execute the run again.
    Again,
    /// Only read the file.
    Not,
}

/// Copies all intact parts of a recording to another file. Returns sentences about the lost parts.
///
/// # Errors
/// Returns an error if the program or the description of the run is lost, or if the copy already
/// exists or cannot be written.
pub fn repaired(from: &Path, to: &Path) -> Result<Vec<String>> {
    files::open(from)?;
    let found = repair(from, to, Existing::Kept).map_err(|error| {
        let place = match error {
            TraceError::Exists => to,
            _ => from,
        };
        anyhow::Error::new(error).context(place.display().to_string())
    })?;
    let (from, to) = (from.display(), to.display());
    let lost = found.lost.iter().map(|lost| {
        let which = match &lost.name {
            Some(name) => format!("{} {name:?}", lost.kind),
            None => lost.kind.to_string(),
        };
        let kept = match lost.kept {
            0 => "left out".into(),
            kept => format!("cut off after {}", counted(kept as u64, "chunk")),
        };
        format!("{from}: section {which} is {kept}: {}", lost.why)
    });
    let mut remarks = Vec::from_iter(lost);
    if found.unread > 0 {
        let bytes = counted(found.unread, "unreadable byte");
        remarks.push(format!("{from}: the copy leaves out {bytes} at its end"));
    }
    let whole = counted(found.whole, "section");
    remarks.push(format!("{to} contains {whole} unchanged"));
    Ok(remarks)
}

/// Verifies a recording. `module` supplies the program. It is not called if the file itself is
/// damaged.
///
/// # Errors
/// Returns an error if the program cannot be read or cannot be executed on this machine.
pub fn verify(
    at: &Path,
    file: &TraceFile,
    module: impl FnOnce() -> Result<Arc<Module>>,
    execute: Execute,
    monitor: &dyn Monitor,
) -> Result<VerifyReport> {
    let found = file.verify();
    // In a recording that was cut off, the log and the path that the run wrote lack their last
    // chunk.
    let torn = |rule| !found.ended && rule == Rule::Complete;
    let findings = found.findings.iter().filter(|one| !torn(one.rule));
    let mut report = VerifyReport {
        sound: false,
        bytes: found.bytes,
        chunks: found.chunks,
        sections: found.sections,
        events: found.events,
        ended: found.ended,
        ignored_bytes: file.ignored_bytes(),
        interrupted: file.is_interrupted(),
        path: None,
        moments: None,
        values: None,
        simulations: None,
        slices: None,
        not_followed: None,
        repeats: None,
        obstacle: None,
        findings: findings.map(ToString::to_string).collect(),
    };
    if report.findings.is_empty() {
        let module = module()?;
        let checker = Checker {
            at,
            file,
            module: &module,
            shared: &module,
            monitor,
        };
        checker.stored(&mut report)?;
        if let Err(error @ TraceError::WithoutInputs) = file.log() {
            report.obstacle = Some(error.to_string());
        } else if execute == Execute::Again {
            if report.findings.is_empty() {
                checker.followed(&mut report);
            }
            checker.executed(&mut report)?;
        }
    }
    report.sound = report.findings.is_empty();
    Ok(report)
}

/// Checks a recording whose file is sound.
struct Checker<'c> {
    at: &'c Path,
    file: &'c TraceFile,
    module: &'c Module,
    shared: &'c Arc<Module>,
    monitor: &'c dyn Monitor,
}

impl Checker<'_> {
    /// Checks the stored counts and path against each other and against the program.
    fn stored(&self, report: &mut VerifyReport) -> Result<()> {
        let &Self { file, module, .. } = self;
        let counts = file.counts().with_context(|| self.name())?;
        if let Some(lens) = counts
            && let Err(error) = block_counts(&module.program, &lens.counts)
        {
            report.findings.push(format!("Conservation: {error}"));
        }
        if let Some(found) = verify_path(file, &module.program, &module.bytes) {
            let findings = found.findings.iter().map(ToString::to_string);
            report.findings.extend(findings);
            report.path = Some(VerifiedPath {
                segments: found.segments,
                nodes: found.nodes,
                blocks: found.blocks,
                left_out: found.left_out,
                counts: found.counts,
                end: found.end,
            });
        }
        if report.findings.is_empty() {
            report.findings.extend(self.left_out());
            report.findings.extend(along_no_path(file));
        }
        match verify_words(file, &module.program, &module.bytes) {
            Ok(Some(CheckedWords {
                moments,
                bits,
                repeated,
            })) => {
                report.moments = (!repeated).then_some(moments);
                let directory = recorded_directory(file).ok().flatten();
                let differs = |bits_of: u64| !repeated && bits_of != bits;
                if let Some(directory) = directory.filter(|directory| differs(directory.bits)) {
                    report.findings.push(format!(
                        "Path: it comes from {} recorded bits, not from the {bits} that the run \
                         wrote",
                        directory.bits
                    ));
                }
            }
            Ok(None) => {}
            Err(error) => report.findings.push(format!("Words: {error}")),
        }
        Ok(())
    }

    /// Checks the data that was made along the path, by following the run again.
    fn followed(&self, report: &mut VerifyReport) {
        let &Self { file, module, .. } = self;
        let (program, bytes) = (&module.program, module.bytes.as_slice());
        let blocks = report.path.as_ref().map(|path| path.blocks);
        let begin = |doing| self.monitor.begin(Work::Question(doing), blocks);
        let progress = begin("following the values");
        let found = verify_values(file, program, bytes, |time| progress(time));
        drop(progress);
        if let Some(found) = found {
            report.findings.extend(found.findings);
            let windows = found.windows.iter().map(|window| VerifiedValues {
                statements: window.statements,
                first: window.first,
                last: window.last,
            });
            report.values = Some(windows.collect());
        }
        let progress = begin("simulating");
        let found = verify_simulations(file, program, bytes, &*progress);
        drop(progress);
        if let Some(found) = found {
            report.findings.extend(found.findings);
            let rows = found.simulations.into_iter();
            let rows = rows.map(|(simulation, executions)| VerifiedSimulation {
                simulation,
                executions,
            });
            report.simulations = Some(rows.collect());
        }
        let progress = begin("following to the snapshots");
        let found = verify_snapshots(self.at, file, self.shared, &*progress);
        drop(progress);
        let found = found.unwrap_or_else(|error| Some(format!("{error:#}")));
        let found = found.map(|wrong| format!("Snapshots: {wrong}"));
        report.findings.extend(found);
        let progress = begin("slicing");
        let found = verify_slices(file, program, bytes, &*progress);
        drop(progress);
        if let Some(found) = found {
            report.findings.extend(found.findings);
            let rows = found.slices.into_iter();
            let rows = rows.map(|(slice, executions)| VerifiedSlice { slice, executions });
            report.slices = Some(rows.collect());
        }
        if report.values.is_some() || report.simulations.is_some() {
            return;
        }
        let progress = begin("following the path");
        match verify_followed(file, program, bytes, &*progress) {
            Some(Followed::Wrong(error)) => report.findings.push(format!("Path: {error}")),
            Some(Followed::Refused(why)) => report.not_followed = Some(why),
            Some(Followed::Whole) | None => {}
        }
    }

    /// Checks the whole run by executing it again.
    fn executed(&self, report: &mut VerifyReport) -> Result<()> {
        if !report.ended {
            return Ok(());
        }
        let outcome = {
            let progress = self.executing("re-executing")?;
            check(&self.run(&Cache::of_user(), &progress))
        };
        match outcome {
            Ok(()) => {
                report.repeats = Some(true);
                report.findings.extend(self.recounted()?);
            }
            Err(error @ RecordError::NoClock(_)) => report.obstacle = Some(error.to_string()),
            // These errors are about this machine, not about the recording.
            Err(
                error @ (RecordError::Engine(_)
                | RecordError::Compile(_)
                | RecordError::Instantiate(_)
                | RecordError::Thread(_)
                | RecordError::NoBacktrace),
            ) => return Err(anyhow::Error::new(error).context(self.name())),
            Err(error) => {
                report.repeats = Some(false);
                report.findings.push(format!("Repetition: {error}"));
            }
        }
        Ok(())
    }

    fn run<'a>(&'a self, cache: &'a Cache, progress: &'a Progress) -> RecordedRun<'a> {
        RecordedRun {
            file: self.file,
            bytes: &self.module.bytes,
            program: &self.module.program,
            cache,
            progress,
            cancel: Some(&NEVER),
        }
    }

    fn name(&self) -> String {
        self.at.display().to_string()
    }

    /// Begins to report the progress of an execution. The returned callback receives the progress.
    fn executing(&self, doing: &'static str) -> Result<Progress> {
        let total = self.file.end()?.and_then(|end| progress_end(&end));
        Ok(self.monitor.begin(Work::Question(doing), total))
    }

    /// Checks the descriptions of the functions that are missing from the path and the values.
    /// Returns the first fault, if there is one.
    fn left_out(&self) -> Option<String> {
        let &Self { file, module, .. } = self;
        let source = source_map(self.at, module, self.monitor);
        let names = module.names(&source);
        let path = recorded_path(file, &module.program).ok()??;
        let words = &path.segments().directory().left_out;
        let wrong = |what: &str, words: &str| {
            Some(format!(
                "Words: {what} should lack {words}, but lacks other functions"
            ))
        };
        let nodes = path.nodes().values();
        let mut there = nodes
            .filter(|node| node.left_out == 0)
            .map(|node| node.function);
        match said(&names, words) {
            Some(said) if !there.any(&said) => {}
            _ => return wrong("the path", words),
        }
        // Another check follows the values and reports faults in them.
        let epochs = recorded_epochs(file, &path).ok()??;
        for index in epochs.windows() {
            let words = &index.left_out.words;
            let all = module.program.functions.iter().map(|function| function.id);
            let same =
                |said: &dyn Fn(_) -> bool| all.clone().all(|f| said(f) == index.left_out.has(f));
            match said(&names, words) {
                Some(said) if same(&said) => {}
                _ => return wrong("a window of values", words),
            }
        }
        None
    }

    /// Counts again, and returns the fault in the stored counts, if there is one.
    fn recounted(&self) -> Result<Option<String>> {
        let file = self.file;
        let name = || self.name();
        let Some(kept) = file.counts().with_context(name)? else {
            return Ok(None);
        };
        let mode = match kept.mode.as_str() {
            "quick" => Mode::Quick,
            _ => Mode::Program,
        };
        let progress = self.executing("counting")?;
        let again = count(
            &self.run(&Cache::of_user(), &progress),
            &PlanOptions::new(mode),
        );
        drop(progress);
        Ok(match again {
            Ok(again) if again.counts != kept.counts => {
                Some("Counts: they differ from those of running the recording again".into())
            }
            // With the same plan, the costs must be the same, too.
            Ok(again) if again.mode == kept.mode && again != kept => {
                Some("Counts: the numbers of counters and increments differ from the plan's".into())
            }
            Ok(_) => None,
            Err(error) => Some(format!("Counts: {error}")),
        })
    }
}

/// Reports data that cannot be checked, because the path along which it was made is not in the
/// file.
fn along_no_path(file: &TraceFile) -> Option<String> {
    let made = [
        Section::VALUES_INDEX,
        Section::CHECKPOINTS,
        Section::PRINTED,
        Section::SIMULATION,
        Section::SLICE,
        Section::PATH_GRAMMARS,
    ];
    let has_path = file.last(Section::PATH_INDEX).is_some();
    let found = made.into_iter().find(|kind| file.last(*kind).is_some());
    found.filter(|_| !has_path).map(|kind| {
        format!("Path: the file has a section {kind}, but not the path that it was made with")
    })
}
