//! Writes stacks for speedscope, in its own file format.

use std::collections::HashMap;
use std::io::Write;

use afterimage_replay::whole_path::ContextTree;
use serde::Serialize;

use super::Frames;
use super::stacks::each_stack;
use crate::PresentError;

/// A file in speedscope's format.
#[derive(Serialize)]
struct File<'f> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'f str,
    exporter: &'static str,
    shared: Shared,
    profiles: [Samples<'f>; 1],
}

#[derive(Default, Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Stacks with weights.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples<'f> {
    r#type: &'static str,
    name: &'f str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes each stack in which blocks are executed, with the number of these blocks. `run` names the
/// run.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn speedscope(
    out: &mut dyn Write,
    tree: &ContextTree,
    frames: &Frames<'_>,
    run: &str,
) -> Result<(), PresentError> {
    let mut shared = Shared::default();
    let mut known: HashMap<String, usize> = HashMap::new();
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    each_stack(tree, frames, |stack, blocks| {
        let ids = stack.iter().map(|frame| {
            // Functions with the same name stay separate.
            let key = format!("{:?} {}", frame.frame, frame.name);
            *known.entry(key).or_insert_with(|| {
                let declared = frame.frame.and_then(|frame| frames.declared(frame));
                shared.frames.push(Frame {
                    name: frame.name.to_owned(),
                    file: declared.map(|at| frames.source.line(at).path),
                    line: declared.map(|at| at.line),
                });
                shared.frames.len() - 1
            })
        });
        samples.push(ids.collect());
        weights.push(blocks);
        Ok(())
    })?;
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: run,
        exporter: "afterimage",
        shared,
        profiles: [Samples {
            r#type: "sampled",
            name: run,
            unit: "none",
            start_value: 0,
            end_value: weights.iter().sum(),
            samples,
            weights,
        }],
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)?;
    Ok(())
}
