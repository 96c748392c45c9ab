//! Tests that reading long input on several threads gives the same result as on one thread.

use afterimage_ids::FuncId;
use afterimage_program::{ParseError, Program, SourceMap};

/// The number of functions, and of units of debug information, to read.
const COUNT: u32 = 300;
/// The length in bytes from which several threads share the work.
const LONG: usize = 1 << 16;

/// Encodes a length in a fixed number of bytes, so that the following bytes stay in place.
fn wide(length: usize) -> [u8; 5] {
    let byte = |at: u32| (length >> (7 * at)) as u8 & 0x7f | if at < 4 { 0x80 } else { 0 };
    std::array::from_fn(|at| byte(at as u32))
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &wide(content.len()), content].concat()
}

fn custom(name: &str, content: &[u8]) -> Vec<u8> {
    section(
        0,
        &[&[name.len() as u8][..], name.as_bytes(), content].concat(),
    )
}

fn list(items: impl ExactSizeIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = wide(items.len()).to_vec();
    bytes.extend(items.flatten());
    bytes
}

/// Returns the operators of a function with a number as parameter. One function branches, one
/// loops, and one calls another.
fn operators(function: u32) -> Vec<u8> {
    let callee = wide((function * 7 % COUNT) as usize);
    match function % 3 {
        0 => vec![0x02, 0x40, 0x20, 0, 0x0d, 0, 0x20, 0, 0x0d, 0, 0x0b],
        1 => vec![0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b],
        _ => [&[0x20, 0, 0x10][..], &callee].concat(),
    }
}

/// Returns a module with these functions, and a last function with `nops` operators that do
/// nothing. Some functions are not valid.
fn module(nops: usize, invalid: &[u32]) -> Vec<u8> {
    let bodies = (0..=COUNT).map(|function| {
        let mut body = vec![0];
        match function {
            COUNT => body.extend(vec![0x01; nops]),
            _ if invalid.contains(&function) => body.push(0x6a),
            _ => body.extend(operators(function)),
        }
        body.push(0x0b);
        [&wide(body.len())[..], &body].concat()
    });
    let bodies = Vec::from_iter(bodies);
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &list([vec![0x60, 1, 0x7f, 0]].into_iter())),
        section(3, &list(vec![vec![0]; COUNT as usize + 1].into_iter())),
        section(10, &list(bodies.into_iter())),
    ]
    .concat()
}

#[test]
fn functions() {
    let (short, long) = (module(1, &[]), module(LONG, &[]));
    assert!(short.len() < LONG && long.len() > LONG);
    let (short, long) = [short, long]
        .map(|bytes| Program::parse(&bytes).unwrap())
        .into();
    for function in (0..COUNT).map(FuncId::from_u32) {
        let [short, long] =
            [&short, &long].map(|program| format!("{:?}", program.function(function)));
        assert_eq!(short, long);
    }
    let last = FuncId::from_u32(COUNT);
    assert_eq!(long.function(last).unwrap().operators as usize, LONG + 1);
    assert_eq!(short.address_taken, long.address_taken);
}

#[test]
fn of_functions_that_are_not_valid_the_first_is_told() {
    let error = |nops: usize, invalid: &[u32]| -> ParseError {
        Program::parse(&module(nops, invalid)).unwrap_err()
    };
    let first = error(1, &[40]);
    let later = error(1, &[250]);
    assert_ne!(first, later);
    for nops in [1, LONG] {
        assert_eq!(error(nops, &[40, 250]), first);
        assert_eq!(error(nops, &[40, 41, 42, 250]), first);
        assert_eq!(error(nops, &[250]), later);
    }
}

