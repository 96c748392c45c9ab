//! Measures the sizes of the parts of a recording.

use afterimage_present::info::{InfoClass, InfoOriginal, InfoSection, InfoStreams, InfoWindow};
use afterimage_replay::values::{ControlOf, Original, RecordedValues};
use afterimage_replay::whole_path::RecordedPath;
use afterimage_trace::{Kind, SectionInfo, TraceFile};
use afterimage_wet::FileEpochs;
use anyhow::Result;

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the sizes of the streams in a file.
pub(super) fn streams(
    file: &TraceFile,
    path: &RecordedPath,
    epochs: &FileEpochs,
    values: &RecordedValues<'_>,
    in_use: &InUse<'_>,
) -> Result<InfoStreams> {
    let all = file.sections()?;
    let stored = |position: usize| all.get(position).map_or(0, |found| found.stored);
    // This size excludes the overhead that the file adds to each chunk.
    let payload = |position: usize| file.section(position).map_or(0, |found| found.stored());
    let last = |kind: Kind| {
        let is_it = |section: &SectionInfo| section.kind == kind && section.complete;
        all.iter().rposition(is_it)
    };
    let mut sum = afterimage_wet::Sizes::default();
    let mut statements = 0;
    for index in epochs.windows() {
        let one = index.sizes;
        for (sum, one) in [
            (&mut sum.labels, one.labels),
            (&mut sum.far, one.far),
            (&mut sum.values, one.values),
            (&mut sum.copies, one.copies),
        ] {
            sum.0 += one.0;
            sum.1 += one.1;
        }
        sum.directory += one.directory;
        statements += index.statements;
    }
    let told = sum.labels.0 + sum.far.0 + sum.values.0 + sum.copies.0 + sum.directory;
    let path_sections = [last(Kind::PATHS), last(Kind::PATH_INDEX)];
    let path_sections = Vec::from_iter(path_sections.into_iter().flatten());
    let log_section = last(Kind::LOG);
    let grammars = Vec::from_iter(in_use.grammars);
    let printed = Vec::from_iter(last(Kind::PRINTED));
    let checkpoints = in_use.checkpoints.as_deref().unwrap_or_default();
    let of_values = epochs
        .sections()
        .flat_map(|(values, index)| [values, index]);
    let used = of_values.chain(path_sections.iter().copied());
    let used = used.chain(log_section).chain(grammars.iter().copied());
    let used = used.chain(checkpoints.iter().copied());
    let used = used.chain(printed.iter().copied());
    let used: u64 = used.map(stored).sum();
    let bytes_of = |sections: &[usize]| sections.iter().copied().map(payload).sum::<u64>();
    let (path_bytes, log) = (bytes_of(&path_sections), log_section.map_or(0, payload));
    let (of_checkpoints, of_grammars) = (bytes_of(checkpoints), bytes_of(&grammars));
    let of_printed = bytes_of(&printed);
    let beside = of_grammars + of_checkpoints + of_printed;
    let windows = epochs.windows().map(|index| (index.first, index.length));
    let windows = Vec::from_iter(windows);
    let is_whole = windows == [(1, path.length())];
    let original = if epochs.windows().any(|index| !index.left_out.is_nothing()) {
        // The size of the functions left out is unknown.
        None
    } else if is_whole {
        Some(Original::of(values)?)
    } else {
        Some(Original::of_windows(values, &windows)?)
    };
    // Data about the whole run counts in proportion to the part's share of the blocks.
    let part = match &original {
        Some(original) if !is_whole => original.blocks as f64 / path.length().max(1) as f64,
        _ => 1.0,
    };
    let labels = |count: u64| Some(count.saturating_mul(Original::LABEL));
    let words = |count: u64| Some(count.saturating_mul(Original::WORD));
    let of = |bytes: fn(&Original) -> u64| original.as_ref().map(bytes);
    let classes = vec![
        InfoClass::new("timestamps", of(Original::of_times)).whole(
            "the path",
            original.and_then(|original| words(original.nodes)),
            path_bytes,
            part,
        ),
        InfoClass::new("values", of(Original::of_values))
            .part("kept values", words(sum.values.1), signed(sum.values.0))
            .whole("data from the host (the log)", None, log, part),
        InfoClass::new(
            "dependences",
            of(|original| original.of_dependences(ControlOf::Statements)),
        )
        .part(
            "writers of the data that is read",
            labels(sum.labels.1),
            signed(sum.labels.0),
        )
        .part(
            "early writers of variables",
            labels(sum.far.1),
            signed(sum.far.0),
        )
        .part(
            "runs of bytes that were copied",
            labels(sum.copies.1),
            signed(sum.copies.0),
        )
        .part("directories", None, signed(sum.directory)),
        // Each chunk is packed as a whole, so what packing saves cannot be divided among its parts.
        InfoClass::new("chunk overhead, minus the savings from packing", None).part(
            "frame",
            None,
            signed(used) - signed(told + path_bytes + log + beside),
        ),
        InfoClass::new("the opened path", None).whole("grammars", None, of_grammars, part),
        InfoClass::new("checkpoints", None).part("checkpoints", None, signed(of_checkpoints)),
        InfoClass::new("printed output", None).whole("printed", None, of_printed, part),
    ];
    let stored_bytes = classes.iter().map(InfoClass::stored).sum::<i64>();
    let counted = classes.iter().map(InfoClass::counted).sum::<i64>();
    let factor = |bytes: f64| bytes / counted.max(1) as f64;
    Ok(InfoStreams {
        statements,
        classes,
        stored_bytes,
        counted,
        bytes_per_statement: (statements > 0).then(|| counted as f64 / statements as f64),
        of_part: (part < 1.0).then_some(part),
        original: original.map(|original| InfoOriginal {
            bytes: original.bytes(ControlOf::Statements),
            factor: factor(original.bytes(ControlOf::Statements) as f64),
            factor_by_block: factor(original.bytes(ControlOf::Blocks) as f64),
            factor_by_table: factor(InfoOriginal::TABLE_I * statements as f64),
        }),
    })
}

