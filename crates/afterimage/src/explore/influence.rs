//! Finds the influence of an input byte: the statements and the output bytes that depend on it.

use std::collections::HashSet;

use afterimage_analyses::slices::{
    Criterion, HostTook, Reach, SliceAlong, SliceCounts, Want, influence,
};
use afterimage_analyses::why::{Got, Printed, Put, Stream};
use afterimage_present::{InfluenceDocument, InfluencedOutput, SliceReport};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::explain::Scene;
use crate::steps::follow_for;

/// Asks which statements and which bytes of output depend on a byte of input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfluenceQuery {
    /// The path with which the program opened the file. `None` means standard input.
    pub file: Option<String>,
    /// The number of the byte, from 0.
    pub byte: u64,
    /// Whether to follow only values, without control dependences or the computation of addresses.
    pub thin: bool,
}

impl InfluenceQuery {
    /// Describes the byte in words.
    fn title(&self) -> String {
        let file = self.file.as_deref().unwrap_or("standard input");
        format!("byte {} of {file}", self.byte)
    }

    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<InfluenceDocument> {
        let traced = scene.traced;
        let stream = match &self.file {
            Some(file) => Stream::Path(file.clone()),
            None => Stream::Input,
        };
        let imports = &traced.program().imports;
        let got = Got::find(traced.file(), imports, (&stream, self.byte), &scene.host)?;
        let Some(got) = got else {
            bail!("{}: the run did not read it", self.title());
        };
        let path = traced.path()?;
        let caller = scene.host.caller_of(got.call)?;
        let mut cursor = path.cursor();
        cursor.seek(caller.time)?;
        let Some(next) = cursor.next()? else {
            bail!("{}: the run ended when it was read", self.title());
        };
        let criterion = Criterion {
            start: next.start,
            wants: vec![Want::Bytes(got.at, 0)],
            reach: Reach::ALL,
        };
        let along = if self.thin {
            SliceAlong::Thin
        } else {
            SliceAlong::All
        };
        let (slice, took) = follow_for(traced, "following the byte", |run, log| {
            Ok(influence(run, log, along.follows(), vec![criterion])?)
        })?;
        let program = traced.program();
        let operators = traced.operators();
        let counts = SliceCounts::new(&slice, program, path, &operators)?;
        let title = format!("what depends on {}", self.title());
        let report = SliceReport::new(&counts, title, &[], None, scene.source(), scene.names);
        Ok(InfluenceDocument {
            about: self.title(),
            thin: self.thin,
            value: got.byte,
            address: got.at.address,
            t: next.start - 1,
            call: got.call,
            outputs: outputs(scene, &took)?,
            statements: report.statements.len() as u64,
            executions: report.executions,
            lines: report.lines,
        })
    }
}

/// Finds the output bytes among the bytes that the host read.
fn outputs(scene: &Scene<'_, '_>, took: &[HostTook]) -> Result<Vec<InfluencedOutput>> {
    let mut found = Vec::new();
    let starts: HashSet<u64> = took.iter().map(|took| took.start).collect();
    for (stream, name) in [(Stream::Output, "stdout"), (Stream::Error, "stderr")] {
        let mut printed = Printed::new(scene.traced.file(), &scene.traced.program().imports)?;
        while let Some(put) = printed.next(&stream)? {
            // Finding the caller opens a segment of the path, so only calls that read one of the
            // bytes are examined.
            if !took.iter().any(|took| overlaps(&put, took)) {
                continue;
            }
            let start = scene.host.caller_of(put.call)?.time;
            if !starts.contains(&start) {
                continue;
            }
            let mut cursor = scene.traced.path()?.cursor();
            let visit = cursor.seek(start)?.context("a call is not in the path")?;
            let mut bytes = Vec::new();
            for took in took.iter().filter(|took| took.start == start) {
                bytes.extend(parts(&put, took));
            }
            bytes.sort_unstable();
            bytes.dedup();
            let runs = bytes.chunk_by(|a, b| a + 1 == *b);
            found.extend(runs.map(|run| InfluencedOutput {
                stream: name,
                call: put.call,
                t: visit.last(),
                first: run[0],
                bytes: run.len() as u64,
            }));
        }
    }
    found.sort_by_key(|output| (output.call, output.first));
    Ok(found)
}

fn overlaps(put: &Put, took: &HostTook) -> bool {
    parts(put, took).next().is_some()
}

/// Returns the bytes that a call wrote and that the host read, as their numbers in the stream.
fn parts<'p>(put: &'p Put, took: &'p HostTook) -> impl Iterator<Item = u64> + 'p {
    let mut at = put.before;
    let end = put.before.saturating_add(put.bytes);
    let ranges = put.from.iter().flat_map(move |from| {
        let before = at;
        at += from.length;
        let is_same = from.memory == took.range.memory;
        let first = from.address.max(took.range.address);
        let last = (from.address + from.length).min(took.range.address + took.range.length);
        let last = if is_same { last } else { first };
        (first..last).map(move |address| before + (address - from.address))
    });
    ranges.filter(move |byte| *byte < end)
}