/// Returns debug information with a unit and a line table for each function, and `padding` bytes
/// after the last table. Some tables end in the middle.
fn with_lines(padding: usize, cut: &[u32]) -> Vec<u8> {
    let mut module = module(1, &[]);
    let program = Program::parse(&module).unwrap();
    let bodies = (0..COUNT).map(|at| program.function(FuncId::from_u32(at)).unwrap());
    let bodies = Vec::from_iter(bodies.map(|function| function.body.clone()));
    // Addresses count from the beginning of the Code section's payload. The number of functions,
    // and the size and the locals of the first function, come after it.
    let payload = bodies[0].start.0 - 10;
    let mut tables = Vec::new();
    let mut info = Vec::new();
    for (function, body) in (0..).zip(&bodies) {
        let mut run = vec![0, 5, 2];
        run.extend((body.start.0 - payload).to_le_bytes());
        // The program selects the first file, a line for the first two bytes, and the next line for
        // the rest.
        run.extend([4, 0, 3, (function % 50) as u8, 1, 2, 2, 3, 1, 1]);
        if cut.contains(&function) {
            run.extend([0, 5, 2])
        } else {
            run.extend([2, (body.end.0 - body.start.0 - 2) as u8, 0, 1, 1])
        }
        // A directory, and a file.
        let mut header = vec![1, 1, 1, 0xfb, 14, 13];
        header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
        header.extend([1, 1, 8, 1]);
        header.extend(b"/src\0\x01\x01\x08\x01");
        header.extend(format!("{}.c\0", function % 17).as_bytes());
        info.extend(unit(tables.len() as u32));
        tables.extend((8 + header.len() as u32 + run.len() as u32).to_le_bytes());
        tables.extend([5, 0, 4, 0]);
        tables.extend((header.len() as u32).to_le_bytes());
        tables.extend(header.iter().chain(&run));
    }
    tables.extend(vec![0xff; padding]);
    module.extend(debug(&info, &tables));
    module
}

/// Returns a unit with only a line table.
fn unit(table: u32) -> Vec<u8> {
    let unit = [&[5, 0, 1, 4, 0, 0, 0, 0, 1][..], &table.to_le_bytes()].concat();
    [&(unit.len() as u32).to_le_bytes()[..], &unit].concat()
}

fn debug(info: &[u8], lines: &[u8]) -> Vec<u8> {
    // This is a compilation unit without children, with DW_AT_stmt_list as a DW_FORM_sec_offset.
    let abbreviations = [1, 0x11, 0, 0x10, 0x17, 0, 0, 0];
    [
        custom(".debug_info", info),
        custom(".debug_abbrev", &abbreviations),
        custom(".debug_line", lines),
    ]
    .concat()
}

#[test]
fn line_tables() {
    for cut in [&[][..], &[3, 4, 170]] {
        let (short, long) = (with_lines(0, cut), with_lines(LONG, cut));
        let (short, long) = (SourceMap::build(&short), SourceMap::build(&long));
        assert_eq!(short.rows(), long.rows());
        assert_eq!(short.files(), long.files());
        let [short_said, long_said] = [&short, &long].map(|map| Vec::from_iter(map.warnings()));
        assert_eq!(short_said, long_said);
        assert_eq!(long_said.len(), cut.len(), "{long_said:?}");
        let rows = 2 * (COUNT as usize - cut.len());
        assert_eq!(long.rows().len(), rows);
        assert_eq!(long.files().len(), 17);
    }
}

/// Returns nested headers of line tables. Each header lists all the zeros after it as directories
/// without a name.
fn nested(count: usize, zeros: usize) -> Vec<u8> {
    const HEADER: usize = 4 + 2 + 1 + 1 + 4 + 6 + 1 + 2 + 5;
    let end = [1, 1, 8, 0];
    let mut lines = vec![0; zeros];
    lines.extend(end);
    let mut names = zeros;
    for _ in 0..count {
        let length = lines.len() + HEADER - 4;
        let mut header = (length as u32).to_le_bytes().to_vec();
        header.extend([5, 0, 4, 0]);
        header.extend((length as u32 - 8).to_le_bytes());
        header.extend([1, 1, 1, 0xfb, 14, 1, 1, 1, 8]);
        header.extend(wide(names));
        assert_eq!(header.len(), HEADER);
        names += header.iter().filter(|byte| **byte == 0).count();
        lines.splice(0..0, header);
    }
    let units = (0..count).flat_map(|at| unit((at * HEADER) as u32));
    let mut module = module(1, &[]);
    module.extend(debug(&Vec::from_iter(units), &lines));
    module
}

