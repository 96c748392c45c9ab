//! Measures the cost to the guest of writing the path, and the time until a complete file exists.

mod report;
mod runs;

use std::time::Instant;

use afterimage_record::measure::Compiled;
use anyhow::Result;
use serde::Serialize;

pub(crate) use self::report::{branches, report};
use self::runs::{keep_moments, keep_words, record_run, write_live, written};
use super::scheme::{BRANCHES, Prepared, SCHEMES};
use super::subject::Subject;
use crate::statistics::Sample;

/// The costs of several ways of writing a program's path, compared with the plain program.
#[derive(Debug, Serialize)]
pub(crate) struct Recording {
    plain_seconds: Sample,
    plain_wall_seconds: Sample,
    plain_compile_seconds: f64,
    pub schemes: Vec<Written>,
    /// Wall-clock time with the consumer writing the words to a file, as a ratio to the plain
    /// program's.
    pub kept_wall: Sample,
    /// Wall-clock time with the words in a file and the position of the run stored every few words,
    /// which makes the file seekable.
    pub sought_wall: Sample,
    /// The guest's processor time in a recording that keeps the path for later compaction, as a
    /// ratio to the plain program's.
    pub recorded_cpu: Sample,
    /// Wall-clock time from the module to the finished recording, as a ratio to the time of a
    /// recording without the path.
    recorded_wall: Sample,
    /// Wall-clock time with the consumer making a complete path in a file, as a ratio to the plain
    /// program's.
    pub live_wall: Sample,
    /// The guest's processor time in the runs of `live_wall`, as a ratio to the plain program's.
    live_cpu: Sample,
}

/// One of the schemes for writing a path.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    pub name: &'static str,
    pub seconds: Sample,
    /// Processor time of the guest's thread, as a ratio to the plain program's, with a consumer
    /// that drops all words.
    pub cpu: Sample,
    /// Wall-clock time of the same runs, as a ratio to the plain program's.
    wall: Sample,
    compile: f64,
    pub bits: u64,
    pub blocks: u64,
    /// Millions of blocks per second that one core regenerates.
    pub regenerate: f64,
}

impl Written {
    pub(crate) fn bits_per_block(&self) -> f64 {
        self.bits as f64 / self.blocks as f64
    }
}