/// Returns the role of a section. Of several sections with the same role, only the last one counts.
fn role(section: &SectionInfo) -> (Kind, Option<String>) {
    match section.kind {
        kind @ (Kind::SIMULATION | Kind::SLICE) => (kind, section.name.clone()),
        kind => (kind, None),
    }
}

/// The sections in use, for kinds where the last section is not always the one in use.
pub(super) struct InUse<'a> {
    /// The values.
    pub(super) epochs: Option<&'a FileEpochs>,
    /// The section with the path's opened grammars.
    pub(super) grammars: Option<usize>,
    /// The sections with checkpoints, if readable.
    pub(super) checkpoints: Option<Vec<usize>>,
}

/// Returns the sections of a file.
pub(super) fn sections(file: &TraceFile, in_use: &InUse<'_>) -> Result<Vec<InfoSection>> {
    let epochs = in_use.epochs;
    let sections = file.sections()?;
    let mut windows = vec![None; sections.len()];
    if let Some(epochs) = epochs {
        for (index, (values, of_index)) in epochs.windows().zip(epochs.sections()) {
            windows[values] = Some((index.first, index.length));
            windows[of_index] = windows[values];
        }
    }
    let mut last = std::collections::HashMap::new();
    for (position, section) in sections.iter().enumerate() {
        last.insert(role(section), position);
    }
    let rows = sections.iter().enumerate().map(|(position, section)| {
        let replaced = match section.kind {
            Kind::VALUES | Kind::VALUES_INDEX => epochs.is_some() && windows[position].is_none(),
            // Several sections of this kind are in use, one for each window.
            Kind::CHECKPOINTS => {
                let own = in_use.checkpoints.as_ref();
                own.is_some_and(|own| !own.contains(&position))
            }
            Kind::PATH_GRAMMARS => in_use.grammars != Some(position),
            _ => last.get(&role(section)) != Some(&position),
        };
        InfoSection {
            kind: section.kind.to_string(),
            name: section.name.clone(),
            window: windows[position].map(|(first, last)| InfoWindow { first, last }),
            replaced,
            stored_bytes: section.stored,
            raw_bytes: section.raw,
            chunks: section.chunks,
        }
    });
    Ok(rows.collect())
}
