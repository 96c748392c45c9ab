//! Tests that `docs/FORMAT.md` agrees with the code.

use crate::end::TrapCode;
use crate::layout::{
    CHUNK_HEADER_LEN, ChunkHeader, FOOTER_LEN, Footer, HEADER_LEN, MAX_NAME, MAX_RAW, MAX_STORED,
    RECORD_LEN, file_header,
};
use crate::{End, Ending, Event, Frame, HostStop, Interrupter, Kind, RawValue, Standing, limits};
use afterimage_ids::{FuncId, ImportId, OrigOffset};

const DOC: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md"));

/// Whether a table has a row that begins with these cells.
fn has_row(cells: &[&str]) -> bool {
    DOC.lines().any(|line| {
        let mut row = line.trim_matches('|').split('|').map(str::trim);
        line.starts_with('|') && cells.iter().all(|cell| row.next() == Some(cell))
    })
}

fn assert_row(number: impl ToString, name: &str) {
    let number = number.to_string();
    assert!(
        has_row(&[&number, name]),
        "FORMAT.md has no row | {number} | {name} |"
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn labels_and_lengths() {
    let header = ChunkHeader {
        kind: Kind::LOG,
        codec: 0,
        flags: 0,
        section: 0,
        sequence: 0,
        first: 0,
        stored: 0,
        raw: 0,
        crc: 0,
    };
    let footer = Footer {
        index: 16,
        length: 0,
        state: 1,
    };
    let said = [
        format!("label `{}`", hex(&file_header()[..8])),
        format!("`{}`", hex(&file_header())),
        format!("label `{}`", hex(&header.encode()[..4])),
        format!("label `{}`", hex(&footer.encode()[..8])),
        format!("## Header: {HEADER_LEN} bytes"),
        format!("a header of {CHUNK_HEADER_LEN} bytes"),
        format!("The footer, {FOOTER_LEN} bytes"),
        format!("records of {RECORD_LEN} bytes"),
    ];
    for said in said {
        assert!(DOC.contains(&said), "FORMAT.md lacks {said:?}");
    }
}

/// The encoders put each field at its documented offset, with its documented size.
#[test]
fn fields() {
    let none = ChunkHeader {
        kind: Kind(0),
        codec: 0,
        flags: 0,
        section: 0,
        sequence: 0,
        first: 0,
        stored: 0,
        raw: 0,
        crc: 0,
    };
    let full = [
        (
            ChunkHeader {
                kind: Kind(!0),
                ..none
            },
            "kind of the section",
        ),
        (
            ChunkHeader { codec: !0, ..none },
            "codec: 0 raw, 1 Zstandard",
        ),
        (
            ChunkHeader { flags: !0, ..none },
            "flags: 1 last chunk of its section, 2 named; others are 0",
        ),
        (
            ChunkHeader {
                section: !0,
                ..none
            },
            "number of the section to which the chunk belongs",
        ),
        (
            ChunkHeader {
                sequence: !0,
                ..none
            },
            "sequence: position of the chunk in its section, from 0",
        ),
        (
            ChunkHeader { first: !0, ..none },
            "first: the number of the section's items that begin before this chunk; never decreases",
        ),
        (ChunkHeader { stored: !0, ..none }, "length of the payload"),
        (
            ChunkHeader { raw: !0, ..none },
            "length of the decoded bytes",
        ),
        (ChunkHeader { crc: !0, ..none }, "CRC-32 of the payload"),
    ];
    for (header, what) in full {
        assert_field(&none.encode(), &header.encode(), what);
    }
    let none = Footer {
        index: 0,
        length: 0,
        state: 0,
    };
    let full = [
        (Footer { index: !0, ..none }, "offset of the index"),
        (
            Footer { length: !0, ..none },
            "length of the index: the footer begins right after it",
        ),
        (Footer { state: !0, ..none }, "number of the state, from 1"),
    ];
    for (footer, what) in full {
        assert_field(&none.encode(), &footer.encode(), what);
    }
}

/// Asserts that only the documented field's bytes differ, apart from the checksum at the end.
fn assert_field(none: &[u8], full: &[u8], what: &str) {
    let differ: Vec<_> = (0..none.len() - 4)
        .filter(|&i| none[i] != full[i])
        .collect();
    let row = [differ[0].to_string(), differ.len().to_string()];
    assert!(
        has_row(&[&row[0], &row[1], what]),
        "FORMAT.md lacks {row:?} {what}"
    );
}

#[test]
fn limits() {
    let limits = [
        ("MAX_RAW", MAX_RAW.into()),
        ("MAX_STORED", MAX_STORED.into()),
        ("MAX_NAME", MAX_NAME as u64),
        ("MAX_META", limits::MAX_META),
        ("MAX_MODULE", limits::MAX_MODULE),
        ("MAX_EVENT", limits::MAX_EVENT),
        ("MAX_END", limits::MAX_END),
        ("MAX_COUNTS", limits::MAX_COUNTS),
        ("MAX_VALUES", limits::MAX_VALUES),
        ("MAX_RANGES", limits::MAX_RANGES),
        ("MAX_FUNCTIONS", limits::MAX_FUNCTIONS),
        ("MAX_EDGES", limits::MAX_EDGES),
        ("MAX_OPEN", limits::MAX_OPEN),
        ("MAX_SOURCE", limits::MAX_SOURCE),
        ("MAX_SOURCES", limits::MAX_SOURCES),
        ("MAX_MEMORY", limits::MAX_MEMORY),
        ("MAX_ELEMENTS", limits::MAX_ELEMENTS),
        ("MAX_VARIABLES", limits::MAX_VARIABLES),
    ];
    for (name, value) in limits {
        assert_row(format!("`{name}`"), &value.to_string());
    }
}

#[test]
fn kinds_and_tags() {
    let kinds = [
        Kind::META,
        Kind::MODULE,
        Kind::LOG,
        Kind::END,
        Kind::COUNTS,
        Kind::PATHS,
        Kind::PATH_INDEX,
        Kind::PATH_WORDS,
        Kind::VALUES,
        Kind::VALUES_INDEX,
        Kind::CHECKPOINTS,
        Kind::SIMULATION,
        Kind::SLICE,
        Kind::PATH_GRAMMARS,
        Kind::PRINTED,
        Kind::SNAPSHOTS,
        Kind::STRETCHES,
        Kind::WRITTEN,
        Kind::OPEN,
        Kind::SOURCES,
    ];
    for kind in kinds {
        assert_row(kind.0, &kind.to_string());
    }
    let event = |event: Event| {
        let mut bytes = Vec::new();
        crate::event::encode(&event, &mut bytes).unwrap();
        bytes
    };
    let (import, args, reads) = (ImportId::from_u32(0), Vec::new(), Vec::new());
    let function = FuncId::from_u32(0);
    assert_row(
        event(Event::Enter {
            function,
            args: vec![],
        })[0],
        "Enter: the host calls into the guest",
    );
    assert_row(
        event(Event::Leave { results: vec![] })[0],
        "Leave: that call returned",
    );
    let call = Event::HostCall {
        import,
        args: vec![],
        results: vec![],
        writes: vec![],
        reads: vec![],
        read_digest: 0,
    };
    assert_row(
        event(call)[0],
        "HostCall: an import was called and returned",
    );
    let outcomes = [
        (HostStop::Exit(0), "Exit"),
        (HostStop::Error(String::new()), "Error"),
        (
            HostStop::Interrupted,
            "Interrupted: the run was stopped from outside",
        ),
    ];
    for (outcome, name) in outcomes {
        let (args, reads) = (args.clone(), reads.clone());
        let stop = event(Event::HostStop {
            import,
            args,
            reads,
            read_digest: 0,
            outcome,
        });
        assert_row(stop[0], "HostStop: an import was called and did not return");
        // These bytes come after the tag, the import, no arguments, no reads and their digest.
        assert_row(stop[5], name);
    }
    assert_row(event(Event::MemoryGrow { granted: true })[0], "MemoryGrow");
    assert_row(event(Event::TableGrow { granted: true })[0], "TableGrow");
    let values = [
        (RawValue::I32(0), "i32"),
        (RawValue::I64(0), "i64"),
        (RawValue::F32(0), "f32"),
        (RawValue::F64(0), "f64"),
        (RawValue::V128(0), "v128"),
        (RawValue::NullRef, "null reference"),
        (RawValue::OpaqueRef, "another reference"),
    ];
    for (value, name) in values {
        // These are the bytes of Leave, one result, and the result's tag.
        assert_row(
            event(Event::Leave {
                results: vec![value],
            })[2],
            name,
        );
    }
}

#[test]
fn endings() {
    let message = String::new;
    let endings = [
        (Ending::Returned, "Returned"),
        (Ending::Exited { code: 0 }, "Exited"),
        (
            Ending::Trapped {
                code: TrapCode::Other,
                message: message(),
            },
            "Trapped",
        ),
        (Ending::Exception { message: message() }, "Exception"),
        (Ending::StackOverflow, "StackOverflow"),
        (
            Ending::Interrupted {
                by: Interrupter::CtrlC,
            },
            "Interrupted",
        ),
        (Ending::HostError { message: message() }, "HostError"),
    ];
    let encode = |ending, frames| {
        let host_call_counts = Vec::new();
        let end = End {
            ending,
            frames,
            clock: None,
            events: 0,
            host_call_counts,
        };
        crate::end::encode(&end).unwrap()
    };
    for (ending, name) in endings {
        assert_row(encode(ending, vec![])[0], name);
    }
    for &code in TrapCode::ALL {
        let bytes = encode(
            Ending::Trapped {
                code,
                message: message(),
            },
            vec![],
        );
        assert_row(bytes[1], &code.to_string());
    }
    let standings = [
        (
            Standing::At,
            "At: it began. It trapped, or is a call under way",
        ),
        (
            Standing::Before,
            "Before: it is the next one. The run was stopped before it",
        ),
        (
            Standing::NotEntered,
            "NotEntered: the activation never began. Its entry overflowed the stack",
        ),
    ];
    for (standing, name) in standings {
        let (function, offset) = (FuncId::from_u32(0), OrigOffset(0));
        let bytes = encode(
            Ending::Returned,
            vec![Frame {
                function,
                offset,
                standing,
            }],
        );
        assert_row(bytes[bytes.len() - 1], name);
    }
    for (by, name) in [
        (Interrupter::CtrlC, "Ctrl-C"),
        (Interrupter::Terminate, "termination"),
        (Interrupter::Timeout, "timeout"),
    ] {
        let said = format!("{} {name}", encode(Ending::Interrupted { by }, vec![])[1]);
        assert!(DOC.contains(&said), "FORMAT.md lacks {said:?}");
    }
}