/// Processor time and wall-clock time.
#[derive(Default)]
struct Times {
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Times {
    /// Measures a run. Its first round fills the caches and does not count.
    fn add(&mut self, round: usize, run: impl FnOnce() -> Result<f64>) -> Result<()> {
        let start = Instant::now();
        let cpu = run()?;
        if round > 0 {
            self.wall.push(start.elapsed().as_secs_f64());
            self.cpu.push(cpu);
        }
        Ok(())
    }
}

pub(crate) fn measure(
    subject: &Subject,
    plain: &Compiled,
    prepared: &[Prepared],
    runs: usize,
) -> Result<Recording> {
    let command = &subject.command;
    let (mut base, mut kept, mut live) = (Times::default(), Times::default(), Times::default());
    let (mut log, mut recorded) = (Times::default(), Times::default());
    let mut sought = Times::default();
    let mut times: Vec<Times> = prepared.iter().map(|_| Times::default()).collect();
    for round in 0..=runs {
        base.add(round, || Ok(plain.run(command)?.cpu_seconds))?;
        for (scheme, times) in prepared.iter().zip(&mut times) {
            times.add(round, || Ok(scheme.run(command, |_| {})?.cpu_seconds))?;
        }
        log.add(round, || record_run(subject, false))?;
        recorded.add(round, || record_run(subject, true))?;
        kept.add(round, || keep_words(subject, &prepared[0], round))?;
        sought.add(round, || keep_moments(subject, &prepared[0], round))?;
        // One run is enough, because it takes a long time and varies little.
        if round == 1 {
            live.add(round, || write_live(subject, &prepared[0]))?;
        }
    }
    let mut schemes = Vec::new();
    for (scheme, times) in prepared.iter().zip(times) {
        let (bits, blocks, seconds) = written(subject, scheme)?;
        schemes.push(Written {
            name: scheme.name,
            cpu: Sample::ratios(&times.cpu, &base.cpu),
            wall: Sample::ratios(&times.wall, &base.wall),
            seconds: Sample::of(times.cpu),
            compile: scheme.compile_seconds() / plain.compile_seconds,
            bits,
            blocks,
            regenerate: blocks as f64 / 1e6 / seconds,
        });
    }
    Ok(Recording {
        plain_compile_seconds: plain.compile_seconds,
        schemes,
        kept_wall: Sample::ratios(&kept.wall, &base.wall),
        sought_wall: Sample::ratios(&sought.wall, &base.wall),
        recorded_cpu: Sample::ratios(&recorded.cpu, &base.cpu),
        recorded_wall: Sample::ratios(&recorded.wall, &log.wall),
        live_wall: Sample::ratios(&live.wall, &base.wall),
        live_cpu: Sample::ratios(&live.cpu, &base.cpu),
        plain_seconds: Sample::of(base.cpu),
        plain_wall_seconds: Sample::of(base.wall),
    })
}

/// The cost of writing the path during the run, as ratios to the plain program.
#[derive(Debug, Serialize)]
pub(crate) struct Live {
    pub plain_seconds: Sample,
    /// Processor time of the guest, with the words dropped.
    pub dropped_cpu: Sample,
    /// Wall-clock time with the words in a file.
    pub kept_wall: Sample,
    /// Wall-clock time with the words in a file and the position of the run stored every few words,
    /// which makes the file seekable.
    pub sought_wall: Sample,
    /// Processor time of the guest in the runs of `sought_wall`.
    pub sought_cpu: Sample,
}

/// Measures the cost of writing the path by one scheme: with the words dropped, kept in a file, or
/// kept together with positions. Leaves out the other figures of [`measure`].
pub(crate) fn measure_live(
    subject: &Subject,
    plain: &Compiled,
    scheme: &Prepared,
    runs: usize,
) -> Result<Live> {
    let command = &subject.command;
    let (mut base, mut dropped) = (Times::default(), Times::default());
    let (mut kept, mut sought) = (Times::default(), Times::default());
    for round in 0..=runs {
        base.add(round, || Ok(plain.run(command)?.cpu_seconds))?;
        dropped.add(round, || Ok(scheme.run(command, |_| {})?.cpu_seconds))?;
        kept.add(round, || keep_words(subject, scheme, round))?;
        sought.add(round, || keep_moments(subject, scheme, round))?;
    }
    Ok(Live {
        dropped_cpu: Sample::ratios(&dropped.cpu, &base.cpu),
        kept_wall: Sample::ratios(&kept.wall, &base.wall),
        sought_wall: Sample::ratios(&sought.wall, &base.wall),
        sought_cpu: Sample::ratios(&sought.cpu, &base.cpu),
        plain_seconds: Sample::of(base.wall),
    })
}

impl Recording {
    /// Returns bytes per block and seconds, first for the scheme that writes every branch's
    /// outcome, then for recordings.
    fn branches_and_ours(&self) -> [(f64, f64); 2] {
        let of = |which: &str| {
            let found = self.schemes.iter().find(|scheme| scheme.name == which);
            found.map_or((f64::NAN, f64::NAN), |written| {
                (written.bits_per_block(), written.seconds.median)
            })
        };
        [of(BRANCHES), of(SCHEMES[0].name)]
    }

    /// Returns the factors by which writing every branch's outcome produces more data than
    /// recordings, and takes longer.
    pub(crate) fn branches_to_ours(&self) -> (f64, f64) {
        let [old, new] = self.branches_and_ours();
        (old.0 / new.0, old.1 / new.1)
    }
}
