//! What writing the path costs the guest, and how fast a complete file is there.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use afterimage_record::measure::Compiled;
use afterimage_record::{Cache, GrammarSink};
use afterimage_wpp::{Limits, codec};
use anyhow::{Context, Result};
use serde::Serialize;

use super::columns::{Column, table};
use super::memory::{forget_peak, peak_mib};
use super::scheme::{BRANCHES, Prepared, SCHEMES};
use super::subject::{Settings, Subject, make_recording};
use super::{Row, name};
use crate::statistics::Sample;

/// The plain program, and the ways of writing its path beside it.
#[derive(Debug, Serialize)]
pub(crate) struct Recording {
    plain_seconds: Sample,
    plain_wall_seconds: Sample,
    plain_compile_seconds: f64,
    plain_peak_mib: f64,
    pub schemes: Vec<Written>,
    /// Time that passes with the consumer writing the words to a file, as a ratio to the plain program's.
    pub kept_wall: Sample,
    /// The guest's processor time in a recording that keeps the path for later compaction, as a ratio to the plain program's.
    pub recorded_cpu: Sample,
    /// Time that passes from the module to the finished recording, as a ratio to that of a recording without the path.
    recorded_wall: Sample,
    /// Time that passes with the consumer making a complete path in a file, as a ratio to the plain program's.
    pub live_wall: Sample,
    /// The guest's processor time of the same runs, as a ratio.
    live_cpu: Sample,
    pub live_peak_mib: f64,
}

/// One of the ways of writing a path.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    pub name: &'static str,
    pub seconds: Sample,
    /// Processor time of the guest's thread as a ratio to the plain program's, with a consumer that drops all words.
    pub cpu: Sample,
    /// Time that passes, as a ratio.
    wall: Sample,
    compile: f64,
    pub bits: u64,
    pub blocks: u64,
    /// Millions of blocks a second that one core regenerates.
    pub regenerate: f64,
}

impl Written {
    pub(crate) fn bits_per_block(&self) -> f64 {
        self.bits as f64 / self.blocks as f64
    }
}

