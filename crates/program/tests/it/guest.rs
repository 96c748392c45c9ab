//! Compares names and lines of a guest from the Rust compiler with addr2line.

use afterimage_program::{LineError, Location, NameError, Names, Program, SourceMap};

use crate::guests::with_debug_information as guest;

#[test]
fn functions_are_found_by_index_name_and_end_of_path() {
    let program = Program::parse(guest()).unwrap();
    let source = SourceMap::build(guest());
    let names = Names::build(&program, guest(), &source);
    let find = |query: &str| names.find(query, &source);
    let exported = find("exported").unwrap();
    assert_eq!(names.raw(exported), Some("exported"));
    assert_eq!(find(&format!("func[{}]", exported.as_u32())), Ok(exported));
    assert_eq!(find(&exported.as_u32().to_string()), Ok(exported));

    let area = find("Circle::area").unwrap();
    assert_eq!(find("area"), Ok(area));
    assert!(
        names.function(area).ends_with("shapes::Circle>::area")
            || names.function(area).ends_with("shapes::Circle::area"),
        "{}",
        names.function(area)
    );
    assert_eq!(find(names.raw(area).unwrap()), Ok(area));

    match find("exproted") {
        Err(NameError::Unknown { nearest, .. }) => assert_eq!(nearest[0], "exported"),
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(find("fmt"), Err(NameError::Ambiguous { candidates, .. }) if candidates.len() > 1)
    );
    assert!(matches!(find("999999"), Err(NameError::NoIndex { .. })));
}

#[test]
fn lines_lead_to_code_and_back() {
    let source = SourceMap::build(guest());
    let file = source.find_file("guests/lines.rs").unwrap();
    assert!(source.path(file).ends_with("tests/it/guests/lines.rs"));
    for line in [6, 11, 17, 25, 32] {
        let code = source
            .code_of_line(file, line, None)
            .unwrap_or_else(|error| panic!("{error}"));
        for range in code {
            let there = source.locate(range.start).unwrap();
            assert_eq!((there.file, there.line), (file, line));
        }
    }
    assert_eq!(
        source.code_of_line(file, 20, None),
        Err(LineError::NoCode {
            path: source.path(file).into(),
            line: 20,
            nearest: Some(18)
        })
    );
    assert!(
        matches!(source.find_file("guests/liens.rs"), Err(LineError::UnknownFile { nearest, .. }) if nearest == ["lines.rs"])
    );
    assert!(matches!(
        source.find_file("mod.rs"),
        Err(LineError::AmbiguousFile { .. })
    ));
}

#[test]
fn a_function_is_declared_where_the_source_says() {
    let program = Program::parse(guest()).unwrap();
    let source = SourceMap::build(guest());
    let names = Names::build(&program, guest(), &source);
    let exported = program
        .function(names.find("exported", &source).unwrap())
        .unwrap();
    let declared = source.declared(exported.body.start).unwrap();
    assert_eq!(
        (source.path(declared.file).rsplit('/').next(), declared.line),
        (Some("lines.rs"), 16)
    );
    assert_eq!(
        source.linkage_name(exported.body.start).as_deref(),
        Some("exported")
    );
}

#[test]
fn rows_ascend_and_lie_in_functions() {
    let program = Program::parse(guest()).unwrap();
    let source = SourceMap::build(guest());
    assert!(source.rows().len() > 1000);
    assert!(
        source
            .rows()
            .windows(2)
            .all(|pair| pair[0].range.end <= pair[1].range.start)
    );
    assert!(
        source
            .rows()
            .iter()
            .all(|row| program.function_at(row.range.start).is_some())
    );
}

/// Checks that the frames of every operator of every function equal addr2line's frames.
#[test]
fn inlined_frames_are_those_of_addr2line() {
    let program = Program::parse(guest()).unwrap();
    let source = SourceMap::build(guest());
    let sections: Vec<_> = wasmparser::Parser::new(0)
        .parse_all(guest())
        .map(Result::unwrap)
        .collect();
    let code = sections.iter().find_map(|payload| match payload {
        wasmparser::Payload::CodeSectionStart { range, .. } => Some(range.start as u64),
        _ => None,
    });
    let section = |id: gimli::SectionId| {
        let data = sections.iter().find_map(|payload| match payload {
            wasmparser::Payload::CustomSection(s) if s.name() == id.name() => Some(s.data()),
            _ => None,
        });
        Ok::<_, gimli::Error>(gimli::EndianSlice::new(
            data.unwrap_or_default(),
            gimli::LittleEndian,
        ))
    };
    let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(section).unwrap()).unwrap();

    let place = |location: Option<Location>| {
        location.map(|l| (source.path(l.file).to_string(), l.line, l.column))
    };
    let (mut checked, mut deepest) = (0, 0);
    for function in &program.functions {
        for (_, offset, _) in program.operators(guest(), function) {
            let ours: Vec<_> = source
                .inlined_frames(offset)
                .into_iter()
                .map(|frame| (frame.function, place(frame.location)))
                .collect();
            let mut theirs = Vec::new();
            let mut frames = context
                .find_frames(u64::from(offset.0) - code.unwrap())
                .skip_all_loads()
                .unwrap();
            while let Some(frame) = frames.next().unwrap() {
                let name = frame.function.map(|f| f.raw_name().unwrap().into_owned());
                let location = frame.location.and_then(|l| {
                    // A file name that is a URL is absolute, though addr2line joins it to the
                    // folder.
                    let path = l.file?;
                    let path = &path[path.rfind("wasisdk://").unwrap_or(0)..];
                    Some((path.to_string(), l.line?, l.column.unwrap_or(0)))
                });
                theirs.push((name, location));
            }
            deepest = deepest.max(ours.len());
            checked += 1;
            assert_eq!(ours, theirs, "at {offset} in {}", function.id);
        }
    }
    assert!(
        checked > 10_000 && deepest > 3,
        "{checked} operators, {deepest} frames"
    );
}
