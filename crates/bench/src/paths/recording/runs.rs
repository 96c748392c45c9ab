//! Runs a program with each of the consumers that the benchmark compares.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use afterimage_record::{Cache, GrammarSink};
use afterimage_wpp::{Limits, codec};
use anyhow::{Context, Result};

use crate::paths::scheme::Prepared;
use crate::paths::subject::{Settings, Subject, make_recording};

/// Records a run, with or without its path. The compiled module comes from a cache. Returns the
/// guest's processor time.
pub(super) fn record_run(subject: &Subject, paths: bool) -> Result<f64> {
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

/// Runs with a consumer that writes the words unchanged into a new file. Returns the guest's
/// processor time.
pub(super) fn keep_words(subject: &Subject, scheme: &Prepared, round: usize) -> Result<f64> {
    let mut file = File::create_new(subject.folder.path().join(format!("words{round}")))?;
    let mut result = Ok(());
    let mut bytes = Vec::new();
    let execution = scheme.run(&subject.command, |words| {
        bytes.clear();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        if result.is_ok() {
            result = file.write_all(&bytes);
        }
    })?;
    result?;
    Ok(execution.cpu_seconds)
}

/// The number of words between two moments, as in recordings.
const MOMENT: usize = 1 << 14;

/// Runs with a consumer that writes the words to a new file, with the position of the run every few
/// words, which makes the file seekable.
pub(super) fn keep_moments(subject: &Subject, scheme: &Prepared, round: usize) -> Result<f64> {
    let mut file = File::create_new(subject.folder.path().join(format!("moments{round}")))?;
    let mut counter = scheme.counter(&subject.program)?;
    let mut bytes = Vec::new();
    let mut write = |words: &[u64]| -> Result<()> {
        for words in words.chunks(MOMENT) {
            bytes.clear();
            let waypoint = counter.waypoint()?;
            let numbers = waypoint.numbers().iter().chain(words);
            bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
            file.write_all(&bytes)?;
            counter.feed(words)?;
        }
        Ok(())
    };
    let mut result = Ok(());
    let execution = scheme.run(&subject.command, |words| {
        if result.is_ok() {
            result = write(words);
        }
    })?;
    result?;
    Ok(execution.cpu_seconds)
}

/// Runs with a consumer that regenerates, compacts, codes and writes the path. Returns the guest's
/// processor time.
pub(super) fn write_live(subject: &Subject, scheme: &Prepared) -> Result<f64> {
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

/// Returns the number of bits that a run writes, the number of blocks that they represent, and the
/// seconds to regenerate these blocks.
pub(super) fn written(subject: &Subject, scheme: &Prepared) -> Result<(u64, u64, f64)> {
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
