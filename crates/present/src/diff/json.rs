//! As JSON. docs/JSON.md describes it.

use std::io::Write;

use afterimage_analyses::diff::{CallPlace, Written};
use afterimage_ids::{BlockId, FuncId};
use afterimage_replay::steps::Step;
use serde_json::{Value as Json, json};

use super::replaced::alike_json;
use super::{DiffReport, OutputPlaces, Spot, endings_json};
use crate::PresentError;
use crate::steps::{StepScene, entry};

/// Writes how two executions differ, as one object.
///
/// # Errors
/// If `out` fails or the module cannot be read.
pub fn diff_json(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport<'_>,
) -> Result<(), PresentError> {
    let scene = &scenes[0];
    let step = |scene: &StepScene<'_>, step: &Option<Step>| match step {
        Some(step) => entry(scene, step),
        None => Ok(Json::Null),
    };
    let first = match &report.first {
        None => Json::Null,
        Some(first) => json!({
            "number": first.number,
            "a": step(scene, &first.difference.a)?,
            "b": step(&scenes[1], &first.difference.b)?,
            "bytes": first.difference.bytes.as_ref().map(|bytes| json!({
                "offset": bytes.offset, "a": bytes.a, "b": bytes.b,
            })),
            "calls": calls(scene, &first.calls)?,
        }),
    };
    let block = |scene: &StepScene<'_>, block: Option<(FuncId, BlockId)>| {
        block.map(|(function, block)| {
            json!({
                "function": function.as_u32(),
                "name": scene.names.function(function),
                "block": block.as_u32(),
            })
        })
    };
    let control = match &report.parting {
        None => Json::Null,
        Some(parting) => {
            let mut decided = Vec::new();
            for (a, b) in &parting.decided {
                decided.push(json!({ "a": entry(scene, a)?, "b": entry(&scenes[1], b)? }));
            }
            json!({
                "t": parting.parting.time,
                "number": parting.number,
                "decided": decided,
                "a": block(scene, parting.parting.a),
                "b": block(&scenes[1], parting.parting.b),
                "calls": calls(scene, &parting.calls)?,
            })
        }
    };
    let mut outputs = Vec::new();
    for OutputPlaces {
        difference: output, ..
    } in &report.outputs
    {
        outputs.push(json!({
            "descriptor": output.descriptor,
            "offset": output.offset,
            "line": output.line,
            "before": output.before,
            "a": written(scene, output.a.as_ref())?,
            "b": written(&scenes[1], output.b.as_ref())?,
        }));
    }
    let files = scene.source.files();
    let lines = report.lines.as_ref().map(|lines| {
        let lines = lines.iter().map(|row| {
            json!({
                "file": files.get(row.line.file.0 as usize),
                "line": row.line.number,
                "a": row.counts[0],
                "b": row.counts[1],
            })
        });
        lines.collect::<Vec<_>>()
    });
    let whole = json!({
        "schema": "afterimage/diff/1",
        "a": { "file": report.names[0], "length": report.lengths[0] },
        "b": { "file": report.names[1], "length": report.lengths[1] },
        "alike": report.alike.as_ref().map(|alike| alike_json(scenes, alike)).transpose()?,
        "same": report.first.is_none() && report.endings.is_none(),
        "endings": endings_json(report.endings.as_ref()),
        "first": first,
        "control": control,
        "outputs": outputs,
        "lines": lines,
        "questions": report.questions(scenes)?,
    });
    writeln!(out, "{whole}")?;
    Ok(())
}

fn calls(scene: &StepScene<'_>, calls: &[CallPlace]) -> Result<Vec<Json>, PresentError> {
    let mut all = Vec::new();
    for call in calls {
        let spot = Spot::of(scene, call.function, Some(call.op))?;
        all.push(json!({
            "t": call.time,
            "function": call.function.as_u32(),
            "name": scene.names.function(call.function),
            "place": spot.place,
            "source": spot.source.map(|(file, line)| json!({ "file": file, "line": line })),
        }));
    }
    Ok(all)
}

fn written(scene: &StepScene<'_>, written: Option<&Written>) -> Result<Json, PresentError> {
    let Some(written) = written else {
        return Ok(Json::Null);
    };
    let spot = Spot::of(scene, written.function, Some(written.op))?;
    Ok(json!({
        "bytes": written.bytes,
        "t": written.time,
        "function": written.function.as_u32(),
        "name": scene.names.function(written.function),
        "place": spot.place,
    }))
}
