//! Finds out why a block was not executed, by following its control dependences back to code that
//! was executed.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use afterimage_graph::{ControlDependence, PostDominatorTree};
use afterimage_ids::{BlockId, EdgeId, FuncId, NodeId};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, EdgeKind, FunctionType, Program};
use afterimage_wpp::{Occurrences, PathError};

use super::{Walk, WhyError};
use afterimage_profile::Stop;
use afterimage_replay::values::{Instance, ValuesError};
use afterimage_replay::whole_path::{FileSegments, PathFileError};

/// A block of a function.
pub type CodeBlock = (FuncId, BlockId);

/// A step from unexecuted code to a place on which the code depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// The code is executed only if this block ends in a certain way. The block was not executed to
    /// its end.
    Branch(CodeBlock),
    /// The code is executed whenever its function is called. This block would call the function,
    /// but it was not executed to its end.
    Call(CodeBlock),
}

/// The reason why a block was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A branch was executed, but it never led toward the code.
    Branch {
        /// The block that ends with the branch.
        place: CodeBlock,
        /// The edge that leads toward the code.
        edge: EdgeId,
        /// The number of executions after the given time.
        times: u64,
        /// The number of executions in the whole run.
        executions: u64,
        /// The execution to report, which is the last execution, or the first after the given time.
        execution: BranchOutcome,
    },
    /// A branch led toward the code, or the function was entered, but the activation ended before
    /// it reached the code.
    Ended {
        /// The block that was executed.
        place: CodeBlock,
        /// The number of times that control went in this direction.
        times: u64,
        /// The last time that control went in this direction.
        time: u64,
    },
    /// The run ended in this block, before the end of the block.
    Stopped(CodeBlock),
    /// A call through a table was executed. It could have called the function, but called other
    /// functions.
    Table {
        /// The block that ends with the call.
        place: CodeBlock,
        /// The function that was not called.
        function: FuncId,
        /// The number of executions of the call after the given time.
        times: u64,
        /// The number of executions of the call in the whole run.
        executions: u64,
        /// The execution of the call to report.
        execution: BranchOutcome,
        /// The function that this execution called, unless it was a host function.
        called: Option<FuncId>,
    },
    /// Only the host could have called the function.
    Host(FuncId),
    /// Nothing in the program calls the function.
    Uncalled(FuncId),
}

/// An execution of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    /// The execution of the branch's node.
    pub instance: Instance,
    /// The time of the branch's block.
    pub time: u64,
    /// The next block in the function. `None` if the activation or the run ended.
    pub to: Option<BlockId>,
}

/// The reason why a place was not executed, with the steps that lead from the place to the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The steps from the place to the cause.
    pub hops: Vec<Hop>,
    /// The reason why the place was not executed.
    pub cause: Cause,
}

/// Finds out why blocks were not executed after a time.
///
/// A block depends on edges of the control-flow graph (Ferrante, Ottenstein and Warren 1987). An
/// edge is a cause if the block where it begins was executed. Otherwise, the search continues with
/// that block. Some blocks are reached whenever their function is entered. One example is the body
/// of a loop that depends only on the loop's own end. For these blocks, the search continues with
/// the calls to the function.
pub struct Absence<'v, 'a> {
    walk: Walk<'v, 'a>,
    after: u64,
    stopped: Option<Stop>,
    /// For each block, the nodes that contain it, with its position in them.
    nodes: HashMap<CodeBlock, Vec<(NodeId, u64)>>,
    dependences: RefCell<HashMap<FuncId, Rc<Dependence>>>,
    callers: RefCell<Option<Rc<Callers>>>,
}

/// The control dependences of a function's blocks.
struct Dependence {
    edges: ControlDependence,
    /// Blocks that post-dominate the root depend on the function's entry.
    post_dominators: PostDominatorTree,
}

/// The blocks that call each function, and the blocks that call each function type through a table.
#[derive(Default)]
struct Callers {
    direct: HashMap<FuncId, Vec<CodeBlock>>,
    indirect: HashMap<FunctionType, Vec<CodeBlock>>,
}

/// A place that was not executed.
struct PlaceQuery {
    place: CodeBlock,
    depth: usize,
    /// The step to this place from the place that depends on it, and that place's index in the
    /// queue.
    hop: Option<(Hop, usize)>,
}