/// Processor time and time that passed.
#[derive(Default)]
struct Times {
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Times {
    /// Measures a run; its first round fills the caches and does not count.
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
    let mut times: Vec<Times> = prepared.iter().map(|_| Times::default()).collect();
    let (mut plain_peak, mut live_peak) = (f64::NAN, f64::NAN);
    for round in 0..=runs {
        forget_peak();
        base.add(round, || Ok(plain.run(command)?.cpu_seconds))?;
        plain_peak = plain_peak.max(peak_mib());
        for (scheme, times) in prepared.iter().zip(&mut times) {
            times.add(round, || Ok(scheme.run(command, |_| {})?.cpu_seconds))?;
        }
        log.add(round, || record_run(subject, false))?;
        recorded.add(round, || record_run(subject, true))?;
        kept.add(round, || keep_words(subject, &prepared[0]))?;
        // Once is enough: it takes long, and varies little.
        if round == 1 {
            forget_peak();
            live.add(round, || write_live(subject, &prepared[0]))?;
            live_peak = live_peak.max(peak_mib());
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
        plain_peak_mib: plain_peak,
        schemes,
        kept_wall: Sample::ratios(&kept.wall, &base.wall),
        recorded_cpu: Sample::ratios(&recorded.cpu, &base.cpu),
        recorded_wall: Sample::ratios(&recorded.wall, &log.wall),
        live_wall: Sample::ratios(&live.wall, &base.wall),
        live_cpu: Sample::ratios(&live.cpu, &base.cpu),
        live_peak_mib: live_peak,
        plain_seconds: Sample::of(base.cpu),
        plain_wall_seconds: Sample::of(base.wall),
    })
}

/// Records a run, with or without its path; the compiled module comes from a cache.
fn record_run(subject: &Subject, paths: bool) -> Result<f64> {
    let folder = subject.folder.path();
    let settings = Settings {
        cache: &Cache::in_folder(&folder.join("cache")),
        paths,
        deterministic: false,
    };
    make_recording(
        &subject.bytes,
        &subject.program,
        &subject.command,
        &folder.join("timed.aft"),
        settings,
    )
}

/// Runs with a consumer that writes the words as they are; the guest's processor time.
fn keep_words(subject: &Subject, scheme: &Prepared) -> Result<f64> {
    let mut file = BufWriter::new(File::create(subject.folder.path().join("words"))?);
    let mut result = Ok(());
    let execution = scheme.run(&subject.command, |words| {
        let mut write = || {
            words
                .iter()
                .try_for_each(|w| file.write_all(&w.to_le_bytes()))
        };
        if result.is_ok() {
            result = write();
        }
    })?;
    result.and_then(|()| file.flush())?;
    Ok(execution.cpu_seconds)
}

/// Runs with a consumer that regenerates, compacts, codes and writes; the guest's processor time.
fn write_live(subject: &Subject, scheme: &Prepared) -> Result<f64> {
    let mut file = BufWriter::new(File::create(subject.folder.path().join("live"))?);
    let mut failed = None;
    let mut regenerator = scheme.regenerator(&subject.program)?;
    let mut regeneration = Ok(());
    let segment = |segment, contexts: &[_]| {
        failed = failed
            .take()
            .or(file.write_all(&codec::encode(&segment, contexts)).err());
    };
    let mut sink = GrammarSink::new(Limits::default(), segment);
    let execution = scheme.run(&subject.command, |words| {
        if regeneration.is_ok() {
            regeneration = regenerator.feed(words, &mut sink);
        }
    })?;
    regeneration?;
    sink.finish();
    match failed {
        Some(error) => Err(error).context("the live path cannot be written"),
        None => Ok(file.flush().map(|()| execution.cpu_seconds)?),
    }
}

/// How many bits a run writes in all, how many blocks they stand for, and the seconds that regenerating these takes.
fn written(subject: &Subject, scheme: &Prepared) -> Result<(u64, u64, f64)> {
    let mut words: Vec<u64> = Vec::new();
    scheme.run(&subject.command, |more| words.extend_from_slice(more))?;
    let start = Instant::now();
    let blocks = scheme.regenerate(&subject.program, &words)?;
    Ok((
        64 * words.len() as u64,
        blocks,
        start.elapsed().as_secs_f64(),
    ))
}

pub(crate) fn report(rows: &[Row]) -> String {
    let names = rows.first().map_or(Vec::new(), |row| {
        let schemes = row.recording.schemes.iter();
        schemes.map(|scheme| scheme.name).collect()
    });
    let each = |of: fn(&Written) -> Sample, what: &str| -> Vec<Column<'_, Row>> {
        let column = |(i, name): (usize, &&str)| {
            Column::cost(format!("{name}{what}"), 3, move |row: &Row| {
                of(&row.recording.schemes[i])
            })
        };
        names.iter().enumerate().map(column).collect()
    };
    let mut time = vec![Column::fact("plain s", 3, |row: &Row| {
        row.recording.plain_seconds.median
    })];
    time.extend(each(|written| written.cpu, ""));
    time.push(Column::cost("record --lens paths", 3, |row: &Row| {
        row.recording.recorded_cpu
    }));
    let mut out = table(
        "Recording: processor time of the guest's thread, as a ratio to the plain program, the words dropped; record: with the boundary's log and the words in the recording",
        rows,
        name,
        &time,
    );
    let mut wall = vec![Column::fact("plain s", 3, |row: &Row| {
        row.recording.plain_wall_seconds.median
    })];
    wall.extend(each(|written| written.wall, ""));
    wall.push(Column::cost("words in a file", 3, |row: &Row| {
        row.recording.kept_wall
    }));
    wall.push(Column::cost("record with/without", 3, |row: &Row| {
        row.recording.recorded_wall
    }));
    wall.push(Column::cost("complete file", 3, |row: &Row| {
        row.recording.live_wall
    }));
    wall.push(Column::cost("its guest's thread", 3, |row: &Row| {
        row.recording.live_cpu
    }));
    out += &table(
        "Recording: time that passes, as a ratio; words in a file: written by the consumer as they are; record: all of `record` with the path as a ratio to all of it without; complete file: regenerated, compacted, coded and written on the second core meanwhile, until all is there",
        rows,
        name,
        &wall,
    );
    let mut rest = vec![Column::fact("compile s", 2, |row: &Row| {
        row.recording.plain_compile_seconds
    })];
    for (i, name) in names.iter().enumerate() {
        rest.push(Column::cost(
            format!("{name} compile"),
            2,
            move |row: &Row| row.recording.schemes[i].compile,
        ));
    }
    for (i, name) in names.iter().enumerate() {
        rest.push(Column::cost(format!("{name} bits"), 3, move |row: &Row| {
            row.recording.schemes[i].bits_per_block()
        }));
    }
    for (i, name) in names.iter().enumerate() {
        rest.push(Column::gain(format!("{name} M/s"), 0, move |row: &Row| {
            row.recording.schemes[i].regenerate
        }));
    }
    rest.push(Column::fact("plain MiB", 0, |row: &Row| {
        row.recording.plain_peak_mib
    }));
    rest.push(Column::cost("complete file MiB", 0, |row: &Row| {
        row.recording.live_peak_mib
    }));
    out += &table(
        "Recording: compile time as a ratio to the plain program, bits written per executed block, millions of blocks a second that are regenerated from them, and the most memory of the process, with the benchmark's own",
        rows,
        name,
        &rest,
    );
    out
}

impl Recording {
    /// What the way that writes every branch's outcome writes per block, and its seconds; then those of recordings.
    fn branches_and_ours(&self) -> [(f64, f64); 2] {
        let of = |which: &str| {
            let found = self.schemes.iter().find(|scheme| scheme.name == which);
            found.map_or((f64::NAN, f64::NAN), |written| {
                (written.bits_per_block(), written.seconds.median)
            })
        };
        [of(BRANCHES), of(SCHEMES[0].name)]
    }

    /// How many times more the way that writes every branch's outcome writes than recordings do, and how many times longer it takes.
    pub(crate) fn branches_to_ours(&self) -> (f64, f64) {
        let [old, new] = self.branches_and_ours();
        (old.0 / new.0, old.1 / new.1)
    }
}

/// The 1992 paper's Table 3: every branch's outcome against what recordings write.
pub(crate) fn branches(rows: &[Row]) -> String {
    let megabytes = |row: &Row, which: usize| {
        row.recording.branches_and_ours()[which].0 * row.blocks as f64 / 8e6
    };
    let seconds = |row: &Row, which: usize| row.recording.branches_and_ours()[which].1;
    table(
        "1992, Table 3: every branch's outcome as it is taken (old) against what recordings write (new): megabytes and seconds",
        rows,
        name,
        &[
            Column::fact("old MB", 2, move |row: &Row| megabytes(row, 0)),
            Column::fact("new MB", 2, move |row: &Row| megabytes(row, 1)),
            Column::gain("old/new", 2, |row: &Row| row.recording.branches_to_ours().0),
            Column::fact("plain s", 3, |row: &Row| row.recording.plain_seconds.median),
            Column::fact("old s", 3, move |row: &Row| seconds(row, 0)),
            Column::fact("new s", 3, move |row: &Row| seconds(row, 1)),
            Column::gain("old/new", 2, |row: &Row| row.recording.branches_to_ours().1),
        ],
    )
}
