//! Block sequences as people write them, and where they occur.
//!
//! ```text
//! 2.3.4              blocks that an activation of a function executes one after the other,
//!                    whatever it calls between them
//! main:2.3           … of this function
//! main:2.3>f:1.2     after block 3, main calls f, which begins with its blocks 1 and 2
//! ```
//! Blocks have the numbers that `afterimage cfg` shows.

use afterimage_ids::{BlockId, EntityRef, FuncId};
use afterimage_program::{BlockEnd, BlockKind, Callee, Function, NameError, Names, Program};
use afterimage_wpp::{
    FindError, Match, Part, Pattern, PatternError, Segments, TargetError, WholePath,
};

/// Why a text is no pattern of a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternTextError {
    /// It is not written as a pattern is.
    #[error(
        "\"{0}\" is no sequence of blocks: write numbers with dots between them, as in 2.3.4, main:2.3, or main:2.3>f:0.1"
    )]
    Form(String),
    /// Blocks are those of a function.
    #[error(
        "\"{0}\" does not say whose blocks these are: name the function, with --function or as in main:{0}"
    )]
    Whose(String),
    /// It names no function, or several.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An imported function has no blocks.
    #[error("{0} is imported: it has no blocks here")]
    Imported(String),
    /// The function has no such block.
    #[error("{function} has no block {block}: its blocks are 0 to {last}")]
    NoBlock {
        /// The function's name.
        function: String,
        /// The block that was asked for.
        block: u64,
        /// The last one.
        last: u32,
    },
    /// Vertices that are no code are not in a trace.
    #[error("vertex {block} of {function} is no code: nothing is executed there")]
    NoCode {
        /// The function's name.
        function: String,
        /// The vertex.
        block: u32,
    },
    /// No edge leads from one block to the next.
    #[error(
        "in {function} block {to} never follows block {from}{}",
        followed(next)
    )]
    NoEdge {
        /// The function's name.
        function: String,
        /// The block before.
        from: u32,
        /// The block after.
        to: u32,
        /// Which blocks may follow.
        next: Vec<u32>,
    },
    /// The block does not call that function.
    #[error("block {block} of {function} does not call {callee}: it {end}")]
    NoCall {
        /// The function's name.
        function: String,
        /// The block.
        block: u32,
        /// The name of the function that is said to be called.
        callee: String,
        /// How the block ends.
        end: String,
    },
    /// A call begins with the function's first block.
    #[error("{function} begins with block {root}, so no call begins with block {block}")]
    NotFirst {
        /// The function's name.
        function: String,
        /// What it begins with.
        root: u32,
        /// What was asked for.
        block: u32,
    },
    /// There are too many parts.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

fn followed(next: &[u32]) -> String {
    match next {
        [] => ", which none follows".to_owned(),
        next => {
            let next: Vec<_> = next.iter().map(u32::to_string).collect();
            format!("; what follows is {}", next.join(" or "))
        }
    }
}

/// Reads a pattern, and makes sure that the program's graphs allow it. `function`: whose blocks the first part has, unless it says so.
///
/// # Errors
/// If it is none, or can never occur.
pub fn pattern(
    text: &str,
    function: Option<FuncId>,
    program: &Program,
    names: &Names,
) -> Result<Pattern, PatternTextError> {
    let mut parts: Vec<Part> = Vec::new();
    for (name, blocks) in pieces(text)? {
        let own = match name {
            Some(name) => names.find(name)?,
            None if parts.is_empty() => {
                function.ok_or_else(|| PatternTextError::Whose(text.to_owned()))?
            }
            None => return Err(PatternTextError::Whose(blocks.to_owned())),
        };
        let name = || names.function(own).to_owned();
        let defined = program.function(own);
        let defined = defined.ok_or_else(|| PatternTextError::Imported(name()))?;
        let blocks = blocks_of(defined, blocks, &name)?;
        if let Some(caller) = parts.last() {
            check_call(program, names, caller, own, &blocks)?;
        }
        parts.push(Part {
            function: own,
            blocks,
        });
    }
    Ok(Pattern::new(parts)?)
}

/// A function's name, if there is one, and its blocks.
type Piece<'t> = (Option<&'t str>, &'t str);

/// Cuts a text where a part ends. Names may hold `>`, `:` and dots too, so what counts is that blocks come before a `>` or the end.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, PatternTextError> {
    let wrong = || PatternTextError::Form(text.to_owned());
    let mut pieces = Vec::new();
    let mut from = 0;
    let ends = text.match_indices('>').map(|(at, _)| at);
    for end in ends.chain([text.len()]) {
        let part = text.get(from..end).unwrap_or_default();
        let (name, blocks) = match part.rsplit_once(':') {
            Some((name, blocks)) => (Some(name), blocks),
            None => (None, part),
        };
        let number = |block: &str| !block.is_empty() && block.bytes().all(|b| b.is_ascii_digit());
        if blocks.split('.').all(number) && name != Some("") {
            pieces.push((name, blocks));
            from = end + 1;
        }
    }
    if from <= text.len() {
        return Err(wrong());
    }
    Ok(pieces)
}