/// Returns the steps from the first place to a place on which it depends.
fn way(queue: &[PlaceQuery], mut this: usize) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let Some((hop, before)) = queue[this].hop {
        hops.push(hop);
        this = before;
    }
    hops.reverse();
    hops
}

/// The maximum number of causes to report.
const TOLD: usize = 10;

impl<'v, 'a> Absence<'v, 'a> {
    /// Prepares questions about the time after block `after` began, or about the whole run if
    /// `after` is 0. The end of block `after` itself counts, since control may have left this block
    /// in another direction. `stopped` is the position of the innermost activation at the end of
    /// the run, if one was open. O(blocks of the path's nodes).
    pub fn new(walk: Walk<'v, 'a>, after: u64, stopped: Option<Stop>) -> Self {
        let mut nodes: HashMap<CodeBlock, Vec<(NodeId, u64)>> = HashMap::new();
        for (id, node) in walk.values.path().nodes() {
            for (position, &block) in (0..).zip(&node.blocks) {
                let of_block = nodes.entry((node.function, block)).or_default();
                of_block.push((id, position));
            }
        }
        Self {
            walk,
            after,
            stopped,
            nodes,
            dependences: RefCell::default(),
            callers: RefCell::default(),
        }
    }

    /// Returns the executions of a block in the whole run.
    ///
    /// # Errors
    /// Returns an error if the executions cannot be counted.
    pub fn runs(&self, place: CodeBlock) -> Result<Occurrences<'a, FileSegments>, WhyError> {
        let nodes = self.nodes.get(&place).into_iter().flatten().copied();
        self.occurrences(nodes)
    }

    fn occurrences(
        &self,
        nodes: impl IntoIterator<Item = (NodeId, u64)>,
    ) -> Result<Occurrences<'a, FileSegments>, WhyError> {
        let found = self.walk.values.path().executions(nodes);
        found.map_err(|error| WhyError::Values(error.into()))
    }

    /// Returns the number of times that a block began after the given time.
    ///
    /// # Errors
    /// Returns an error if the executions cannot be counted.
    pub fn times(&self, place: CodeBlock) -> Result<u64, WhyError> {
        let all = self.runs(place)?;
        let before = all.rank(self.after).map_err(path)?;
        Ok(all.count() - before)
    }

    /// Returns the number of executions of a block after the given time, including an execution in
    /// progress at that time.
    fn executed(&self, place: CodeBlock) -> Result<u64, WhyError> {
        if self.nodes.contains_key(&place) {
            self.later(&self.runs(place)?)
        } else {
            Ok(0)
        }
    }

    /// Whether the last execution of a block was cut short before its end.
    fn is_cut(&self, (function, block): CodeBlock) -> bool {
        let stopped = self.stopped.as_ref();
        let stopped = stopped.filter(|stop| (stop.function, stop.block) == (function, block));
        let code = self.walk.program.function(function);
        let end = code.and_then(|code| code.cfg.blocks.get(block));
        let mut both = stopped.into_iter().zip(end);
        both.any(|(stop, end)| stop.next < end.ops.end)
    }

    /// Returns the number of times that a block was executed to its end after the given time.
    fn times_to_end(&self, place: CodeBlock) -> Result<u64, WhyError> {
        let times = self.executed(place)?;
        Ok(times - u64::from(times > 0 && self.is_cut(place)))
    }

    fn later(&self, all: &Occurrences<'_, FileSegments>) -> Result<u64, WhyError> {
        let before = all.rank(self.began_before()).map_err(path)?;
        Ok(all.count() - before)
    }

    /// Returns the number of blocks that had ended by the given time.
    fn began_before(&self) -> u64 {
        self.after.saturating_sub(1)
    }

    /// Returns the nearest reasons why places were not executed: up to ten of the causes at the
    /// smallest number of steps. Examines each block once.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn of(&self, places: &[CodeBlock]) -> Result<Vec<Absent>, WhyError> {
        let start = |&place| PlaceQuery {
            place,
            depth: 0,
            hop: None,
        };
        let mut queue = Vec::from_iter(places.iter().map(start));
        let mut seen: HashSet<CodeBlock> = places.iter().copied().collect();
        let mut found: Vec<Absent> = Vec::new();
        // The least informative causes are reported only if nothing else is found.
        let mut rest: Vec<Absent> = Vec::new();
        let mut next = 0;
        while let Some(&PlaceQuery { place, depth, .. }) = queue.get(next) {
            let this = next;
            next += 1;
            if found.first().is_some_and(|first| first.hops.len() < depth) {
                break;
            }
            let mut go_on = |queue: &mut Vec<PlaceQuery>, place: CodeBlock, hop: Hop| {
                if seen.insert(place) {
                    queue.push(PlaceQuery {
                        place,
                        depth: depth + 1,
                        hop: Some((hop, this)),
                    });
                }
            };
            let (function, block) = place;
            let Some(code) = self.walk.program.function(function) else {
                continue;
            };
            if self.is_cut(place) && self.executed(place)? > 0 {
                found.push(Absent {
                    hops: way(&queue, this),
                    cause: Cause::Stopped(place),
                });
                continue;
            }
            let cfg = &code.cfg;
            let dependence = self.dependence(function, cfg);
            let edges = dependence.edges.controllers(block);
            for &edge in edges {
                let from = (function, cfg.graph.from(edge));
                // A vertex that dispatches exceptions does not execute code.
                if cfg.blocks[from.1].kind == BlockKind::Code && self.times_to_end(from)? > 0 {
                    let cause = self.branch_cause(cfg, from, edge)?;
                    let hops = way(&queue, this);
                    found.push(Absent { hops, cause });
                } else {
                    go_on(&mut queue, from, Hop::Branch(from));
                }
            }
            let root = (function, cfg.graph.root());
            let always = dependence.post_dominators.post_dominates(block, root.1);
            if !edges.is_empty() && !always {
                continue;
            }
            if block != root.1 && self.executed(root)? > 0 {
                let cause = match self.times_to_end(root)? {
                    0 => Cause::Stopped(root),
                    _ => self.ended(root)?,
                };
                let hops = way(&queue, this);
                found.push(Absent { hops, cause });
                continue;
            }
            let callers = self.callers();
            let mut any = false;
            for &site in callers.direct.get(&function).into_iter().flatten() {
                any = true;
                match self.times_to_end(site)? {
                    0 => go_on(&mut queue, site, Hop::Call(site)),
                    _ => {
                        let cause = self.ended(site)?;
                        let hops = way(&queue, this);
                        found.push(Absent { hops, cause });
                    }
                }
            }
            if self.walk.program.address_taken.contains(function) {
                let ty = &self.walk.program.types[code.ty];
                for &site in callers.indirect.get(ty).into_iter().flatten() {
                    any = true;
                    match self.times_to_end(site)? {
                        0 => go_on(&mut queue, site, Hop::Call(site)),
                        _ => {
                            let cause = self.table(site, function)?;
                            let hops = way(&queue, this);
                            found.push(Absent { hops, cause });
                        }
                    }
                }
            }
            let mut exports = self.walk.program.exports.iter();
            let host = exports.any(|(_, export)| *export == function)
                || self.walk.program.start == Some(function);
            let cause = match (host, any) {
                (true, _) => Cause::Host(function),
                (false, false) => Cause::Uncalled(function),
                (false, true) => continue,
            };
            let hops = way(&queue, this);
            rest.push(Absent { hops, cause });
        }
        if found.is_empty() {
            found = rest;
        }
        // The latest execution is the most informative, so it comes first.
        found.sort_by_key(|absent| {
            std::cmp::Reverse(match absent.cause {
                Cause::Branch { execution, .. } | Cause::Table { execution, .. } => execution.time,
                Cause::Ended { time, .. } => time,
                Cause::Stopped(_) => u64::MAX,
                _ => 0,
            })
        });
        // Reports a branch or function once, even if it leads to the place in several ways.
        let mut told = HashSet::new();
        let mut functions = HashSet::new();
        found.retain(|absent| match absent.cause {
            Cause::Branch { place, .. } | Cause::Ended { place, .. } | Cause::Stopped(place) => {
                told.insert((place, None))
            }
            Cause::Table {
                place, function, ..
            } => told.insert((place, Some(function))),
            Cause::Host(function) | Cause::Uncalled(function) => functions.insert(function),
        });
        found.truncate(TOLD);
        Ok(found)
    }

    fn dependence(&self, function: FuncId, cfg: &Cfg) -> Rc<Dependence> {
        let mut known = self.dependences.borrow_mut();
        let found = known.entry(function).or_insert_with(|| {
            let post_dominators = PostDominatorTree::compute(&cfg.graph);
            Rc::new(Dependence {
                edges: ControlDependence::compute(&cfg.graph, &post_dominators),
                post_dominators,
            })
        });
        Rc::clone(found)
    }

    fn callers(&self) -> Rc<Callers> {
        let mut known = self.callers.borrow_mut();
        let found = known.get_or_insert_with(|| Rc::new(Callers::of(self.walk.program)));
        Rc::clone(found)
    }

    /// Returns the block of the same function to which control goes from a block of a node.
    fn next(&self, (node, position): (NodeId, u64)) -> Result<Option<BlockId>, WhyError> {
        let blocks = &self.walk.values.path().nodes()[node].blocks;
        Ok(match blocks.get(position as usize + 1) {
            Some(&next) => Some(next),
            None => self.walk.values.compiled(node)?.code.next,
        })
    }

    /// Returns the cause to report for an executed branch.
    fn branch_cause(&self, cfg: &Cfg, place: CodeBlock, edge: EdgeId) -> Result<Cause, WhyError> {
        let to = cfg.graph.to(edge);
        let throws = matches!(cfg.edges[edge].kind, EdgeKind::CallThrow | EdgeKind::Throw);
        let mut there = Vec::new();
        for &at in self.nodes.get(&place).into_iter().flatten() {
            if !throws && self.next(at)? == Some(to) {
                there.push(at);
            }
        }
        let there = self.occurrences(there)?;
        let times = self.later(&there)?;
        if times > 0 {
            let last = there.select(there.count());
            let last = last.map_err(path)?;
            return Ok(Cause::Ended {
                place,
                times,
                time: last.map_or(0, |last| last.time),
            });
        }
        let (executions, execution) = self.last_outcome(place)?;
        Ok(Cause::Branch {
            place,
            edge,
            times: self.times_to_end(place)?,
            executions,
            execution,
        })
    }

    /// Returns the number of times that a block was executed to its end in the whole run, and the
    /// execution to report.
    fn last_outcome(&self, place: CodeBlock) -> Result<(u64, BranchOutcome), WhyError> {
        let all = self.runs(place)?;
        let executions = all.count() - u64::from(self.is_cut(place));
        let found = match self.after {
            0 => all.select(executions),
            _ => all.next_after(self.began_before()),
        };
        let found = found.map_err(path)?;
        let missing = || WhyError::Damaged("an execution that does not exist");
        let time = found.ok_or_else(missing)?.time;
        let instance = self.walk.values.at(time)?.ok_or_else(missing)?;
        let execution = BranchOutcome {
            instance,
            time,
            to: self.next((instance.node, time - instance.time))?,
        };
        Ok((executions, execution))
    }

    fn ended(&self, place: CodeBlock) -> Result<Cause, WhyError> {
        let all = self.runs(place)?;
        let last = all.select(all.count() - u64::from(self.is_cut(place)));
        let last = last.map_err(path)?;
        Ok(Cause::Ended {
            place,
            times: self.times_to_end(place)?,
            time: last.map_or(0, |last| last.time),
        })
    }

    fn table(&self, place: CodeBlock, function: FuncId) -> Result<Cause, WhyError> {
        let (executions, execution) = self.last_outcome(place)?;
        let mut cursor = self.walk.values.path().cursor();
        cursor.seek(execution.time).map_err(path)?;
        let before = cursor.depth();
        let next = cursor.next().map_err(path)?;
        // A host function has no activation. After a tail call to one, the next step belongs to the
        // caller, or to the host's next call. After a tail call to one of the program's own
        // functions (`replaced`), it belongs to that function.
        let replaced = self.walk.values.replaced(execution.instance)?;
        let entered = next.filter(|_| cursor.depth() > before || replaced);
        let called = entered.map(|visit| self.walk.values.path().nodes()[visit.node].function);
        Ok(Cause::Table {
            place,
            function,
            times: self.times_to_end(place)?,
            executions,
            execution,
            called,
        })
    }
}

fn path(error: PathError<PathFileError>) -> WhyError {
    WhyError::Values(ValuesError::Path(error))
}

impl Callers {
    fn of(program: &Program) -> Self {
        let mut all = Self::default();
        for function in &program.functions {
            for (block, known) in &function.cfg.blocks {
                let (BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = known.end else {
                    continue;
                };
                let sites = match callee {
                    Callee::Direct(callee) => all.direct.entry(callee).or_default(),
                    Callee::Indirect { ty, .. } => {
                        let ty = program.types[ty].clone();
                        all.indirect.entry(ty).or_default()
                    }
                };
                sites.push((function.id, block));
            }
        }
        all
    }
}
