//! Reads bytes as a module in every way that the tool does. Nothing may panic, and accepted modules
//! must be consistent.

use afterimage_ids::OrigOffset;
use afterimage_program::{Names, OperatorIndex, Program, SourceMap, Ssa, dump};

/// Reads everything in the bytes.
pub fn read_everything(bytes: &[u8]) {
    let source = SourceMap::build(bytes);
    let rows = source.rows();
    assert!(
        rows.windows(2)
            .all(|pair| pair[0].range.end <= pair[1].range.start)
    );
    let Ok(program) = Program::parse(bytes) else {
        return;
    };
    let names = Names::build(&program, bytes, &source);
    let index = OperatorIndex::new(&program, bytes);
    for function in &program.functions {
        let _ = (
            names.function(function.id),
            source.declared(function.body.start),
        );
        assert_eq!(index.offsets(function).len(), function.operators as usize);
        assert!(!dump::text(&function.cfg).is_empty());
        let ssa = Ssa::build(&program, bytes, function).expect("a valid function has statements");
        assert!(ssa.statements.len() <= function.operators as usize);
        for at in [function.body.start, OrigOffset(function.body.end.0 - 1)] {
            let _ = source.inlined_frames(at);
        }
    }
    let _ = names.find("main", &source);
    for file in source.files() {
        let _ = source
            .find_file(file)
            .map(|file| source.code_of_line(file, 1, None));
    }
}
