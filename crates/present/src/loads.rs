//! The values that loads read: summed up, and all of them.

use std::io::Write;

use afterimage_replay::steps::{AccessSite, Distinct, LoadValues, LoadedValues, Value};
use serde_json::{Value as Json, json};
use wasmparser::ValType;

use crate::PresentError;
use crate::addresses::Shown;
use crate::number::{counted, grouped};
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};
use crate::value::{bits_text, type_number, type_text, value_text};

/// The first bytes of all values in binary form.
const MAGIC: &[u8; 8] = b"AFLOADS1";

/// Gives the next values of a load; `None` at the end.
pub type NextLoads<'s> = dyn FnMut() -> Result<Option<LoadedValues>, PresentError> + 's;

/// Writes what loads read, summed up, as a table: in the order of the program, or, if only so many may be shown, those that were executed most often
/// first. Whether there are more.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn load_values_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    loads: &[(AccessSite, LoadValues)],
    limit: Option<u64>,
) -> Result<bool, PresentError> {
    let mut order = Vec::from_iter(loads);
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    if order.len() > limit {
        order.sort_by_key(|(site, load)| (std::cmp::Reverse(load.count), *site));
    }
    let mut table = Table::new(&[
        ("offset", Left),
        ("operator", Left),
        ("loads", Right),
        ("values", Right),
        ("smallest", Right),
        ("largest", Right),
        ("most often", Right),
        ("times", Right),
        ("source", Left),
        ("function", Left),
    ]);
    for (site, load) in order.iter().take(limit) {
        let shown = Shown::of(scene, *site)?;
        let text = |value: Value| value_text(value.ty, value.bits);
        let (most, times) = match load.most {
            Some(most) => (text(most.value), grouped(most.times)),
            None => ("various".to_owned(), String::new()),
        };
        let values = match load.values {
            Distinct::Exactly(count) => grouped(count),
            Distinct::MoreThan(bound) => format!("> {}", grouped(bound)),
        };
        table.row([
            shown.offset.to_string(),
            shown.name.clone(),
            grouped(load.count),
            values,
            text(load.smallest),
            text(load.largest),
            most,
            times,
            shown.line(scene),
            plain(scene.names.function(site.function)),
        ]);
    }
    table.write(out, scene.style, |_| Paint::Plain)?;
    let total: u64 = loads.iter().map(|(_, load)| load.count).sum();
    let instructions = counted(loads.len() as u64, "instruction");
    writeln!(out, "{instructions}, {}", counted(total, "load"))?;
    Ok(order.len() > limit)
}

/// The same as lines of JSON, after a head, in the order of the program.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn load_values_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    loads: &[(AccessSite, LoadValues)],
) -> Result<(), PresentError> {
    let head = json!({
        "schema": "afterimage/load-values/1",
        "bound": afterimage_replay::steps::BOUND,
    });
    writeln!(out, "{head}")?;
    for (site, load) in loads {
        let mut entry = Shown::of(scene, *site)?.json(scene, *site);
        entry["loads"] = json!(load.count);
        entry["values"] = match load.values {
            Distinct::Exactly(count) => json!(count),
            Distinct::MoreThan(_) => Json::Null,
        };
        entry["type"] = json!(type_text(load.smallest.ty));
        entry["smallest"] = told(load.smallest);
        entry["largest"] = told(load.largest);
        entry["most"] = load.most.map_or(Json::Null, |most| told(most.value));
        entry["most_times"] = json!(load.most.map(|most| most.times));
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

fn told(value: Value) -> Json {
    json!({ "bits": bits(value), "text": value_text(value.ty, value.bits) })
}

fn bits(value: Value) -> String {
    bits_text(value.ty, value.bits)
}

/// Writes all values that loads read, as text: per line an instruction, and values that it read one after the other. Whether there are more than
/// may be shown.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn loaded_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextLoads<'_>,
    limit: Option<u64>,
) -> Result<bool, PresentError> {
    let mut room = limit.unwrap_or(u64::MAX);
    while let Some(loaded) = next()? {
        if room == 0 {
            return Ok(true);
        }
        room -= 1;
        let shown = Shown::of(scene, loaded.site)?;
        let first = grouped(loaded.first);
        write!(out, "@{} {} #{first}:", shown.offset, shown.name)?;
        for value in &loaded.values {
            // Hexadecimal digits are for readers of single values, but for those that tell a NaN from others.
            let text = value_text(value.ty, value.bits);
            let (short, bits) = text.split_once(" (").unwrap_or((&text, ""));
            match short {
                "NaN" => write!(out, " NaN({bits}")?,
                _ => write!(out, " {short}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(false)
}

/// The same as lines of JSON, after a head.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn loaded_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextLoads<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    writeln!(out, "{}", json!({ "schema": "afterimage/loaded/1" }))?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(loaded) = next()?
    {
        room -= 1;
        let shown = Shown::of(scene, loaded.site)?;
        let values = loaded.values.iter().map(|&value| bits(value));
        let entry = json!({
            "function": loaded.site.function.as_u32(),
            "offset": shown.offset.0,
            "type": loaded.values.first().map(|value| type_text(value.ty)),
            "first": loaded.first,
            "values": Vec::from_iter(values),
        });
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

/// The same as bytes, which docs/TRACE.md describes.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn loaded_binary(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextLoads<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    out.write_all(MAGIC)?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(loaded) = next()?
    {
        room -= 1;
        let shown = Shown::of(scene, loaded.site)?;
        let ty = loaded.values.first().map(|value| value.ty);
        let wide = ty == Some(ValType::V128);
        let ty = ty.map_or(0, type_number);
        out.write_all(&shown.offset.0.to_le_bytes())?;
        out.write_all(&(loaded.values.len() as u16).to_le_bytes())?;
        out.write_all(&[ty, 0])?;
        out.write_all(&loaded.first.to_le_bytes())?;
        for value in &loaded.values {
            out.write_all(&value.bits.0.to_le_bytes())?;
            if wide {
                out.write_all(&value.bits.1.to_le_bytes())?;
            }
        }
    }
    Ok(())
}
