//! Compares control-flow graphs of hand-written modules with the files next to the modules.
//! `BLESS=1 cargo test` writes the builder's output to these files. Read it before you commit it.

use std::fmt::Write;
use std::path::Path;

use afterimage_program::{Program, dump};

#[test]
fn graphs_are_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cfg");
    let mut cases: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "wat"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        let bytes = wat::parse_file(&case).unwrap();
        let program = Program::parse(&bytes).unwrap();
        let mut actual = String::new();
        for function in &program.functions {
            let throws = if function.may_throw { " may throw" } else { "" };
            writeln!(
                actual,
                "{}{throws}\n{}",
                function.id,
                dump::text(&function.cfg)
            )
            .unwrap();
        }
        let expected = case.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, actual).unwrap();
        } else {
            let written = std::fs::read_to_string(&expected).unwrap_or_default();
            assert_eq!(actual, written, "{} has changed", expected.display());
        }
    }
}
