//! Rules about the contents of sections, and their agreement with each other.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};

use afterimage_ids::ImportId;
use sha2::{Digest, Sha256};

use super::{Report, Rule};
use crate::{CountsLens, End, Ending, Event, HostStop, RawValue, Standing, TraceFile};

pub(super) fn verify(file: &TraceFile, report: &mut Report) {
    let meta = report.check(file.meta());
    let module = report.check(file.module());
    if let (Some(meta), Some(module)) = (meta, module)
        && meta.module_sha256 != <[u8; 32]>::from(Sha256::digest(&module))
    {
        report.find(
            Rule::ModuleDigest,
            "MODULE is not the module that META names",
        );
    }
    let log = log(file, report);
    let end = report.check(file.end()).flatten();
    report.ended = end.is_some();
    if let (Some(end), Some(log)) = (&end, &log) {
        self::end(end, log, report);
    }
    report.check(file.sources());
    if let Some(counts) = report.check(file.counts()).flatten() {
        open(&counts, end.as_ref(), report);
    }
}

/// Totals of the log.
#[derive(Default)]
struct Log {
    events: u64,
    /// The number of calls to each import.
    calls: BTreeMap<ImportId, u64>,
    /// The number of calls into the guest that have not returned.
    depth: u64,
    /// The host call that did not return.
    stop: Option<HostStop>,
}

type Types = Vec<Discriminant<RawValue>>;

fn types(values: &[RawValue]) -> Types {
    values
        .iter()
        .map(discriminant)
        .map(null_is_a_reference)
        .collect()
}

/// Gives null references the type of other references, because a reference has the same type
/// whether or not it is null.
fn null_is_a_reference(ty: Discriminant<RawValue>) -> Discriminant<RawValue> {
    if ty == discriminant(&RawValue::NullRef) {
        discriminant(&RawValue::OpaqueRef)
    } else {
        ty
    }
}

/// Reads the log to its end. Returns `None` if it cannot be read.
fn log(file: &TraceFile, report: &mut Report) -> Option<Log> {
    let mut log = Log::default();
    let mut arguments: HashMap<ImportId, Types> = HashMap::new();
    let mut results: HashMap<ImportId, Types> = HashMap::new();
    let mut agree =
        |report: &mut Report, number, import: ImportId, args: &[_], res: Option<&[_]>| {
            let same = *arguments.entry(import).or_insert_with(|| types(args)) == types(args)
                && res.is_none_or(|res| {
                    *results.entry(import).or_insert_with(|| types(res)) == types(res)
                });
            if !same {
                let text = format!(
                    "event {number} calls {import} with values whose types differ from before"
                );
                report.find(Rule::Signatures, text);
            }
        };
    for event in report.check(file.log())? {
        let number = log.events;
        let event = report.check(event)?;
        if log.stop.is_some() {
            report.find(
                Rule::Nesting,
                format!("event {number} follows a call that did not return"),
            );
        }
        match event {
            Event::Enter { .. } => log.depth += 1,
            Event::Leave { .. } if log.depth == 0 => {
                report.find(
                    Rule::Nesting,
                    format!("event {number} returns from no call"),
                );
            }
            Event::Leave { .. } => log.depth -= 1,
            Event::HostCall {
                import,
                args,
                results,
                ..
            } => {
                *log.calls.entry(import).or_default() += 1;
                agree(report, number, import, &args, Some(&results));
            }
            Event::HostStop {
                import,
                args,
                outcome,
                ..
            } => {
                *log.calls.entry(import).or_default() += 1;
                agree(report, number, import, &args, None);
                log.stop = Some(outcome);
            }
            Event::MemoryGrow { .. } | Event::TableGrow { .. } => {}
        }
        log.events += 1;
        report.events = log.events;
    }
    Some(log)
}

fn end(end: &End, log: &Log, report: &mut Report) {
    if end.events != log.events {
        let text = format!(
            "END counts {} events, but LOG contains {}",
            end.events, log.events
        );
        report.find(Rule::EventCounts, text);
    }
    let told = end.host_call_counts.iter().enumerate();
    let told = told.map(|(i, &calls)| (ImportId::from_u32(i as u32), calls));
    for (import, calls) in told {
        let found = log.calls.get(&import).copied().unwrap_or_default();
        if calls != found {
            let text = format!("END counts {calls} calls to {import}, but LOG contains {found}");
            report.find(Rule::EventCounts, text);
        }
    }
    for import in log.calls.keys() {
        if import.as_u32() as usize >= end.host_call_counts.len() {
            report.find(
                Rule::EventCounts,
                format!("LOG has calls to {import}, which END does not count"),
            );
        }
    }
    match &end.ending {
        Ending::Returned if log.depth > 0 || log.stop.is_some() => {
            report.find(
                Rule::Ending,
                "END says that all calls returned, but LOG says that one did not",
            );
        }
        Ending::Returned if !end.frames.is_empty() => {
            report.find(Rule::Ending, "all calls returned, yet END has frames");
        }
        Ending::Exited { code } if log.stop != Some(HostStop::Exit(*code)) => {
            let text = format!("END says that the guest exited with code {code}, but LOG does not");
            report.find(Rule::Ending, text);
        }
        _ => {}
    }
}

fn open(lens: &CountsLens, end: Option<&End>, report: &mut Report) {
    let mut total = 0u64;
    for (index, function) in lens.counts.functions.iter().enumerate() {
        if !function.open.is_sorted_by(|a, b| a.0 < b.0) {
            let text = format!("the open blocks of defined function {index} do not ascend");
            report.find(Rule::Open, text);
        }
        if function.open.iter().any(|&(_, count)| count == 0) {
            let text = format!("defined function {index} lists a block with no open activation");
            report.find(Rule::Open, text);
        }
        total = function
            .open
            .iter()
            .fold(total, |total, open| total.saturating_add(open.1));
    }
    let Some(end) = end else { return };
    let frames = end
        .frames
        .iter()
        .filter(|frame| frame.standing != Standing::NotEntered)
        .count() as u64;
    if total != frames {
        let text = format!(
            "COUNTS has {total} open activations, but END has {frames} entered \
            frames"
        );
        report.find(Rule::Open, text);
    }
}
