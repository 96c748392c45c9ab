//! Parses the user's notation for block sequences, and finds their occurrences.
//!
//! ```text
//! 2.3.4              blocks that an activation of a function executes consecutively,
//!                    whatever it calls between them
//! main:2.3           … of this function
//! main:2.3>f:0.1     after block 3, main calls f, which begins with its blocks 0 and 1
//! f:8.9<main:4       after block 9, f returns to main, which continues with its block 4; this
//!                    also matches if f throws an exception that main catches
//! main:3>f:0.9<main:4  … the whole call
//! ```
//!
//! Blocks have the numbers that `afterimage cfg` shows.

use afterimage_ids::{BlockId, EntityRef, FuncId};
use afterimage_program::{
    BlockEnd, BlockKind, Callee, Function, NameError, Names, Program, SourceMap,
};
use afterimage_wpp::{
    FindError, Link, Match, Part, Pattern, PatternError, Segments, TargetError, WholePath,
};

use super::Numbering;

/// The reason why a string is not a pattern of a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternTextError {
    /// The text is not a pattern.
    #[error(
        "\"{0}\" is not a sequence of blocks: write numbers with dots between them, as in \
         2.3.4, main:2.3, main:2.3>f:0.1 for a call, or f:0.1<main:4 for a return"
    )]
    Form(String),
    /// The text does not name the function of the blocks.
    #[error(
        "\"{0}\" does not name the function of these blocks: name it with --function or as in \
         main:{0}"
    )]
    Whose(String),
    /// A name in the text fits no function or several functions.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The function is imported, so it has no blocks.
    #[error("{0} is imported, so its blocks are not in this module")]
    Imported(String),
    /// The function does not have this block.
    #[error("{function} has no block {block}: its blocks are 0 to {last}")]
    NoBlock {
        /// The name of the function.
        function: String,
        /// The requested block.
        block: u64,
        /// The function's last block.
        last: u32,
    },
    /// The vertex has no code, so it is not in a trace.
    #[error("vertex {block} of {function} is not code: nothing is executed there")]
    NoCode {
        /// The name of the function.
        function: String,
        /// The vertex without code.
        block: u32,
    },
    /// No edge leads from one block to the next.
    #[error(
        "in {function}, block {to} never follows block {from}{}",
        followed(next)
    )]
    NoEdge {
        /// The name of the function.
        function: String,
        /// The first of the two blocks.
        from: u32,
        /// The second of the two blocks.
        to: u32,
        /// The blocks that may follow.
        next: Vec<u32>,
    },
    /// The block does not call the function that the pattern names.
    #[error("block {block} of {function} does not call {callee}: it {end}")]
    NoCall {
        /// The name of the function.
        function: String,
        /// The block that should call the function.
        block: u32,
        /// The name of the function that the pattern calls.
        callee: String,
        /// The end of the block.
        end: String,
    },
    /// The block cannot be the last block of a call.
    #[error("block {block} of {function} cannot end a call{}", ending(ends))]
    NoEnd {
        /// The name of the function.
        function: String,
        /// The block that should end the call.
        block: u32,
        /// The blocks that can end a call.
        ends: Vec<u32>,
    },
    /// The pattern lets a callee return to a function that did not call it.
    #[error("in the pattern, {caller} calls {callee}, so {callee} cannot return to {function}")]
    NotCaller {
        /// The function that returns.
        callee: String,
        /// The function that called the callee.
        caller: String,
        /// The function to which the callee should return.
        function: String,
    },
    /// No call returns to the block.
    #[error("no call in {function} continues with its block {block}, so nothing returns there")]
    NotBehind {
        /// The name of the function.
        function: String,
        /// The block that should follow a call.
        block: u32,
    },
    /// The block is not the function's first block, where every call begins.
    #[error("{function} begins with block {root}, so no call begins with block {block}")]
    NotFirst {
        /// The name of the function.
        function: String,
        /// The block with which the function begins.
        root: u32,
        /// The requested block.
        block: u32,
    },
    /// The pattern has too many parts.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

fn followed(next: &[u32]) -> String {
    match next {
        [] => ", which nothing follows".to_owned(),
        next => {
            let next: Vec<_> = next.iter().map(u32::to_string).collect();
            format!(", which is followed by {}", next.join(" or "))
        }
    }
}

fn ending(ends: &[u32]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = ends.iter().take(SHOWN).map(u32::to_string).collect();
    match (shown.is_empty(), ends.len() > SHOWN) {
        (true, _) => "; no block can".to_owned(),
        (false, false) if shown.len() == 1 => format!("; only block {} can", shown[0]),
        (false, false) => format!("; only blocks {} can", shown.join(", ")),
        (false, true) => format!("; only some blocks can: {}, …", shown.join(", ")),
    }
}

