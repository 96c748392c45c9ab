//! Rules about bytes and chunks.

use std::collections::HashSet;

use super::{Report, Rule};
use crate::layout::{CHUNK_HEADER_LEN, ChunkHeader, FOOTER_LEN, Footer, HEADER_LEN};
use crate::state::ChunkEntry;
use crate::{Kind, TraceFile, codec};

pub(super) fn verify(file: &TraceFile, report: &mut Report) {
    let state = &file.inner.state;
    report.bytes = state.end;
    report.sections = state.sections.len() as u64;
    if state.ignored > 0 && !state.interrupted {
        let text = format!(
            "{} damaged bytes follow the last complete state, so nothing can be added; copy the \
             intact parts with: afterimage verify --repair -o COPY.aft FILE.aft",
            state.ignored
        );
        report.find(Rule::Tail, text);
    }
    let chunks = state.chunks();
    layout(file, &chunks, report);
    self::chunks(file, &chunks, report);
    sections(file, report);
}

/// Walks the file from its header to the end of the state.
fn layout(file: &TraceFile, chunks: &[ChunkEntry], report: &mut Report) {
    let state = &file.inner.state;
    let bytes = file.inner.bytes();
    let slice = |at: u64, length: usize| {
        let at = usize::try_from(at).ok()?;
        bytes.get(at..at.checked_add(length)?)
    };
    let mut listed = chunks.iter().peekable();
    let mut at = HEADER_LEN as u64;
    while at < state.end {
        // The walk trusts the index's description of a listed chunk. Another rule compares the
        // chunk's header.
        if let Some(chunk) = listed.next_if(|chunk| chunk.offset == at) {
            at = chunk.end();
        } else if let Some(footer) = slice(at, FOOTER_LEN).and_then(|it| Footer::decode(it, at)) {
            report.states += 1;
            if u64::from(footer.state) != report.states {
                let text = format!("the footer at {at:#x} is not numbered {}", report.states);
                report.find(Rule::Layout, text);
            }
            at += FOOTER_LEN as u64;
        } else if let Some(header) = slice(at, CHUNK_HEADER_LEN).and_then(ChunkHeader::decode) {
            let chunk = ChunkEntry { offset: at, header };
            if header.kind != Kind::INDEX {
                report.find(Rule::Layout, format!("the chunk at {at:#x} is in no index"));
            } else if file.inner.payload(&chunk).map(crc32fast::hash).ok() != Some(header.crc) {
                report.find(Rule::Layout, format!("the index at {at:#x} is damaged"));
            }
            at = chunk.end();
        } else {
            report.find(
                Rule::Layout,
                format!("there is neither a chunk nor a footer at {at:#x}"),
            );
            return;
        }
    }
}

fn chunks(file: &TraceFile, chunks: &[ChunkEntry], report: &mut Report) {
    let mut raw = Vec::new();
    for chunk in chunks {
        report.chunks += 1;
        let decoded = file.inner.payload(chunk).and_then(|payload| {
            codec::decode(&chunk.header, payload, &mut raw).map_err(|what| chunk.damaged(what))
        });
        if let Err(error) = decoded {
            report.find(Rule::Chunk, error.to_string());
        }
    }
}

fn sections(file: &TraceFile, report: &mut Report) {
    let state = &file.inner.state;
    let mut kinds = HashSet::new();
    for section in &state.sections {
        let kind = section.kind;
        if !section.is_complete() {
            report.find(
                Rule::Complete,
                format!("the last chunk of a section {kind} is missing"),
            );
        }
        if !kinds.insert(kind) && kind.is_single() {
            report.find(
                Rule::Single,
                format!("there is more than one section {kind}"),
            );
        }
    }
    // A recording that was cut off may also have a complete state, if something was added to it
    // later. But it then has no END section.
    let cut = !kinds.contains(&Kind::END);
    let without = || file.meta().is_ok_and(|meta| meta.is_without_inputs());
    for kind in [Kind::META, Kind::MODULE, Kind::LOG] {
        let may_lack = state.footer.is_none() || kind == Kind::LOG && (cut || without());
        if !may_lack && !kinds.contains(&kind) {
            report.find(Rule::Required, format!("there is no section {kind}"));
        }
    }
}