fn blocks_of(
    function: &Function,
    text: &str,
    name: &impl Fn() -> String,
) -> Result<Vec<BlockId>, PatternTextError> {
    let cfg = &function.cfg;
    let mut blocks: Vec<BlockId> = Vec::new();
    for number in text.split('.') {
        let number = number.parse().unwrap_or(u64::MAX);
        let block = usize::try_from(number)
            .ok()
            .filter(|&b| b < cfg.blocks.len());
        let Some(block) = block.map(BlockId::new) else {
            let code = cfg.blocks.iter().rev();
            let mut code = code.filter(|(_, block)| block.kind == BlockKind::Code);
            return Err(PatternTextError::NoBlock {
                function: name(),
                block: number,
                last: code.next().map_or(0, |(id, _)| id.as_u32()),
            });
        };
        if cfg.blocks[block].kind != BlockKind::Code {
            return Err(PatternTextError::NoCode {
                function: name(),
                block: block.as_u32(),
            });
        }
        if let Some(&from) = blocks.last() {
            let next = successors(function, from);
            if !next.contains(&block) {
                return Err(PatternTextError::NoEdge {
                    function: name(),
                    from: from.as_u32(),
                    to: block.as_u32(),
                    next: next.iter().map(|next| next.as_u32()).collect(),
                });
            }
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// The blocks that may be executed after one, ascending: what stands between is no code.
fn successors(function: &Function, from: BlockId) -> Vec<BlockId> {
    let cfg = &function.cfg;
    let mut found = Vec::new();
    let mut seen = vec![from];
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        for &edge in cfg.graph.out_edges(at) {
            let to = cfg.edges[edge].to;
            match cfg.blocks[to].kind {
                BlockKind::Code => found.push(to),
                BlockKind::Exit => {}
                BlockKind::Dispatch(_) if seen.contains(&to) => {}
                BlockKind::Dispatch(_) => {
                    seen.push(to);
                    next.push(to);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Makes sure that a part can be called by the one before.
fn check_call(
    program: &Program,
    names: &Names,
    caller: &Part,
    callee: FuncId,
    blocks: &[BlockId],
) -> Result<(), PatternTextError> {
    let name = |function| names.function(function).to_owned();
    let root = program
        .function(callee)
        .map(|callee| callee.cfg.graph.root());
    if let (Some(root), Some(&block)) = (root, blocks.first())
        && root != block
    {
        return Err(PatternTextError::NotFirst {
            function: name(callee),
            root: root.as_u32(),
            block: block.as_u32(),
        });
    }
    let (Some(&last), Some(function)) = (caller.blocks.last(), program.function(caller.function))
    else {
        return Ok(());
    };
    // Whom a call through a table reaches, and what imports and tail calls lead to, only the run tells.
    let end = match function.cfg.blocks[last].end {
        BlockEnd::Call(Callee::Direct(called)) if called == callee => return Ok(()),
        BlockEnd::Call(Callee::Direct(called))
            if program
                .function(called)
                .is_some_and(|called| !tail_calls(called)) =>
        {
            format!("calls {}", names.function(called))
        }
        BlockEnd::Call(_) => return Ok(()),
        BlockEnd::TailCall(_) => {
            "ends the call with a tail call, which is made by its caller".to_owned()
        }
        _ => "calls nothing".to_owned(),
    };
    Err(PatternTextError::NoCall {
        function: name(caller.function),
        block: last.as_u32(),
        callee: name(callee),
        end,
    })
}

fn tail_calls(function: &Function) -> bool {
    let mut blocks = function.cfg.blocks.values();
    blocks.any(|block| matches!(block.end, BlockEnd::TailCall(_)))
}

/// An occurrence of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// When it is.
    pub at: Match,
    /// Which call of the first part's function it is in, from 1.
    pub call: u64,
}

/// The occurrences of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrences {
    /// What was looked for.
    pub pattern: Pattern,
    /// How many there are.
    pub count: u64,
    /// The first ones, in the order of their last blocks.
    pub first: Vec<Occurrence>,
    /// How many calls the first part's function had.
    pub calls: u64,
}

/// Why they cannot be found. `E` is why a segment cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OccurrencesError<E> {
    /// The path.
    #[error(transparent)]
    Find(#[from] FindError<E>),
    /// The calls.
    #[error(transparent)]
    Calls(#[from] TargetError),
}

/// Counts the occurrences of a pattern and lists the first `most`. As [`WholePath::find`].
///
/// # Errors
/// If the path cannot be read.
pub fn occurrences<S: Segments>(
    path: &WholePath<S>,
    pattern: Pattern,
    most: usize,
) -> Result<Occurrences, OccurrencesError<S::Error>> {
    let found = path.find(&pattern, most)?;
    let calls = path.activations(pattern.parts()[0].function)?;
    let first = found.first.into_iter().map(|at| {
        let call = calls.rank(at.entered).map_err(FindError::Path)?;
        Ok::<_, FindError<S::Error>>(Occurrence { at, call })
    });
    Ok(Occurrences {
        count: found.count,
        first: first.collect::<Result<_, _>>()?,
        calls: calls.count(),
        pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_blocks_do() {
        let of = |text| pieces(text).unwrap();
        assert_eq!(of("2.3.4"), [(None, "2.3.4")]);
        assert_eq!(
            of("main:2>f:1.2"),
            [(Some("main"), "2"), (Some("f"), "1.2")]
        );
        assert_eq!(
            of("a<b>::c:2>std::x:0"),
            [(Some("a<b>::c"), "2"), (Some("std::x"), "0")]
        );
        for wrong in [
            "", "2.", ".2", "2>", ">2", ":2", "f", "2.x", "main:", "2..3", "2 3",
        ] {
            let error = PatternTextError::Form(wrong.to_owned());
            assert_eq!(pieces(wrong), Err(error), "{wrong}");
        }
    }
}