/// Reads a pattern, and checks that the program's graphs allow it. The blocks of the first part
/// belong to `function`, unless that part names a function.
///
/// # Errors
/// Returns an error if the text is not a pattern, or the pattern can never occur.
pub fn pattern(
    text: &str,
    function: Option<FuncId>,
    program: &Program,
    names: &Names,
    source: &SourceMap<'_>,
) -> Result<Pattern, PatternTextError> {
    let mut parts: Vec<Part> = Vec::new();
    // This is the last part of each activation that is known to be open, the innermost last.
    let mut open: Vec<usize> = Vec::new();
    for (link, name, blocks) in pieces(text)? {
        let own = match name {
            Some(name) => names.find(name, source)?,
            None if parts.is_empty() => {
                function.ok_or_else(|| PatternTextError::Whose(text.to_owned()))?
            }
            None => return Err(PatternTextError::Whose(blocks.to_owned())),
        };
        let name = || names.function(own).to_owned();
        let defined = program.function(own);
        let defined = defined.ok_or_else(|| PatternTextError::Imported(name()))?;
        let blocks = blocks_of(defined, blocks, &name)?;
        match (open.last(), link) {
            (None, _) => {}
            (Some(&caller), Link::Call) => {
                check_call(program, names, &parts[caller], own, &blocks)?;
            }
            (Some(_), Link::Return) => {
                let callee = open.pop().map(|callee| &parts[callee]);
                let caller = open.pop().map(|caller| &parts[caller]);
                check_return(program, names, callee, caller, defined, &blocks)?;
            }
        }
        open.push(parts.len());
        parts.push(Part {
            function: own,
            blocks,
            link,
        });
    }
    Ok(Pattern::new(parts)?)
}

/// A part of a pattern, with its link to the previous part, the name of its function if given, and
/// its blocks.
type Piece<'t> = (Link, Option<&'t str>, &'t str);

/// Splits a pattern into parts. Names may contain `<`, `>`, `:` and dots. So a part ends only if
/// `<`, `>` or the end follows blocks.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, PatternTextError> {
    let wrong = || PatternTextError::Form(text.to_owned());
    let mut pieces = Vec::new();
    let (mut from, mut link) = (0, Link::Call);
    let ends = text.match_indices(['<', '>']).map(|(at, _)| at);
    for end in ends.chain([text.len()]) {
        let part = text.get(from..end).unwrap_or_default();
        let (name, blocks) = match part.rsplit_once(':') {
            Some((name, blocks)) => (Some(name), blocks),
            None => (None, part),
        };
        let number = |block: &str| !block.is_empty() && block.bytes().all(|b| b.is_ascii_digit());
        if blocks.split('.').all(number) && name != Some("") {
            pieces.push((link, name, blocks));
            from = end + 1;
            link = match text.as_bytes().get(end) {
                Some(b'<') => Link::Return,
                _ => Link::Call,
            };
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
            check_edge(function, from, block, name)?;
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Returns the blocks that may be executed right after `from`, ascending. Passes through vertices
/// without code.
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

/// Checks that the previous part of a pattern can call the next part.
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
    // Only the run shows the functions that calls through tables, imports and tail calls reach.
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
            "ends with a tail call, which counts as a call by the function's caller".to_owned()
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

/// Checks that a part can follow the return of the previous part. `caller` is the part that called
/// the previous part, if known.
fn check_return(
    program: &Program,
    names: &Names,
    callee: Option<&Part>,
    caller: Option<&Part>,
    function: &Function,
    blocks: &[BlockId],
) -> Result<(), PatternTextError> {
    let name = |function| names.function(function).to_owned();
    if let Some(callee) = callee
        && let (Some(code), Some(&last)) = (program.function(callee.function), callee.blocks.last())
        && !ends(code, last)
    {
        let code_blocks = code.cfg.blocks.iter();
        let ending =
            code_blocks.filter(|(id, block)| block.kind == BlockKind::Code && ends(code, *id));
        return Err(PatternTextError::NoEnd {
            function: name(callee.function),
            block: last.as_u32(),
            ends: ending.map(|(id, _)| id.as_u32()).collect(),
        });
    }
    let Some(&first) = blocks.first() else {
        return Ok(());
    };
    let Some(caller) = caller else {
        let mut calls = function.cfg.blocks.iter();
        let behind = calls.any(|(id, block)| {
            matches!(block.end, BlockEnd::Call(_)) && successors(function, id).contains(&first)
        });
        return if behind {
            Ok(())
        } else {
            Err(PatternTextError::NotBehind {
                function: name(function.id),
                block: first.as_u32(),
            })
        };
    };
    if caller.function != function.id {
        return Err(PatternTextError::NotCaller {
            callee: callee.map_or_else(String::new, |callee| name(callee.function)),
            caller: name(caller.function),
            function: name(function.id),
        });
    }
    check_edge(
        function,
        *caller.blocks.last().unwrap_or(&first),
        first,
        || name(function.id),
    )
}

/// Checks that one block can follow another.
fn check_edge(
    function: &Function,
    from: BlockId,
    to: BlockId,
    name: impl Fn() -> String,
) -> Result<(), PatternTextError> {
    let next = successors(function, from);
    if next.contains(&to) {
        return Ok(());
    }
    Err(PatternTextError::NoEdge {
        function: name(),
        from: from.as_u32(),
        to: to.as_u32(),
        next: next.iter().map(|next| next.as_u32()).collect(),
    })
}

/// Whether an activation may end with a block, by a return, a tail call, a throw, or an exception
/// that passes through.
fn ends(function: &Function, block: BlockId) -> bool {
    let cfg = &function.cfg;
    let (mut seen, mut next) = (vec![block], vec![block]);
    while let Some(at) = next.pop() {
        for &edge in cfg.graph.out_edges(at) {
            let to = cfg.edges[edge].to;
            match cfg.blocks[to].kind {
                BlockKind::Exit => return true,
                BlockKind::Dispatch(_) if !seen.contains(&to) => {
                    seen.push(to);
                    next.push(to);
                }
                BlockKind::Dispatch(_) | BlockKind::Code => {}
            }
        }
    }
    false
}

fn tail_calls(function: &Function) -> bool {
    let mut blocks = function.cfg.blocks.values();
    blocks.any(|block| matches!(block.end, BlockEnd::TailCall(_)))
}

/// An occurrence of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The place of the occurrence in the path.
    pub at: Match,
    /// The number, from 1, of the call that contains the occurrence, among the calls to the first
    /// part's function.
    pub call: u64,
}

/// The occurrences of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrences {
    /// The pattern that was searched for.
    pub pattern: Pattern,
    /// The number of occurrences.
    pub count: u64,
    /// The first occurrences, in the order of their last blocks.
    pub first: Vec<Occurrence>,
    /// The number of calls to the first part's function.
    pub calls: u64,
}

