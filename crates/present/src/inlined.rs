//! Finds the callers of inlined code whose source is not available.

use std::collections::{BTreeMap, HashMap, HashSet};

use afterimage_profile::{Line, Profile, ProfileError};

use crate::sources::Cache;

/// Returns the callers into which the code of `lines`, which is usually library code, was inlined.
/// The caller of an inlined operator is the line of the innermost enclosing call whose source is
/// available. Each line gets the caller in which most of its instructions were executed, and the
/// number of other callers.
///
/// O(operators of the program).
pub(crate) fn callers(
    profile: &Profile<'_>,
    lines: &HashSet<Line>,
    cache: &mut Cache<'_>,
) -> Result<HashMap<Line, (Line, usize)>, ProfileError> {
    let mut found: HashMap<Line, BTreeMap<Line, u64>> = HashMap::new();
    let mut operators = Vec::new();
    for (function, _, of) in profile.functions() {
        if lines.is_empty() || of.executed_blocks == 0 {
            continue;
        }
        operators.clear();
        profile.operators(function, of, &mut operators)?;
        for operator in &operators {
            let line = operator.position.map(Line::from);
            let Some(line) = line.filter(|line| operator.count > 0 && lines.contains(line)) else {
                continue;
            };
            let around = profile.source().around(operator.offset).into_iter();
            let mut around = around.map(Line::from);
            let caller = around.find(|call| {
                let path = profile.file(call.file);
                cache.line(path, call.number).is_some()
            });
            if let Some(caller) = caller {
                let executed = found.entry(line).or_default().entry(caller).or_default();
                *executed = executed.saturating_add(operator.count);
            }
        }
    }
    let most = found.into_iter().filter_map(|(line, callers)| {
        let others = callers.len() - 1;
        // If several callers have the same count, take the first line.
        let most = callers.into_iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(caller, _)| (line, (caller, others)))
    });
    Ok(most.collect())
}

#[cfg(test)]
mod tests {
    use afterimage_ids::{Counts, FunctionCounts, OrigOffset};
    use afterimage_profile::Source;
    use afterimage_program::{FileId, Location, Names, Program, SourceMap};

    use super::*;
    use crate::sources::Sources;

    /// A source in which each operator is on line 100 of a library. It was inlined into another
    /// line of the library, and from there into a line of the program, which is line 3 for all
    /// operators except the last.
    struct Inlined {
        files: [String; 2],
        last: OrigOffset,
    }

    fn at(file: u32, line: u32) -> Location {
        Location {
            file: FileId(file),
            line,
            column: 0,
        }
    }

    impl Source for Inlined {
        fn locate(&self, _: OrigOffset) -> Option<Location> {
            Some(at(0, 100))
        }

        fn files(&self) -> &[String] {
            &self.files
        }

        fn declared(&self, _: OrigOffset) -> Option<Location> {
            None
        }

        fn around(&self, offset: OrigOffset) -> Vec<Location> {
            let line = if offset < self.last { 3 } else { 2 };
            vec![at(0, 50), at(1, line)]
        }
    }

    struct OfProgram;

    impl Sources for OfProgram {
        fn read(&self, path: &str) -> Option<String> {
            (path == "app.rs").then(|| "a\nb\nc\n".to_owned())
        }
    }

    #[test]
    fn the_innermost_call_with_text_is_told() {
        let module = wat::parse_str("(module (func nop nop nop))").unwrap();
        let program = Program::parse(&module).unwrap();
        let names = Names::build(&program, &module, &SourceMap::build(&module));
        let body = program.functions[0].body.start;
        let source = Inlined {
            files: ["lib.rs".to_owned(), "app.rs".to_owned()],
            // This offset is after the locals and two operators.
            last: OrigOffset(body.0 + 3),
        };
        let counts = Counts {
            functions: vec![FunctionCounts {
                entries: 5,
                edges: vec![5],
                open: vec![],
            }],
        };
        let profile = Profile::new(&program, &module, &counts, &[], &names, &source).unwrap();
        let library = Line::from(at(0, 100));
        let mut cache = Cache::new(&OfProgram);
        let found = callers(&profile, &HashSet::from([library]), &mut cache).unwrap();
        assert_eq!(found, HashMap::from([(library, (Line::from(at(1, 3)), 1))]));
        // Only the requested lines have a result.
        let other = HashSet::from([Line::from(at(0, 50))]);
        assert!(callers(&profile, &other, &mut cache).unwrap().is_empty());
    }
}
