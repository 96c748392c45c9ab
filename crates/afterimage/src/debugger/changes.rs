//! Finds where a variable that is not in memory gets another value during a call. Such a variable
//! is in locals, on the operand stack, or a constant.
//!
//! The value can change only where an operator sets a local, or where the debug information names
//! another place. These places are known before the run is examined. So only their executions are
//! examined, nearest first.

use std::collections::{HashMap, HashSet};
use std::ops::Range as Span;

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId, OrigOffset};
use afterimage_program::BlockKind;
use afterimage_replay::state::{
    Moment, Path, PathError, Unavailable, Variable, VariableKind, locals_of,
};
use afterimage_replay::steps::Range;
use afterimage_replay::whole_path::{FileSegments, Window};
use afterimage_wpp::{Occurrences, Visit};
use anyhow::{Context, Result, anyhow, bail};

use super::{Debugger, Direction, Position};
use crate::memory::variable::{NotInMemory, call, in_memory, is_local};
use crate::wasm_local::wasm_local;

/// The number of places to examine in the first pass. Each later pass examines twice as many as the
/// previous one, up to [`MOST`].
const FIRST: usize = 1 << 6;
const MOST: usize = 1 << 12;
/// If there are this many places, a pass examines no place that is more than [`SPAN`] blocks beyond
/// the first, because following the run that far may be unnecessary.
const FEW: usize = 2;
const SPAN: u64 = 1 << 17;
/// The maximum number of bytes of a variable.
const LARGEST: usize = 1 << 16;

/// A variable as a frame names it.
#[derive(Clone, Copy)]
pub(crate) struct Named<'n> {
    /// The name, or an expression that begins with it.
    pub name: &'n str,
    /// The number of inlined calls that lead to the frame. `None` stands for the innermost frame.
    pub inlined: Option<u32>,
}

/// A variable of a call that is not in memory.
pub(crate) struct Changing<'a> {
    what: What,
    function: FuncId,
    /// The time at which the call began.
    entered: u64,
    /// The first operator of the call.
    begin: Position,
    /// The last operator of each block that ends by setting a local of the variable.
    sets_at_end: HashMap<BlockId, u32>,
    /// The executions of the nodes of the path with blocks in `places`.
    executions: Occurrences<'a, FileSegments>,
    /// The places where the value can change, by block, ascending.
    places: HashMap<BlockId, Vec<Place>>,
    /// Whether the variable is in locals or a constant at the position.
    pub(crate) is_in_locals: bool,
}

enum What {
    /// A variable of the source.
    Variable(Variable),
    /// A WebAssembly local.
    Local(u32),
}

/// A place where the value can change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The operator before which the new value is known.
    after: u32,
    /// The operator that sets the value. If no operator does, this is `after`.
    by: u32,
}

/// The value of a variable at a position, as far as it is known.
#[derive(Clone, PartialEq, Eq)]
enum Known {
    Value(Vec<u8>),
    /// The debug information states no place for the variable.
    Nothing,
    /// The variable is not in scope.
    OutOfScope,
}

/// Code in which a variable's value is the same unless a local is set.
#[derive(PartialEq, Eq)]
struct Region {
    in_scope: bool,
    /// The number of the extent for which the debug information gives a location.
    extent: Option<usize>,
    /// The operator, if the location depends on more than locals.
    momentary: Option<OpId>,
}

/// A change of a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The position right before the operator that sets the value. If no operator does, because the
    /// debug information states the value, this is `after`.
    pub by: Position,
    /// The position from which the new value is known.
    pub after: Position,
}

/// Follows the value of a variable from a position on.
struct Search {
    direction: Direction,
    /// The beginning of the call.
    begin: Position,
    value: Option<Vec<u8>>,
    /// In a backward search, the earliest place so far from which on the variable has `value`.
    since: Option<Change>,
}

impl Search {
    /// Passes the next place. Returns the change if one was found.
    fn pass(&mut self, place: Change, known: Known) -> Option<Change> {
        match (self.direction, known) {
            (Direction::Forward, Known::Value(value)) => {
                if place.by == self.begin {
                    self.value = Some(value);
                } else if self.value.as_ref() != Some(&value) {
                    return Some(place);
                }
            }
            (Direction::Forward, Known::OutOfScope) => self.value = None,
            (Direction::Backward, Known::Value(value)) => match &self.value {
                Some(later) if *later != value => return self.since,
                _ => {
                    self.value = Some(value);
                    self.since = Some(place);
                }
            },
            (Direction::Backward, Known::OutOfScope) => {
                if self.since.is_some() {
                    return self.since;
                }
            }
            (_, Known::Nothing) => {}
        }
        None
    }
}

