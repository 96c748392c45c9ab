//! Analyses the streams of the trace, that is, their codecs, and the size of a sample under other
//! coders.

use std::collections::BTreeMap;
use std::io::Write;

use afterimage_baselines::ZstdSize;
use afterimage_baselines::bidirectional::select;
use afterimage_streams::{Stream, encode, explain};
use afterimage_wet::{Epochs, FileEpochs, InputForm, Part};
use anyhow::Result;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::random::Random;

/// The approximate number of numbers to sample from each class.
const NUMBERS: u64 = 500_000;
/// The largest number of stretches in a sample.
const STRETCHES: usize = 2_000;
/// The largest number of numbers in a stretch. It is twice the number of values on which the
/// paper's predictors are compared.
const STRETCH: u64 = 20_000;
/// The compression level of zstd, which is its usual strong level.
const LEVEL: i32 = 19;

/// The size of the streams of a class.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Class {
    streams: u64,
    numbers: u64,
    bytes: u64,
    /// The number of streams that equal another stream of their node and are stored as a reference.
    shared: u64,
    /// The bytes by codec.
    codecs: BTreeMap<String, u64>,
    sample: Sample,
}

/// Sizes of a sample in bytes. Our form also codes each stretch separately.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sample {
    /// The number of short streams, and of parts of long streams.
    stretches: u64,
    numbers: u64,
    ours: u64,
    /// The size under the paper's bidirectional predictors. Each stretch uses the predictor that is
    /// best on its beginning.
    bidirectional: u64,
    /// The size under zstd, in one frame, with 4 or 8 bytes per number, depending on the stretch.
    zstd: u64,
    /// The size of that frame before compression.
    plain: u64,
}

/// The classes of streams, which are labels (of reads and of far variables), values, and copies.
#[derive(Debug, Serialize)]
pub(crate) struct Tier2 {
    labels: Class,
    values: Class,
    copies: Class,
}

fn wanted(told: InputForm, class: usize) -> bool {
    match told {
        InputForm::Labels | InputForm::Far => class == 0,
        InputForm::Values => class == 1,
        InputForm::Copies => class == 2,
    }
}

pub(crate) fn measure(epochs: &FileEpochs) -> Result<Tier2> {
    Ok(Tier2 {
        labels: of_class(epochs, 0)?,
        values: of_class(epochs, 1)?,
        copies: of_class(epochs, 2)?,
    })
}

fn of_class(epochs: &FileEpochs, number: usize) -> Result<Class> {
    let mut class = Class::default();
    let mut parts: Vec<Part<'_>> = Vec::new();
    let loaded = (0..epochs.before().len()).map(|position| epochs.load(position));
    let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
    for epoch in &loaded {
        for content in epoch.contents()? {
            if wanted(content.told, number) {
                parts.extend(content.parts);
            }
        }
    }
    class.shared = parts.iter().filter(|part| part.shared).count() as u64;
    parts.retain(|part| !part.shared && part.length > 0);
    for part in &parts {
        class.streams += 1;
        class.numbers += part.length;
        class.bytes += part.bytes.len() as u64;
        for piece in explain(part.bytes, part.length)? {
            *class
                .codecs
                .entry(format!("{:?}", piece.codec))
                .or_default() += piece.bytes;
        }
    }
    class.sample = compare(&parts)?;
    Ok(class)
}

