//! Reports the values that loads read, in summary or completely.

use std::io::Write;

use afterimage_replay::steps::{AccessSite, Distinct, LoadValues, LoadedValues, Value};
use schemars::JsonSchema;
use serde::Serialize;
use wasmparser::ValType;

use crate::PresentError;
use crate::addresses::{Shown, exact};
use crate::document::objects::{Function, Instruction};
use crate::document::{Document, begin, row};
use crate::number::{counted, grouped};
use crate::own::left_out;
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};
use crate::value::{bits_text, type_number, type_text, value_text};

/// The magic bytes at the start of the binary form.
const MAGIC: &[u8; 8] = b"AFLOADS1";

/// Returns the next values of a load, or `None` at the end.
pub type NextLoads<'s> = dyn FnMut() -> Result<Option<LoadedValues>, PresentError> + 's;

/// Writes a summary of the values that loads read as a table. Rows are in program order. If their
/// number is limited, the most frequently executed loads come first. Returns whether the limit left
/// out any rows.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn load_values_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    loads: &[(AccessSite, LoadValues)],
    limit: Option<u64>,
) -> Result<bool, PresentError> {
    let shows = |function| scene.own.is_none_or(|own| own.shows(function));
    let shown = loads.iter().filter(|(site, _)| shows(site.function));
    let mut order = Vec::from_iter(shown);
    let others = loads.len() - order.len();
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
    if let Some(own) = scene.own {
        left_out(out, own, others as u64, "instruction")?;
    }
    Ok(order.len() > limit)
}

/// A summary of the values that loads read, in program order. Integers are compared as
/// signed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoadValuesHead {
    /// The largest count that is exact. Larger counts are `null`.
    pub bound: u64,
}

impl Document for LoadValuesHead {
    const NAME: &'static str = "load-values";
    const COMMAND: &'static str = "values --loads";
    type Row = LoadValuesRow;
}

/// A load.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoadValuesRow {
    /// The load.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The number of executions.
    pub loads: u64,
    /// The number of distinct values that the load read.
    pub values: Option<u64>,
    /// `i32`, `i64`, `f32`, `f64` or `v128`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The smallest value.
    pub smallest: LoadedValue,
    /// The largest value.
    pub largest: LoadedValue,
    /// The most frequent value, if known.
    pub most: Option<LoadedValue>,
    /// The number of times the most frequent value was read.
    pub most_times: Option<u64>,
}

/// A value that was read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoadedValue {
    /// Its bits, in hexadecimal.
    pub bits: String,
    /// Its text, for a person.
    pub text: String,
}

/// Writes the summary as lines of JSON after a head, in program order.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn load_values_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    loads: &[(AccessSite, LoadValues)],
) -> Result<(), PresentError> {
    let bound = afterimage_replay::steps::BOUND as u64;
    begin(out, &LoadValuesHead { bound })?;
    for (site, load) in loads {
        let entry = LoadValuesRow {
            instruction: Shown::at(scene, *site)?,
            loads: load.count,
            values: exact(load.values),
            kind: type_text(load.smallest.ty),
            smallest: loaded_value(load.smallest),
            largest: loaded_value(load.largest),
            most: load.most.map(|most| loaded_value(most.value)),
            most_times: load.most.map(|most| most.times),
        };
        row::<LoadValuesHead>(out, &entry)?;
    }
    Ok(())
}

fn loaded_value(value: Value) -> LoadedValue {
    LoadedValue {
        bits: bits(value),
        text: value_text(value.ty, value.bits),
    }
}

fn bits(value: Value) -> String {
    bits_text(value.ty, value.bits)
}

/// Writes all values that loads read as text: each line has an instruction and consecutive values.
/// Returns whether `limit` left out any lines.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
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
            // Omit the hexadecimal bits, except where they distinguish NaNs.
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

/// All values that loads read. The values of each load are in the order of its executions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoadedHead {}

impl Document for LoadedHead {
    const NAME: &'static str = "loaded";
    const COMMAND: &'static str = "values --loads --each";
    type Row = LoadedRow;
}

/// The values of consecutive executions of a load.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoadedRow {
    /// The function of the load.
    pub function: Function,
    /// Its offset in the original module.
    pub offset: u32,
    /// `i32`, `i64`, `f32`, `f64` or `v128`.
    #[serde(rename = "type")]
    pub kind: Option<&'static str>,
    /// The number of the execution that read the first value in `bits`, from 1.
    pub first: u64,
    /// The bits of at most 256 values, in hexadecimal.
    pub bits: Vec<String>,
}

/// Writes the values as lines of JSON after a head.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
pub fn loaded_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextLoads<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    begin(out, &LoadedHead {})?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(loaded) = next()?
    {
        room -= 1;
        let shown = Shown::of(scene, loaded.site)?;
        let values = loaded.values.iter().map(|&value| bits(value));
        let entry = LoadedRow {
            function: Function::new(scene.names, loaded.site.function),
            offset: shown.offset.0,
            kind: loaded.values.first().map(|value| type_text(value.ty)),
            first: loaded.first,
            bits: values.collect(),
        };
        row::<LoadedHead>(out, &entry)?;
    }
    Ok(())
}

/// Writes the values in the binary form that docs/TRACE.md describes.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
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
