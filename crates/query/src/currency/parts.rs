//! The code of a line, by column.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId};
use afterimage_program::Program;

use crate::body::decode;
use crate::steps::name;
use crate::walk::{code_blocks, positions};
use crate::{Line, ProfileError, Source};

/// An operator of the line that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub op: OpId,
    pub column: u32,
    /// What precedes it in the block is from elsewhere.
    pub is_first: bool,
    /// A number for what it is called, if it is more than a move or a constant.
    pub name: Option<u32>,
}

/// Numbers for what operators are called: the same in both versions.
pub(super) type OperatorNames = HashMap<String, u32>;

/// The code of a line in some functions.
#[derive(Debug, Default)]
pub(super) struct LineParts {
    of: HashMap<FuncId, HashMap<BlockId, Vec<Begin>>>,
}

impl LineParts {
    /// That of these functions. Linear in their bodies.
    pub(super) fn new(
        program: &Program,
        module: &[u8],
        source: &dyn Source,
        line: Line,
        functions: impl Iterator<Item = FuncId>,
        names: &mut OperatorNames,
    ) -> Result<Self, ProfileError> {
        let mut found = Self::default();
        let (mut body, mut operators) = (Vec::new(), Vec::new());
        for function in functions {
            let Some(code) = program.function(function) else {
                continue;
            };
            if found.of.contains_key(&function) {
                continue;
            }
            decode(program, module, code, &mut body)?;
            positions(&body, source, &mut operators);
            let called: Vec<Option<u32>> = program
                .operators(module, code)
                .map(|(_, _, operator)| number(name(&operator), names))
                .collect();
            let mut blocks = HashMap::new();
            for (id, block) in code_blocks(code) {
                let own = &operators[block.ops.start.index()..block.ops.end.index()];
                let executed = own.iter().filter(|op| op.instruction && !op.jump);
                let mut begins = Vec::new();
                let mut before = None;
                for operator in executed {
                    let column = operator
                        .position
                        .filter(|position| Line::from(*position) == line)
                        .map(|position| position.column);
                    if let Some(column) = column {
                        let begin = Begin {
                            op: operator.op,
                            column,
                            is_first: before != Some(column),
                            name: called.get(operator.op.index()).copied().flatten(),
                        };
                        begins.extend((begin.is_first || begin.name.is_some()).then_some(begin));
                    }
                    before = column;
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

    /// Where columns of the line begin in a block, in its order.
    pub(super) fn of(&self, function: FuncId, block: BlockId) -> &[Begin] {
        let blocks = self.of.get(&function);
        let begins = blocks.and_then(|blocks| blocks.get(&block));
        begins.map_or(&[], Vec::as_slice)
    }
}

/// What every compiler moves about as it likes is not counted.
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