/// Compares coders on stretches that contain randomly chosen numbers, so that a stream counts in
/// proportion to its length.
fn compare(parts: &[Part<'_>]) -> Result<Sample> {
    let mut random = Random::new();
    let mut sample = Sample::default();
    let mut zstd = ZstdSize::new(LEVEL)?;
    let ends: Vec<u64> = parts
        .iter()
        .scan(0, |end, part| {
            *end += part.length;
            Some(*end)
        })
        .collect();
    let all = ends.last().copied().unwrap_or(0);
    let (mut values, mut coded) = (Vec::new(), Vec::new());
    let mut drawn = FxHashSet::default();
    for _ in 0..STRETCHES {
        if sample.numbers >= NUMBERS.min(all) {
            break;
        }
        let number = random.up_to(all) - 1;
        let stream = ends.partition_point(|&end| end <= number);
        let part = &parts[stream];
        let first = (number + part.length - ends[stream]) / STRETCH * STRETCH;
        if !drawn.insert((stream, first)) {
            continue;
        }
        values.clear();
        let stream = Stream::open(part.bytes, part.length)?;
        let mut cursor = stream.cursor();
        cursor.seek(first)?;
        while (values.len() as u64) < STRETCH
            && let Some(value) = cursor.next()?
        {
            values.push(value);
        }
        coded.clear();
        encode(&values, &mut coded);
        let narrow = values.iter().all(|&value| u32::try_from(value).is_ok());
        let width = if narrow { 4 } else { 8 };
        for value in &values {
            zstd.write_all(&value.to_le_bytes()[..width])?;
        }
        sample.stretches += 1;
        sample.numbers += values.len() as u64;
        sample.ours += coded.len() as u64;
        sample.plain += (width * values.len()) as u64;
        sample.bidirectional += select(&values).1.allocated_bits().div_ceil(8);
    }
    sample.zstd = zstd.finish()?;
    Ok(sample)
}

pub(crate) fn report(rows: &[Row]) -> String {
    type Of = fn(&Row) -> &Class;
    let mut out = String::new();
    let classes: [(&str, Of); 3] = [
        ("labels", |row| &row.tier2.labels),
        ("values", |row| &row.tier2.values),
        ("copies", |row| &row.tier2.copies),
    ];
    for (title, class) in classes {
        let share = |codec: &'static str| {
            Column::fact(format!("{codec} %"), 1, move |row: &Row| {
                let class = class(row);
                let bytes = class.codecs.get(codec).copied().unwrap_or(0);
                100.0 * bytes as f64 / class.bytes as f64
            })
        };
        let per = |title: &str, of: fn(&Sample) -> u64| {
            Column::cost(title, 2, move |row: &Row| {
                let sample = &class(row).sample;
                8.0 * of(sample) as f64 / sample.numbers as f64
            })
        };
        let than = |title: &str, of: fn(&Sample) -> u64| {
            Column::gain(title, 2, move |row: &Row| {
                let sample = &class(row).sample;
                of(sample) as f64 / sample.ours as f64
            })
        };
        out += &table(
            &format!(
                "Streams of {title}: bits per number of a sample of stretches. Our codecs and the paper's bidirectional predictors code each stretch alone; zstd -19 codes all in one frame. Then the factors by which the other two are larger and, for all streams, the share of bytes by codec"
            ),
            rows,
            name,
            &[
                Column::fact("streams", 0, move |row: &Row| class(row).streams),
                Column::fact("shared", 0, move |row: &Row| class(row).shared),
                Column::fact("Mnumbers", 2, move |row: &Row| {
                    class(row).numbers as f64 / 1e6
                }),
                Column::fact("bits", 2, move |row: &Row| {
                    8.0 * class(row).bytes as f64 / class(row).numbers as f64
                }),
                Column::fact("stretches", 0, move |row: &Row| class(row).sample.stretches),
                Column::fact("numbers", 0, move |row: &Row| class(row).sample.numbers),
                per("ours", |s| s.ours),
                per("2005", |s| s.bidirectional),
                per("zstd", |s| s.zstd),
                than("2005/ours", |s| s.bidirectional),
                than("zstd/ours", |s| s.zstd),
                share("Plain"),
                share("Runs"),
                share("Packed"),
                share("Dictionary"),
                share("Predicted"),
                share("Decimal"),
                share("Blocks"),
            ],
        );
    }
    out
}

impl Row {
    /// Returns the factor by which the paper's predictors enlarge the sample of all classes.
    pub(super) fn predictors_to_ours(&self) -> f64 {
        let tier2 = &self.tier2;
        let samples = [&tier2.labels, &tier2.values, &tier2.copies].map(|class| class.sample);
        let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>() as f64;
        sum(|s| s.bidirectional) / sum(|s| s.ours)
    }
}
