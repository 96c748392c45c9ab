//! Bodies of the fuzz targets, so that they also run, for a moment, among the tests.

use afterimage_ids::OrigOffset;
use afterimage_program::{Names, OperatorIndex, Program, SourceMap, Ssa, dump};

use crate::modules::SplitMix64;

/// Reads bytes in every way that a module is read. Nothing may panic, and what is accepted must
/// hold together.
///
/// # Panics
/// If something is wrong.
pub fn module_parser(bytes: &[u8]) {
    let source = SourceMap::build(bytes);
    let rows = source.rows();
    assert!(rows.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    let Ok(program) = Program::parse(bytes) else { return };
    let names = Names::build(&program, bytes, &source);
    let index = OperatorIndex::new(&program, bytes);
    for function in &program.functions {
        let _ = (names.function(function.id), source.declared(function.body.start));
        assert_eq!(index.offsets(function).len(), function.operators as usize);
        assert!(!dump::text(&function.cfg).is_empty());
        let ssa = Ssa::build(&program, bytes, function).expect("a valid function has statements");
        assert!(ssa.statements.len() <= function.operators as usize);
        for at in [function.body.start, OrigOffset(function.body.end.0 - 1)] {
            let _ = source.inlined_frames(at);
        }
    }
    let _ = names.find("main");
    for file in source.files() {
        let _ = source.find_file(file).map(|file| source.code_of_line(file, 1, None));
    }
}

/// A damaged copy: cut off, with some bits flipped, or with a part of it repeated elsewhere.
pub fn damaged(bytes: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    if copy.is_empty() {
        return copy;
    }
    match random.below(4) {
        0 => copy.truncate(random.below(bytes.len())),
        1 => {
            let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
            let count = random.below(64).min(bytes.len() - from.max(to));
            copy[to..to + count].copy_from_slice(&bytes[from..from + count]);
        }
        _ => {
            for _ in 0..=random.below(8) {
                let at = random.below(copy.len());
                copy[at] ^= 1 << random.below(8);
            }
        }
    }
    copy
}