#[test]
fn directories_of_headers_that_lie_within_each_other_are_counted() {
    let left_out = |count: usize| {
        let bytes = nested(count, 2000);
        let map = SourceMap::build(&bytes);
        let said = map
            .warnings()
            .filter(|said| said.contains("is shared too often"));
        said.count()
    };
    assert_eq!(left_out(2), 0);
    // Each header lists everything that the later headers list, on average half of the section. The
    // budget allows reading 64 times the size of the section. One warning reports the rest.
    assert_eq!(left_out(2000), 1);
}

/// Returns a line table with files that are all in one folder.
fn in_folder(folder: usize, files: usize) -> Vec<u8> {
    let mut behind = vec![1, 1, 1, 0xfb, 14, 1];
    behind.extend([1, 1, 8]);
    behind.extend(wide(2));
    behind.push(0);
    behind.extend(vec![b'f'; folder]);
    behind.push(0);
    behind.extend([2, 1, 8, 2, 15]);
    behind.extend(wide(files));
    for file in 0..files {
        behind.extend(format!("{file}\0").bytes());
        behind.push(1);
    }
    let mut lines = (behind.len() as u32 + 8).to_le_bytes().to_vec();
    lines.extend([5, 0, 4, 0]);
    lines.extend((behind.len() as u32).to_le_bytes());
    lines.extend(behind);
    let mut module = module(1, &[]);
    module.extend(debug(&unit(0), &lines));
    module
}

#[test]
fn paths_that_are_far_longer_than_their_table_are_left_out() {
    let paths = |folder: usize, files: usize| {
        let bytes = in_folder(folder, files);
        let map = SourceMap::build(&bytes);
        let said = map
            .warnings()
            .filter(|said| said.contains("far longer than the line table"));
        (map.files().len(), said.count())
    };
    assert_eq!(paths(300, 2000), (2000, 0));
    let (kept, said) = paths(50_000, 2000);
    assert!((100..1000).contains(&kept), "{kept}");
    assert_eq!(said, 1);
}

/// Checks that names do not need lines.
#[test]
fn names_are_there_without_line_tables() {
    // This is a compilation unit that contains a function with DW_AT_linkage_name, low_pc and
    // high_pc.
    let abbreviations = [
        1, 0x11, 1, 0, 0, 2, 0x2e, 0, 0x6e, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, 0,
    ];
    let mut module = module(1, &[]);
    let program = Program::parse(&module).unwrap();
    let body = &program.functions[0].body;
    let code = 10;
    // Addresses in debug information count from the code section's content.
    let content = (0..module.len())
        .find(|&at| {
            module[at] == code && module[at + 1..].starts_with(&wide(module.len() - at - 6))
        })
        .expect("the code section is the last")
        + 6;
    let start = body.start.0 - content as u32;
    let entry = [
        &[2][..],
        b"_ZN5named\0",
        &start.to_le_bytes(),
        &(body.end.0 - body.start.0).to_le_bytes(),
        &[0],
    ]
    .concat();
    let unit = [&[5, 0, 1, 4, 0, 0, 0, 0, 1][..], &entry].concat();
    let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    module.extend(custom(".debug_info", &info));
    module.extend(custom(".debug_abbrev", &abbreviations));
    let map = SourceMap::build(&module);
    assert_eq!(Vec::from_iter(map.warnings()), Vec::<&str>::new());
    assert_eq!(map.linkage_name(body.start).as_deref(), Some("_ZN5named"));
}