impl<'a> Debugger<'a> {
    /// Finds the places where a variable that is in scope at a position can change during the
    /// innermost call there. O(operators of the function · locations of the variable + nodes of the
    /// path).
    ///
    /// # Errors
    /// Returns an error if there is no such variable, or the path cannot be read.
    pub(crate) fn changing(&self, at: Position, named: Named<'_>) -> Result<Changing<'a>> {
        let (function, offset) = self.place(at)?;
        let code = self.run.program.function(function);
        let code = code.context("a function is not in the program")?;
        let what = self.changing_variable((function, offset), named)?;
        let mut locals = HashSet::new();
        let mut extents = Vec::new();
        // The extents in which any operator may change the value.
        let mut momentary = Vec::new();
        let mut scope: &[Span<OrigOffset>] = &[];
        match &what {
            What::Local(local) => {
                locals.insert(*local);
            }
            What::Variable(variable) => {
                let known = self.known_variables()?;
                extents = known.extents(variable).unwrap_or_default();
                scope = &variable.scope;
                let starts = extents.iter().map(|range| (Some(range.start), Some(range)));
                // A list of locations may have an entry for all other code.
                for (at, extent) in starts.chain([(None, None)]) {
                    match locals_of(known, variable, at) {
                        Some(all) => locals.extend(all),
                        None => momentary.push(extent.cloned()),
                    }
                }
            }
        }
        // The value is the same in a region unless a local is set.
        let region = |op: OpId, offset: OrigOffset| Region {
            in_scope: scope.is_empty() || scope.iter().any(|range| range.contains(&offset)),
            extent: extents.iter().position(|range| range.contains(&offset)),
            momentary: momentary
                .iter()
                .any(|range| range.as_ref().is_none_or(|range| range.contains(&offset)))
                .then_some(op),
        };
        // The region of each operator, and whether it sets a local.
        let mut sites = Vec::new();
        for (op, offset, operator) in self.run.program.operators(self.run.module, code) {
            use wasmparser::Operator as O;
            let sets = matches!(
                operator,
                O::LocalSet { local_index } | O::LocalTee { local_index }
                    if locals.contains(&local_index)
            );
            sites.push((region(op, offset), sets));
        }
        let sets = |op: OpId| sites.get(op.index()).is_some_and(|(_, sets)| *sets);
        let region = |op: OpId| sites.get(op.index()).map(|(region, _)| region);
        let graph = &code.cfg.graph;
        let ends_elsewhere = |block: BlockId, first: OpId| {
            graph.predecessors(block).any(|before| {
                let ops = &code.cfg.blocks[before].ops;
                let last = ops.end.index().checked_sub(1).map(OpId::new);
                let last = last.filter(|last| *last >= ops.start);
                last.is_none_or(|last| region(last) != region(first) || sets(last))
            })
        };
        let mut places: HashMap<BlockId, Vec<Place>> = HashMap::new();
        let mut sets_at_end = HashMap::new();
        for (id, block) in code.cfg.blocks.iter() {
            if block.kind != BlockKind::Code {
                continue;
            }
            let mut before: Option<OpId> = None;
            let mut own = Vec::new();
            for op in (block.ops.start.index()..block.ops.end.index()).map(OpId::new) {
                let place = match before {
                    None if id == graph.root() || ends_elsewhere(id, op) => Some(op),
                    Some(before) if sets(before) => Some(before),
                    Some(before) if region(before) != region(op) => Some(op),
                    _ => None,
                };
                own.extend(place.map(|by| Place {
                    after: op.as_u32(),
                    by: by.as_u32(),
                }));
                before = Some(op);
            }
            if let Some(last) = before.filter(|last| sets(*last)) {
                sets_at_end.insert(id, last.as_u32());
            }
            if !own.is_empty() {
                places.insert(id, own);
            }
        }
        let nodes = self.path().nodes().iter();
        let own = nodes.filter(|(_, node)| node.function == function);
        let targets = own.filter_map(|(id, node)| {
            let first = node.blocks.iter().position(|it| places.contains_key(it));
            Some((id, first? as u64))
        });
        let executions = self.path().executions(targets)?;
        let mut cursor = self.path().cursor();
        cursor.seek(at.time)?;
        let innermost = cursor.innermost()?;
        let innermost = innermost.context("a position is outside of all calls")?;
        // The root may be empty. Then the first place is in the block after it.
        let root = &code.cfg.blocks[graph.root()].ops;
        let begin = match root.start < root.end {
            true => Position::new(innermost.entered, root.start),
            false => {
                let time = innermost.entered.saturating_add(1).min(self.length());
                let first = self.ops(self.block(time)?).unwrap_or_default().start;
                Position::new(time, OpId::from_u32(first))
            }
        };
        Ok(Changing {
            what,
            function,
            begin,
            entered: innermost.entered,
            sets_at_end,
            executions,
            places,
            is_in_locals: region(OpId::from_u32(at.op)).is_some_and(|here| {
                here.momentary.is_none() && (here.extent.is_some() || extents.is_empty())
            }),
        })
    }

    /// Returns the bytes of memory that hold a variable at a position. If the variable is local,
    /// also returns its call, because the bytes hold the variable only during that call. Returns
    /// `None` if the variable is not in memory.
    ///
    /// # Errors
    /// Returns an error if there is no such variable, or the run cannot be followed.
    pub(crate) fn memory_of(
        &self,
        at: Position,
        named: Named<'_>,
    ) -> Result<Option<(Range, Option<Window>)>> {
        let expression = named.name;
        let (function, offset) = self.place(at)?;
        if wasm_local(self.session(), self.program.names, function, expression).is_some() {
            return Ok(None);
        }
        let known = self.known_variables()?;
        let (variable, path) = self.variable_of((function, offset), named)?;
        let mut found = None;
        self.at_each(&[(self.visit(at)?, at)], |_, moment| {
            let look = || {
                let whole = known.locate(&variable, Some(offset), moment)?;
                let object = known.follow(&path, whole, moment)?;
                let local = is_local(known, (&variable, &object), moment)?;
                Ok::<_, PathError>((object, local))
            };
            found = Some(look());
            Ok(())
        })?;
        let found = found.with_context(|| format!("the run ended before t={}", at.time))?;
        let (object, is_local) = match found {
            Ok(found) => found,
            Err(PathError::Unavailable(
                Unavailable::OptimisedOut | Unavailable::NotHere { .. },
            )) => {
                return Ok(None);
            }
            Err(why) => bail!("{expression}: {why}"),
        };
        match in_memory(expression, &object) {
            Ok(range) => {
                let window = is_local.then(|| call(self.session(), at.time));
                Ok(Some((range, window.transpose()?)))
            }
            Err(NotInMemory::Elsewhere(_)) => Ok(None),
            Err(NotInMemory::Size(why)) => bail!(why),
        }
    }

    fn visit(&self, at: Position) -> Result<Visit> {
        let visit = self.path().cursor().seek(at.time)?;
        visit.context("a position is not in the path")
    }

    /// Finds the variable with which an expression begins, and the expression that begins with it.
    fn variable_of(
        &self,
        (function, offset): (FuncId, OrigOffset),
        Named { name, inlined }: Named<'_>,
    ) -> Result<(Variable, Path)> {
        let path: Path = name.parse().map_err(|error| anyhow!("{error}"))?;
        let known = self.known_variables()?;
        let scopes = self.scopes(function);
        let scopes = scopes.as_deref().ok();
        if let (Some(scopes), Some(inlined)) = (scopes, inlined) {
            let mut all = known.in_scope_of(scopes, offset)?.into_iter();
            let found = all.find(|one| one.inlined <= inlined && one.name == path.variable);
            if let Some(variable) = found {
                return Ok((variable, path));
            }
        }
        let found = known.begin(&path, scopes.map(|scopes| (scopes, offset)));
        let (variable, path) = found.map_err(|why| anyhow!("{name}: {why}"))?;
        Ok((variable, path.into_owned()))
    }

    fn changing_variable(
        &self,
        (function, offset): (FuncId, OrigOffset),
        named: Named<'_>,
    ) -> Result<What> {
        let (session, names) = (self.session(), self.program.names);
        if let Some(local) = wasm_local(session, names, function, named.name) {
            return Ok(What::Local(local));
        }
        let (variable, path) = self.variable_of((function, offset), named)?;
        let name = named.name;
        if variable.kind == VariableKind::Global {
            bail!("{name} is not a variable of the call");
        }
        if !path.is_variable() {
            bail!("{name} is a part of a variable that is not in memory: name the variable");
        }
        Ok(What::Variable(variable))
    }

    /// Returns the next or last change of the variable's value. The value that a call begins with
    /// is not a change. Examines the executions of the variable's places, nearest first. The search
    /// forward may end with `None` once it is beyond `bound`.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed, or the search was interrupted.
    pub(crate) fn nearest_change(
        &self,
        changing: &Changing<'a>,
        from: Position,
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<Option<Change>> {
        let from = Position { ahead: 0, ..from };
        let mut search = Search {
            direction,
            begin: changing.begin,
            value: None,
            since: None,
        };
        let mut own = self.position_in(changing, from)?;
        let here = self.visit(from)?;
        let all = &changing.executions;
        // The numbers of the executions that are left.
        let (mut low, mut high) = match direction {
            Direction::Forward => {
                let first = here.start.max(changing.entered);
                let last = bound.map(|bound| all.rank(bound.time)).transpose()?;
                (all.rank(first - 1)? + 1, last.unwrap_or(all.count()))
            }
            // Later calls of the same function do not count.
            Direction::Backward => match own {
                Some(_) => (1, all.rank(from.time)?),
                None => (1, all.rank(self.end_of(changing.entered)?.min(from.time))?),
            },
        };
        if direction == Direction::Backward && own == Some(from) {
            // If the value changes at `from` itself, search for the value before this change.
            let mut here = self.changes_in(changing, here)?.into_iter();
            own = own.filter(|_| here.all(|change| change.by != from || change.after != from));
        }
        let mut own = match own {
            Some(own) => Some((self.visit(own)?, own)),
            None => None,
        };
        let mut most = FIRST;
        while low <= high {
            self.check()?;
            let mut passed = self.executed(changing, (&mut low, &mut high), direction, most)?;
            most = (2 * most).min(MOST);
            passed.retain(|(_, one)| match direction {
                Direction::Forward => one.after > from,
                Direction::Backward => one.by < from && one.after <= from,
            });
            let mut looks = Vec::from_iter(own.take().map(|own| (own, None)));
            let changes = passed.into_iter();
            let changes = changes.map(|(visit, one)| ((visit, one.after), Some(one)));
            match direction {
                Direction::Forward => looks.extend(changes),
                Direction::Backward => looks.splice(0..0, changes).for_each(drop),
            }
            let positions = Vec::from_iter(looks.iter().map(|(at, _)| *at));
            let mut seen: Vec<Option<Known>> = vec![None; looks.len()];
            self.at_each(&positions, |number, moment| {
                seen[number] = Some(self.value_of(changing, moment)?);
                Ok(())
            })?;
            let mut both = Vec::from_iter(looks.iter().zip(seen));
            if direction == Direction::Backward {
                both.reverse();
            }
            for ((_, one), known) in both {
                match (one, known) {
                    (None, Some(Known::Value(value))) => search.value = Some(value),
                    (Some(one), Some(known)) => {
                        if let Some(found) = search.pass(*one, known) {
                            return Ok(Some(found));
                        }
                    }
                    _ => {}
                }
            }
        }
        // The call began with this value, or the variable was set first there.
        Ok(search.since.filter(|since| since.by != changing.begin))
    }

    /// Returns the position of the variable's own call when the run is at `from`. Returns `None` if
    /// the call is not open at `from`.
    fn position_in(&self, changing: &Changing<'a>, from: Position) -> Result<Option<Position>> {
        let mut cursor = self.path().cursor();
        cursor.seek(from.time)?;
        let open = cursor.stack()?;
        let mut open = open.iter().rev();
        let inside = open.position(|call| call.entered == changing.entered);
        Ok(match inside {
            None => None,
            Some(0) => Some(from),
            Some(inside) => {
                let (frames, _) = self.stack(from, inside + 1)?;
                let mut frames = frames.iter();
                let frame = frames.find(|frame| frame.number == inside);
                frame.map(|frame| frame.position())
            }
        })
    }

    /// Returns executions of the variable's places in its own call, in order. Takes executions with
    /// numbers from `low` to `high`, the lowest first or, going backward, the highest first.
    /// Removes their numbers from this range, and empties the range at the end of the call. Stops
    /// early if the next execution is far away, because the run must be followed from one to the
    /// next.
    fn executed(
        &self,
        changing: &Changing<'a>,
        (low, high): (&mut u64, &mut u64),
        direction: Direction,
        most: usize,
    ) -> Result<Vec<(Visit, Change)>> {
        let all = &changing.executions;
        let mut found = Vec::new();
        let mut begin = None;
        let mut cursor = self.path().cursor();
        while low <= high && found.len() < most {
            let number = match direction {
                Direction::Forward => *low,
                Direction::Backward => *high,
            };
            self.check()?;
            let execution = all.select(number)?;
            let execution = execution.context("an execution is not in the path")?;
            if execution.time < changing.entered {
                *high = 0;
                break;
            }
            let visit = cursor.seek(execution.time)?;
            let visit = visit.context("an execution is not in the path")?;
            let begin = *begin.get_or_insert(visit.start);
            if found.len() >= FEW && visit.start.abs_diff(begin) > SPAN {
                break;
            }
            let innermost = cursor.innermost()?;
            let innermost = innermost.context("an execution is outside of all calls")?;
            if innermost.entered != changing.entered {
                let open = cursor.stack()?;
                let mut inside = open
                    .iter()
                    .skip_while(|call| call.entered != changing.entered);
                let (Some(_), Some(callee)) = (inside.next(), inside.next()) else {
                    *high = 0;
                    break;
                };
                // Skip the whole call that the variable's call is making here.
                match direction {
                    Direction::Forward => {
                        *low = all.rank(self.end_of(callee.entered)?)?.max(number) + 1;
                    }
                    Direction::Backward => {
                        *high = all.rank(callee.entered - 1)?.min(number - 1);
                    }
                }
                continue;
            }
            match direction {
                Direction::Forward => *low = number + 1,
                Direction::Backward => *high = number - 1,
            }
            let changes = self.changes_in(changing, visit)?.into_iter();
            let changes = changes.map(|change| (visit, change));
            match direction {
                Direction::Forward => found.extend(changes),
                Direction::Backward => found.extend(changes.rev()),
            }
        }
        if direction == Direction::Backward {
            found.reverse();
        }
        Ok(found)
    }

    /// Returns the places of a node where the value can change, in order.
    fn changes_in(&self, changing: &Changing<'a>, visit: Visit) -> Result<Vec<Change>> {
        let mut found = Vec::new();
        let blocks = &self.path().nodes()[visit.node].blocks;
        for (time, block) in (visit.start..=visit.last()).zip(blocks) {
            for place in changing.places.get(block).into_iter().flatten() {
                let at = |op| Position::new(time, OpId::from_u32(op));
                let (mut by, after) = (at(place.by), at(place.after));
                // If the previous block ends by setting the local, that operator changes the value.
                let ops = self.ops((changing.function, *block));
                let is_first = ops.is_some_and(|ops| ops.start == place.after);
                if is_first && time > changing.entered {
                    let (function, before) = self.block(time - 1)?;
                    let set = changing.sets_at_end.get(&before);
                    if let Some(&set) = set.filter(|_| function == changing.function) {
                        by = Position::new(time - 1, OpId::from_u32(set));
                    }
                }
                found.push(Change { by, after });
            }
        }
        Ok(found)
    }

    /// Returns the last block of the call that began at a time.
    fn end_of(&self, entered: u64) -> Result<u64> {
        let mut cursor = self.path().cursor();
        cursor.seek(entered)?;
        Ok(cursor.activation_end()?.unwrap_or(self.length()))
    }

    fn value_of(&self, changing: &Changing<'_>, moment: &Moment<'_, 'a>) -> Result<Known> {
        let at = moment.activation.offset;
        match &changing.what {
            What::Local(local) => {
                let bits = moment.contents.variable(moment.activation, *local);
                let bytes = bits.map(|(low, high)| [low, high].map(u64::to_le_bytes).concat());
                Ok(bytes.map_or(Known::Nothing, Known::Value))
            }
            What::Variable(variable) => {
                let scope = &variable.scope;
                if !scope.is_empty() && !scope.iter().any(|one| one.contains(&at)) {
                    return Ok(Known::OutOfScope);
                }
                let known = self.known_variables()?;
                let object = known.locate(variable, Some(at), moment);
                let bytes = object.and_then(|object| known.bytes(&object, LARGEST, moment));
                Ok(bytes.map_or(Known::Nothing, Known::Value))
            }
        }
    }
}