/// The reason why occurrences cannot be found. `E` is the reason why a segment cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OccurrencesError<E> {
    /// The path cannot be searched.
    #[error(transparent)]
    Find(#[from] FindError<E>),
    /// The calls cannot be located.
    #[error(transparent)]
    Calls(#[from] TargetError),
    /// Code of a function in the pattern was left out of the path.
    #[error(
        "blocks of {0} were left out when the path was built; build the whole path with `afterimage build --lens paths --again`"
    )]
    LeftOut(String),
}

/// Counts the occurrences of a pattern and lists the first `most`, as [`WholePath::find`] does.
/// `numbering` lists the functions with left-out code.
///
/// # Errors
/// Returns an error if the path cannot be read, or blocks of the pattern's functions were left out
/// of it.
pub fn occurrences<S: Segments>(
    path: &WholePath<S>,
    pattern: Pattern,
    most: usize,
    numbering: &Numbering,
    names: &Names,
) -> Result<Occurrences, OccurrencesError<S::Error>> {
    let mut functions = pattern.parts().iter().map(|part| part.function);
    if let Some(function) = functions.find(|&function| numbering.lacks(function)) {
        let name = names.function(function).to_owned();
        return Err(OccurrencesError::LeftOut(name));
    }
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
        let (call, back) = (Link::Call, Link::Return);
        let of = |text| pieces(text).unwrap();
        assert_eq!(of("2.3.4"), [(call, None, "2.3.4")]);
        assert_eq!(
            of("main:2>f:1.2<main:3>g:0"),
            [
                (call, Some("main"), "2"),
                (call, Some("f"), "1.2"),
                (back, Some("main"), "3"),
                (call, Some("g"), "0"),
            ]
        );
        assert_eq!(
            of("a<b>::c:2<<d as e>::x:0>std::x:0"),
            [
                (call, Some("a<b>::c"), "2"),
                (back, Some("<d as e>::x"), "0"),
                (call, Some("std::x"), "0"),
            ]
        );
        for wrong in [
            "", "2.", ".2", "2>", ">2", ":2", "f", "2.x", "main:", "2..3", "2 3", "2<", "<2",
        ] {
            let error = PatternTextError::Form(wrong.to_owned());
            assert_eq!(pieces(wrong), Err(error), "{wrong}");
        }
    }
}
