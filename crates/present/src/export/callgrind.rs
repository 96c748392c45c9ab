//! Writes costs in the format of Callgrind, for `callgrind_annotate` and KCachegrind.
//!
//! A profile has one event, `Instr` (executed WebAssembly instructions). It has no calls, because
//! edge counts do not determine the total cost of a call. For gprof's estimate of this cost, see
//! Ponder and Fateman 1988. A path has the event `Blocks` (executed basic blocks), and calls with
//! their inclusive cost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;

use afterimage_profile::{Line, Profile, ProfileError, Scope};
use afterimage_program::FileId;
use afterimage_replay::whole_path::{ContextTree, Frame};

use super::Frames;
use crate::PresentError;
use crate::plain::escaped;

/// Writes the executed instructions by function, file and line.
///
/// # Errors
/// Returns an error if `out` fails or the profile cannot be evaluated.
pub fn callgrind(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
) -> Result<(), PresentError> {
    let rows = profile.function_rows(scope)?;
    let sum = rows.iter().map(|row| row.instructions).sum::<u64>();
    writeln!(out, "# callgrind format\nversion: 1\ncreator: afterimage")?;
    writeln!(
        out,
        "# Calls are left out: their total costs do not follow from counts; afterimage export --format callgrind has them."
    )?;
    writeln!(
        out,
        "positions: line\nevent: Instr : executed WebAssembly instructions"
    )?;
    writeln!(out, "events: Instr\nsummary: {sum}")?;
    let mut files = Ids::default();
    let mut functions = Ids::default();
    let mut operators = Vec::new();
    for row in rows.iter().filter(|row| row.instructions > 0) {
        let Some((function, _, counts)) = profile.function(row.function) else {
            continue;
        };
        profile.operators(function, counts, &mut operators)?;
        let mut costs = BTreeMap::<(Option<FileId>, u32), u64>::new();
        for operator in operators.iter().filter(|operator| operator.instruction) {
            let key = operator
                .position
                .map_or((None, 0), |at| (Some(at.file), at.line));
            let cost = costs.entry(key).or_default();
            *cost = cost
                .checked_add(operator.count)
                .ok_or(ProfileError::Overflow {
                    function: row.function,
                })?;
        }
        let path = |file: Option<FileId>| file.map_or("???", |file| profile.file(file));
        let home = row.position.map(|position| position.file);
        writeln!(out, "\nfl={}", files.of(path(home)))?;
        writeln!(
            out,
            "fn={}",
            functions.of(profile.names().function(row.function))
        )?;
        let mut current = home;
        for ((file, line), cost) in costs.into_iter().filter(|(_, cost)| *cost > 0) {
            if file != current {
                // `fi` leaves the function's own file, and `fe` returns to it.
                let key = if file == home { "fe" } else { "fi" };
                writeln!(out, "{key}={}", files.of(path(file)))?;
                current = file;
            }
            writeln!(out, "{line} {cost}")?;
        }
    }
    writeln!(out, "\ntotals: {sum}")?;
    Ok(())
}

/// A caller or callee. The variants are in output order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Frame(Frame),
    /// Calls that the tree merges because they are short or deep.
    Shorter,
    Deeper,
    LeftOut,
}

/// The blocks that a caller executes itself, and its calls, by line. The key `None` means the line
/// of the caller's declaration.
#[derive(Clone, Debug, Default)]
struct Cost {
    own: BTreeMap<Option<Line>, u64>,
    /// For each line and callee, the number of calls and the number of blocks executed in them.
    calls: BTreeMap<Option<Line>, BTreeMap<Party, (u64, u64)>>,
}

