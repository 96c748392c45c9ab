//! Finds the code of a line, column by column.

use std::collections::{HashMap, HashSet};

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId};

use afterimage_profile::body::decode;
use afterimage_profile::walk::{code_blocks, positions};
use afterimage_profile::{Line, ProfileError};
use afterimage_replay::steps::name;
use afterimage_wpp::Segments;

use super::Version;

/// An operator of the line that counts as a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub op: OpId,
    pub column: u32,
    /// Whether the block has an operator of the column other than moves and constants. Where
    /// compilers remove all other code, moves may remain.
    pub column_counts: bool,
    /// A number for the operator's name, unless the operator is a move or a constant.
    pub name: Option<u32>,
    /// Whether the operator is a comparison.
    pub is_test: bool,
    /// The number of the statement with which the operator is matched.
    pub matched: Option<u32>,
}

/// Maps each statement to a number. A statement of the unoptimised version has its own number, and
/// any other statement has the number of its counterpart in that version.
pub type MatchedStatements = HashMap<(FuncId, OpId), u32>;

/// Numbers for the names of operators. They are the same in both versions.
pub(super) type OperatorNames = HashMap<String, u32>;

/// The code of a line in some functions.
#[derive(Debug, Default)]
pub(super) struct LineParts {
    of: HashMap<FuncId, HashMap<BlockId, Vec<Begin>>>,
}

impl LineParts {
    /// Finds the code of a version's line. Time is linear in the bodies of the functions that
    /// contain it.
    pub(super) fn new<S: Segments>(
        version: &Version<'_, '_, S>,
        names: &mut OperatorNames,
    ) -> Result<Self, ProfileError> {
        let Version {
            program,
            module,
            source,
            line,
            matched,
            ..
        } = *version;
        let mut found = Self::default();
        let (mut body, mut operators) = (Vec::new(), Vec::new());
        for &function in version.functions {
            let Some(code) = program.function(function) else {
                continue;
            };
            if found.of.contains_key(&function) {
                continue;
            }
            decode(program, module, code, &mut body)?;
            positions(code, &body, source, &mut operators);
            let called: Vec<(Option<u32>, bool)> = program
                .operators(module, code)
                .map(|(_, _, operator)| {
                    let name = name(&operator);
                    let is_test = is_test(&name);
                    (number(name, names), is_test)
                })
                .collect();
            let mut blocks = HashMap::new();
            for (id, block) in code_blocks(code) {
                let own = &operators[block.ops.start.index()..block.ops.end.index()];
                let executed = own.iter().filter(|op| op.is_step());
                let mut begins = Vec::new();
                let mut before = None;
                for operator in executed {
                    let column = operator
                        .position
                        .filter(|position| Line::from(*position) == line)
                        .map(|position| position.column);
                    if let Some(column) = column {
                        // Uses only the line table's entry for the operator itself, not an entry
                        // inherited from the operator before.
                        let own = source.locate(operator.offset);
                        let is_own = own.is_some_and(|location| Line::from(location) == line);
                        let (name, is_test) =
                            called.get(operator.op.index()).copied().unwrap_or_default();
                        let begin = Begin {
                            op: operator.op,
                            column,
                            column_counts: false,
                            name: name.filter(|_| is_own),
                            is_test,
                            matched: matched
                                .and_then(|known| known.get(&(function, operator.op)).copied()),
                        };
                        let counts = before != Some(column)
                            || begin.name.is_some()
                            || begin.matched.is_some();
                        begins.extend(counts.then_some(begin));
                    }
                    before = column;
                }
                let named = begins.iter().filter(|begin| begin.name.is_some());
                let named: HashSet<u32> = named.map(|begin| begin.column).collect();
                for begin in &mut begins {
                    begin.column_counts = named.contains(&begin.column);
                }
                if !begins.is_empty() {
                    blocks.insert(id, begins);
                }
            }
            found.of.insert(function, blocks);
        }
        Ok(found)
    }

    /// Whether a function has code of the line.
    pub(super) fn has(&self, function: FuncId) -> bool {
        self.of.contains_key(&function)
    }

    /// Returns the operators of the line in a block that count as parts, in order.
    pub(super) fn of(&self, function: FuncId, block: BlockId) -> &[Begin] {
        let blocks = self.of.get(&function);
        let begins = blocks.and_then(|blocks| blocks.get(&block));
        begins.map_or(&[], Vec::as_slice)
    }
}

/// Numbers an operator's name. Operators that every compiler moves around freely get no number.
fn number(name: String, names: &mut OperatorNames) -> Option<u32> {
    let moves = name.starts_with("local.")
        || name.ends_with(".const")
        || name.starts_with("br")
        || ["drop", "select", "nop", "if", "return"].contains(&name.as_str());
    if moves {
        return None;
    }
    let next = names.len() as u32;
    Some(*names.entry(name).or_insert(next))
}

/// Whether an operator is a comparison.
fn is_test(name: &str) -> bool {
    let Some((_, what)) = name.split_once('.') else {
        return false;
    };
    let tests = ["eqz", "eq", "ne", "lt", "gt", "le", "ge", "is_null"];
    tests.contains(&what.trim_end_matches("_s").trim_end_matches("_u"))
}