/// Writes the blocks that each function executes itself, by line. For each caller and callee, also
/// writes the number of calls and their inclusive cost. A call inside another call to the same
/// function costs nothing, because its blocks belong to the outermost call. So the costs of a
/// function's calls add up to its inclusive cost, as `callgrind_annotate` expects. An inlined
/// function appears as a function with 1 call, because Callgrind's tools would add the cost of 0
/// calls to the caller's own cost. Merged calls and gaps in the path have names in brackets. A
/// block without a line is at the line where its function is declared. O(contexts · log).
///
/// # Errors
/// Returns an error if `out` fails.
pub fn callgrind_calls(
    out: &mut dyn Write,
    tree: &ContextTree,
    frames: &Frames<'_>,
) -> Result<(), PresentError> {
    let costs = costs(tree, frames);
    let limits = tree.limits;
    let name = |party: Party| match party {
        Party::Frame(frame) => frames.name(frame).to_owned(),
        Party::Shorter => format!("[calls below {} blocks]", limits.min),
        Party::Deeper => format!("[calls deeper than {}]", limits.depth),
        Party::LeftOut => "[left out]".to_owned(),
    };
    let declared = |party: Party| match party {
        Party::Frame(frame) => frames.declared(frame).map(Line::from),
        _ => None,
    };
    let place = |line: Option<Line>| {
        let file = line.and_then(|line| frames.source.files().get(line.file.0 as usize));
        file.zip(line)
            .map_or(("???", 0), |(file, line)| (file, line.number))
    };
    let sum: u64 = costs.values().flat_map(|cost| cost.own.values()).sum();
    writeln!(out, "# callgrind format\nversion: 1\ncreator: afterimage")?;
    writeln!(
        out,
        "positions: line\nevent: Blocks : executed basic blocks"
    )?;
    writeln!(out, "events: Blocks\nsummary: {sum}")?;
    let (mut files, mut functions) = (Ids::default(), Ids::default());
    for (caller, cost) in &costs {
        let (home, _) = place(declared(*caller));
        writeln!(out, "\nfl={}", files.of(home))?;
        writeln!(out, "fn={}", functions.of(&name(*caller)))?;
        let mut current = home;
        let lines: BTreeSet<_> = cost.own.keys().chain(cost.calls.keys()).collect();
        for at in lines {
            let (file, line) = place(at.or(declared(*caller)));
            if file != current {
                // `fi` leaves the function's own file, and `fe` returns to it.
                let key = if file == home { "fe" } else { "fi" };
                writeln!(out, "{key}={}", files.of(file))?;
                current = file;
            }
            if let Some(own) = cost.own.get(at) {
                writeln!(out, "{line} {own}")?;
            }
            for (callee, (calls, blocks)) in cost.calls.get(at).into_iter().flatten() {
                let (file, declared) = place(declared(*callee));
                writeln!(out, "cfi={}", files.of(file))?;
                writeln!(out, "cfn={}", functions.of(&name(*callee)))?;
                writeln!(out, "calls={} {declared}\n{line} {blocks}", calls.max(&1))?;
            }
        }
    }
    writeln!(out, "\ntotals: {sum}")?;
    Ok(())
}

/// Returns the costs of all functions.
fn costs(tree: &ContextTree, frames: &Frames<'_>) -> BTreeMap<Party, Cost> {
    let mut costs: BTreeMap<Party, Cost> = BTreeMap::new();
    let nested = nested(tree, frames);
    // The function and the line of each context.
    let mut places: Vec<(Party, Option<Line>)> = Vec::with_capacity(tree.contexts.len());
    for (context, nested) in tree.contexts.iter().zip(nested) {
        let around = context.parent.map(|parent| places[parent]);
        let here = match (context.frame, around) {
            (Frame::Line(line), Some((function, _))) => (function, Some(line)),
            (frame, _) => (Party::Frame(frame), None),
        };
        places.push(here);
        let (me, line) = here;
        if context.own > 0 {
            let own = &mut costs.entry(me).or_default().own;
            *own.entry(line).or_default() += context.own;
        }
        if let Some((caller, at)) = around.filter(|_| line.is_none()) {
            let calls = costs.entry(caller).or_default().calls.entry(at);
            let (calls, blocks) = calls.or_default().entry(me).or_default();
            *calls += context.calls;
            *blocks += if nested { 0 } else { context.total };
        }
        let (shorter, deeper) = (context.shorter, context.deeper);
        let left_out = context.left_out + shorter.left_out + deeper.left_out;
        for (callee, calls, blocks) in [
            (
                Party::Shorter,
                shorter.calls,
                shorter.blocks - shorter.left_out,
            ),
            (Party::Deeper, deeper.calls, deeper.blocks - deeper.left_out),
            (Party::LeftOut, 0, left_out),
        ] {
            if blocks > 0 {
                *costs
                    .entry(callee)
                    .or_default()
                    .own
                    .entry(None)
                    .or_default() += blocks;
                let at = costs.entry(me).or_default().calls.entry(line).or_default();
                let known = at.entry(callee).or_default();
                *known = (known.0 + calls, known.1 + blocks);
            }
        }
    }
    costs
}

/// Returns, for each context, whether it is inside another context of the same function. The format
/// identifies functions by name and file.
fn nested(tree: &ContextTree, frames: &Frames<'_>) -> Vec<bool> {
    // Skip contexts that are lines, not functions.
    let mut open: Vec<Option<(&str, Option<FileId>)>> = Vec::new();
    let mut active: HashMap<(&str, Option<FileId>), usize> = HashMap::new();
    let mut nested = vec![false; tree.contexts.len()];
    for (at, depth) in tree.walk() {
        for left in open.drain(depth.min(open.len())..).flatten() {
            active.entry(left).and_modify(|count| *count -= 1);
        }
        let frame = tree.contexts[at].frame;
        if let Frame::Line(_) = frame {
            open.push(None);
            continue;
        }
        let function = (frames.name(frame), frames.declared(frame).map(|at| at.file));
        open.push(Some(function));
        let count = active.entry(function).or_default();
        nested[at] = *count > 0;
        *count += 1;
    }
    nested
}

/// The format's name compression: `(1) name` the first time, then `(1)`.
#[derive(Default)]
struct Ids(HashMap<String, usize>);

impl Ids {
    fn of(&mut self, name: &str) -> String {
        let name = escaped(name).into_owned();
        let next = self.0.len() + 1;
        match self.0.get(&name) {
            Some(id) => format!("({id})"),
            None => {
                let text = format!("({next}) {name}");
                self.0.insert(name, next);
                text
            }
        }
    }
}
