//! Builds a whole execution trace from a run's actions by recording the origin of every input.

mod buffers;
mod columns;
mod costs;
mod known;
mod patterns;
pub(crate) mod run;
mod shadow;
mod sites;
mod tape;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

use afterimage_ids::{EntityRef, FuncId, NodeId, PrimaryMap};
use afterimage_machine::{NodeCode, Range};
use afterimage_program::Program;

use crate::def::Origin;
use crate::model::Event;
pub(crate) use buffers::{Buffers, Column, Copies, Executions, Label, Labels};
use columns::Columns;
use costs::Costs;
use known::{Action, Node, NodeTable, What};
pub(crate) use patterns::Pattern;
use shadow::{Entry, Shadow};
pub(crate) use sites::Numbers;
use sites::{Def, HOST, MOST_EXECUTIONS, MOST_SITES, Site};
use tape::Word;
use variables::Activations;
#[cfg(test)]
pub(crate) use {buffers::Room, buffers::Run, sites::Site as SiteOf};

/// The maximum number of steps that a search for a variable's definition goes back within the
/// activation.
pub(crate) const NEAR: u64 = 64;
/// The number of node evaluations above which a value is stored instead of computed.
const DEAREST: u32 = 200;
/// The cost of values that are never computed.
const KEPT: u32 = 250;
/// The memory, in bytes, for the last writers of words and bytes on unpacked pages. It suffices for
/// 21 MiB of guest memory with an entry per word.
const ROOM: usize = 48 << 20;
/// The memory, in bytes, for last writers in a stretch that is built alone while the user waits.
const STRETCH_ROOM: usize = 256 << 20;

/// Reads the machine's actions from a [`tape`], and collects the data to be stored.
pub(crate) struct Builder<'a> {
    program: &'a Program,
    known: Arc<NodeTable>,
    numbers: Arc<Numbers>,
    /// The node of each site.
    nodes: Box<[NodeId]>,
    /// The number of executions of each node.
    counts: PrimaryMap<NodeId, u64>,
    memories: Vec<Shadow>,
    globals: Vec<Entry>,
    activations: Activations,
    /// The node executed last.
    current: Current,
    costs: Costs,
    columns: Columns,
    /// The number of calls to the host so far.
    host_calls: u64,
    /// Whether the last node ended with a call that has not begun yet.
    calls: bool,
    /// The number of activations that an exception has unwound since the node ended.
    unwound: u64,
    /// The parts of the current load: the number of bytes, their writer, and the number of
    /// executions of the writer's node so far.
    parts: Vec<(u8, Def, u64)>,
    /// The number of instructions executed in the window by functions that are not left out.
    pub(crate) statements: u64,
    /// The number of executed blocks.
    pub(crate) time: u64,
    /// Whether a number was too large to fit into a definition.
    pub(crate) overflow: bool,
    /// Whether the run was resumed, so that earlier writes are unknown.
    resumed: bool,
}

/// The state from which to continue a run that is not followed from its beginning.
pub(crate) struct Resumed<'a> {
    /// The number of executions of each node.
    pub counts: &'a [(NodeId, u64)],
    /// The open activations, the outermost first. Each has the node with the call for which it
    /// waits, and the number of its variables.
    pub open: Vec<(NodeId, usize)>,
    /// The number of arguments of the call that is about to begin.
    pub arguments: usize,
    /// The number of calls to the host so far.
    pub host_calls: u64,
    /// The number of executed blocks.
    pub time: u64,
}

/// An execution of a node.
#[derive(Clone, Copy)]
struct Current {
    node: NodeId,
    /// The number of the node's executions, including the current execution.
    count: u64,
}

impl<'a> Builder<'a> {
    /// Creates a builder for the beginning of the run. `blocks` contains the number of blocks of
    /// each node.
    pub(crate) fn new(
        program: &'a Program,
        codes: &PrimaryMap<NodeId, NodeCode>,
        blocks: &[u64],
        memories: usize,
        globals: usize,
    ) -> Self {
        let node = NodeId::new(0);
        let outside = Site { node, write: 0 };
        // The first two sites are the initial contents and the host.
        let sites = vec![outside; HOST as usize + 1];
        let (known, numbers) = NodeTable::new(program, codes, blocks, sites);
        Self {
            program,
            overflow: numbers.sites.len() > MOST_SITES,
            nodes: numbers.sites.iter().map(|site| site.node).collect(),
            numbers: Arc::new(numbers),
            counts: (0..known.len()).map(|_| 0).collect(),
            memories: (0..memories)
                .map(|_| Shadow::new(ROOM / memories))
                .collect(),
            globals: vec![Entry::default(); globals],
            activations: Activations::default(),
            current: Current { node, count: 0 },
            costs: Costs::new(),
            columns: Columns::new(known.inputs()),
            known: Arc::new(known),
            host_calls: 0,
            calls: false,
            unwound: 0,
            parts: Vec::new(),
            statements: 0,
            time: 0,
            resumed: false,
        }
    }

    /// Continues from a moment in the middle of a run.
    pub(crate) fn resume(&mut self, resumed: Resumed<'_>) {
        self.resumed = true;
        for &(node, count) in resumed.counts {
            self.counts[node] = count;
        }
        self.activations.resume(resumed.open.into_iter());
        self.activations.given = vec![KEPT; resumed.arguments];
        let room = STRETCH_ROOM / self.memories.len().max(1);
        let memories = self.memories.iter_mut();
        memories.for_each(|memory| memory.resume(room));
        self.host_calls = resumed.host_calls;
        self.time = resumed.time;
        if let Some(numbers) = Arc::get_mut(&mut self.numbers) {
            numbers.first = Origin::Before;
        }
    }

    /// Returns the last writers of all bytes, globals and variables.
    pub(crate) fn writers(mut self) -> LastWriters {
        self.memories.iter_mut().for_each(Shadow::pack);
        LastWriters {
            memories: self.memories,
            globals: self.globals,
            variables: self.activations.written(),
            numbers: self.numbers,
        }
    }

    /// Makes the builder omit the data that these functions read or compute, except values that
    /// other functions use.
    pub(crate) fn leave_out(
        &mut self,
        codes: &PrimaryMap<NodeId, NodeCode>,
        is_left_out: impl Fn(FuncId) -> bool,
    ) {
        Arc::make_mut(&mut self.known).leave_out(codes, is_left_out);
    }

    /// Begins the window. Values written before this moment cannot be queried.
    pub(crate) fn begin(&mut self) {
        let waiting = self.take(Buffers::default());
        self.columns.take(waiting.emptied());
        self.statements = 0;
        self.memories.iter_mut().for_each(Shadow::keep);
        self.activations.keep();
        for global in &mut self.globals {
            global.cost = KEPT as u8;
        }
    }

    /// Returns the count of numbers that wait to be written.
    pub(crate) fn size(&self) -> usize {
        self.columns.size()
    }

    /// Returns the data to be written, and continues with the memory of `empty`.
    pub(crate) fn take(&mut self, empty: Buffers) -> Buffers {
        self.columns.take(empty)
    }

    /// Returns the meaning of the numbers of inputs and sites.
    pub(crate) fn numbers(&self) -> Arc<Numbers> {
        Arc::clone(&self.numbers)
    }

    /// Reads a tape from a position to its end. Stops early, before a node, if `most` numbers wait
    /// to be written or `until` blocks have been executed. Returns the position reached.
    pub(crate) fn read(&mut self, tape: &[u64], from: usize, (most, until): (usize, u64)) -> usize {
        let known = Arc::clone(&self.known);
        let mut at = from;
        while let Some(&word) = tape.get(at) {
            at += 1;
            match Word::of(word) {
                Word::Node(id) => {
                    if self.size() >= most || self.time >= until {
                        return at - 1;
                    }
                    let node = known.node(id);
                    let end = at + node.words as usize;
                    let record = tape.get(at..end).unwrap_or_default();
                    at = end;
                    if node.left_out {
                        self.node::<false>(&known, id, node, record, u32::MAX);
                    } else {
                        self.node::<true>(&known, id, node, record, u32::MAX);
                    }
                    self.done(&known, node);
                }
                Word::Stopped(id, executed) => {
                    if self.size() >= most || self.time >= until {
                        return at - 1;
                    }
                    let node = known.node(id);
                    let record = tape.get(at..).unwrap_or_default();
                    at = tape.len();
                    if node.left_out {
                        self.node::<false>(&known, id, node, record, executed as u32);
                    } else {
                        self.node::<true>(&known, id, node, record, executed as u32);
                        self.statements -= u64::from(node.insts) - executed as u64;
                    }
                    self.event(Event::Stopped, executed as u64, 0);
                }
                Word::Enter => {
                    self.calls = false;
                    self.activations.enter();
                }
                Word::EnterFromHost(function) => {
                    self.calls = false;
                    // Only the log has arguments that the host passed.
                    let function = self.program.function(function);
                    let parameters = function.map_or(0, |f| self.program.types[f.ty].params.len());
                    self.activations.given = vec![KEPT; parameters];
                    self.activations.enter();
                }
                Word::Leave(first, count) => {
                    self.activations.leave();
                    self.deliver(first, count, None);
                }
                Word::Unwind => {
                    self.activations.leave();
                    self.unwound += 1;
                }
                // The value is in the log.
                Word::HostReturned(first, count) => self.deliver(first, count, Some(1)),
                Word::HostCall => {
                    self.host_calls += 1;
                    // The host may also make the call itself, if an import is exported.
                    if std::mem::take(&mut self.calls) {
                        self.event(Event::HostCall, self.host_calls, 0);
                    }
                }
                Word::HostWrite(memory) => {
                    if let Some(&[address, length]) = tape.get(at..at + 2) {
                        let def = Def::other(HOST, self.host_calls);
                        let entry = Entry { def, cost: 0 };
                        self.memories[memory as usize].write(address, length, entry);
                    }
                    at += 2;
                }
                Word::Caught(first, count) => self.caught(first, count),
                Word::Returned(count) => {
                    let end = at + 2 * count;
                    for value in tape.get(at..end).unwrap_or_default().chunks_exact(2) {
                        self.event(Event::Returned, value[0], value[1]);
                    }
                    at = end;
                }
            }
        }
        at
    }

    /// Processes the execution of a node's first `executed` instructions. If `TOLD` is true, the
    /// node's reads are stored. Otherwise, the nodes that use the node's values must store these
    /// values.
    #[inline(always)]
    fn node<const TOLD: bool>(
        &mut self,
        known: &NodeTable,
        id: NodeId,
        node: &Node,
        record: &[u64],
        executed: u32,
    ) {
        let count = self.counts[id] + 1;
        self.counts[id] = count;
        self.current = Current { node: id, count };
        self.calls = false;
        self.unwound = 0;
        if TOLD {
            self.statements += u64::from(node.insts);
        }
        self.time += u64::from(node.blocks);
        self.overflow |= count > MOST_EXECUTIONS;
        self.costs.clear();
        let mut record = Record {
            words: record.iter(),
            wide: node.wide,
        };
        let variables = node.of_function as usize;
        let innermost = self.activations.node(id, count, variables);
        for (input, &variable) in known.variables(node).iter().enumerate() {
            let written = innermost.written(variable);
            let number = node.inputs + input as u32;
            if innermost.last.step - written.step > NEAR {
                let (node, execution) = written.by();
                let so_far = match execution {
                    0 => 0,
                    _ => self.counts[written.node],
                };
                self.columns.far(number, count, (node, execution, so_far));
            }
            let value = record.value();
            if self.costs.put::<TOLD>(input, written.cost + 1) {
                let (low, high) = value;
                self.columns
                    .keep(number, count, low, node.wide.then_some(high));
            }
        }
        for action in known.actions(node) {
            if action.inst >= executed {
                break;
            }
            self.act::<TOLD>(node, action, &mut record);
        }
    }

    /// Processes an instruction's action.
    #[inline(always)]
    fn act<const TOLD: bool>(&mut self, node: &Node, action: &Action, record: &mut Record<'_>) {
        let execution = self.current.count;
        let number = node.inputs + action.number;
        match action.what {
            What::Read => {
                let address = record.word();
                let value = record.value();
                let length = u64::from(action.length);
                let shadow = &mut self.memories[action.index as usize];
                let cost = match shadow.single(address, length) {
                    Some(entry) => {
                        if TOLD {
                            self.label(number, entry.def);
                        }
                        self.cost_of(entry, action)
                    }
                    None => {
                        let memory = action.index;
                        let range = Range {
                            memory,
                            address,
                            length,
                        };
                        let cost = self.split(range) + self.costs.of(action.mask);
                        if TOLD {
                            self.columns.labels(number, execution, &self.parts);
                        }
                        cost
                    }
                };
                if self.costs.put::<TOLD>(action.number as usize, cost) {
                    // A vector has an upper half.
                    let high = node.wide.then_some(value.1);
                    self.columns.keep(number, execution, value.0, high);
                }
            }
            What::Write => {
                let address = record.word();
                let def = Def::value(action.number, execution);
                let cost = self.costs.of(action.mask) as u8;
                let shadow = &mut self.memories[action.index as usize];
                shadow.write(address, u64::from(action.length), Entry { def, cost });
            }
            What::Fill => {
                let (address, length) = (record.word(), record.word());
                let def = Def::other(action.number, execution);
                let cost = self.costs.of(action.mask) as u8;
                let shadow = &mut self.memories[action.index as usize];
                shadow.write(address, length, Entry { def, cost });
            }
            What::Copy => {
                let (from, to, length) = (record.word(), record.word(), record.word());
                let range = Range {
                    memory: action.from,
                    address: from,
                    length,
                };
                let mut dearest = KEPT;
                let shadow = &mut self.memories[action.from as usize];
                if TOLD {
                    self.columns.copy(action.number, execution, |copies| {
                        dearest = shadow.runs(range, &mut copies.runs);
                    });
                }
                let cost = self.costs.of(action.mask);
                let cost = (cost + 1 + dearest).min(KEPT) as u8;
                let def = Def::other(action.number, execution);
                let shadow = &mut self.memories[action.index as usize];
                shadow.write(to, length, Entry { def, cost });
            }
            What::GetGlobal => {
                let value = record.value();
                let entry = self.globals[action.index as usize];
                if TOLD {
                    self.label(number, entry.def);
                }
                let is_told = entry.def.site() == sites::INITIAL && self.resumed;
                let cost = if is_told {
                    KEPT
                } else if entry.def.is_outside() {
                    1
                } else {
                    u32::from(entry.cost) + 1
                };
                if self.costs.put::<TOLD>(action.number as usize, cost) {
                    let high = node.wide.then_some(value.1);
                    self.columns.keep(number, execution, value.0, high);
                }
            }
            What::SetGlobal => {
                let def = Def::other(action.number, execution);
                let cost = self.costs.of(action.mask) as u8;
                self.globals[action.index as usize] = Entry { def, cost };
            }
            What::Elsewhere => {
                // A value read outside memory and globals is always stored.
                let (low, high) = record.value();
                if self.costs.put::<TOLD>(action.number as usize, KEPT) {
                    let high = node.wide.then_some(high);
                    self.columns.keep(number, execution, low, high);
                }
            }
        }
    }

    /// Processes the end of a node.
    #[inline(always)]
    fn done(&mut self, known: &NodeTable, node: &Node) {
        let mut innermost = self.activations.innermost();
        for &(variable, mask) in known.outputs(node) {
            innermost.set(variable, self.costs.of(mask));
        }
        if node.gives {
            let given = &mut self.activations.given;
            given.clear();
            let masks = known.inputs_at_end(node).iter();
            given.extend(masks.map(|&mask| self.costs.of(mask) + 1));
        }
        self.calls = node.calls;
    }

    /// Records the single writer of a read.
    #[inline(always)]
    fn label(&mut self, input: u32, def: Def) {
        let execution = def.execution();
        let label = Label {
            pattern: def.place(),
            execution,
            age: self.executions(def).wrapping_sub(execution),
        };
        self.columns.label(input, self.current.count, label);
    }

    /// Returns the number of executions so far of the node of a definition.
    #[inline(always)]
    fn executions(&self, def: Def) -> u64 {
        match def.site() {
            // The path does not count the host's calls. This count makes the age equal to the
            // call's number, so either form stores that number.
            sites::INITIAL | HOST => 2 * def.execution(),
            site => self.counts[self.nodes[site as usize]],
        }
    }

    /// Returns the cost of computing the value that a definition wrote, including the cost of the
    /// access.
    #[inline(always)]
    fn cost_of(&self, entry: Entry, read: &Action) -> u32 {
        if entry.def.is_value() {
            return u32::from(entry.cost) + 1;
        }
        let address = self.costs.of(read.mask);
        match entry.def.site() {
            sites::INITIAL if self.resumed => KEPT,
            // The value is in the module or in the log, and its address must be computed.
            sites::INITIAL | HOST => address + 1,
            // For other values, including copied data, add the cost of the value itself.
            _ => u32::from(entry.cost) + address + 1,
        }
    }

    /// Splits a range into `parts` by its writers. Returns the sum of the costs of these parts.
    #[inline(never)]
    fn split(&mut self, range: Range) -> u32 {
        let shadow = &mut self.memories[range.memory as usize];
        let mut cost = 0;
        self.parts.clear();
        for i in 0..range.length {
            let entry = shadow.byte(range.address + i);
            if let Some((length, def, _)) = self.parts.last_mut()
                && def.fits(u64::from(*length) + 1)
                && def.at(u64::from(*length)) == entry.def
            {
                *length += 1;
                continue;
            }
            cost += u32::from(entry.cost) + 1;
            self.parts.push((1, entry.def, 0));
        }
        for i in 0..self.parts.len() {
            self.parts[i].2 = self.executions(self.parts[i].1);
        }
        cost
    }

    fn caught(&mut self, first: u32, count: u32) {
        let variables = u64::from(first) << 32 | u64::from(count);
        self.event(Event::Caught, self.unwound, variables);
        // A reference to the exception may follow.
        for variable in first..=first.saturating_add(count) {
            self.activations.set(variable, KEPT);
        }
        // If the handler is the function's own label, the function returns the values.
        self.activations.given.clear();
    }

    /// Records an event of the current execution.
    fn event(&mut self, event: Event, value: u64, high: u64) {
        let node = self.known.node(self.current.node);
        let input = node.inputs + node.of_event(event) as u32;
        let high = matches!(event, Event::Caught | Event::Returned).then_some(high);
        self.columns.keep(input, self.current.count, value, high);
    }

    /// Records that the results of a call went to the variables from `first` on.
    fn deliver(&mut self, first: u32, count: u32, cost: Option<u32>) {
        for i in 0..count {
            let cost = cost.or_else(|| self.activations.given.get(i as usize).copied());
            self.activations.set(first + i, cost.unwrap_or(KEPT));
        }
        let last = self.activations.last();
        if let Some(results) = last.and_then(|node| self.known.node(node).returns) {
            let top = first + count;
            self.activations.give(top.saturating_sub(results)..top);
        }
    }
}

/// The last writers of bytes, globals and variables in a stretch.
pub struct LastWriters {
    memories: Vec<Shadow>,
    globals: Vec<Entry>,
    /// The last writers of the variables of each activation that is open at the stretch's end, the
    /// outermost first.
    variables: Vec<Box<[(u32, u64)]>>,
    numbers: Arc<Numbers>,
}

impl std::fmt::Debug for LastWriters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LastWriters").finish_non_exhaustive()
    }
}

impl LastWriters {
    /// Returns the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let memories: usize = self.memories.iter().map(Shadow::bytes).sum();
        let variables: usize = self.variables.iter().map(|one| size_of_val(&**one)).sum();
        memories + variables + size_of_val(&*self.globals) + self.numbers.bytes()
    }

    /// Returns the last writer of a byte of a memory, with the writer's execution or call. Returns
    /// `None` if nothing wrote the byte in the stretch.
    pub fn of_byte(&self, memory: u32, address: u64) -> Option<(Origin, u64)> {
        let shadow = self.memories.get(memory as usize)?;
        self.origin(shadow.look(address))
    }

    /// Returns the last writer of a variable of an activation that is open at the end. Activations
    /// are numbered from the outermost. The writer is a node and its execution. For an unwritten
    /// variable, the node is the first node of the activation, or represents an earlier writer if
    /// the activation began before the stretch. Returns `None` if there is no such variable.
    pub(crate) fn of_variable(&self, activation: usize, variable: u32) -> Option<(u32, u64)> {
        let variables = self.variables.get(activation)?;
        variables.get(variable as usize).copied()
    }

    /// Returns the last writer of a global.
    pub fn of_global(&self, global: u32) -> Option<(Origin, u64)> {
        self.origin(*self.globals.get(global as usize)?)
    }

    fn origin(&self, entry: Entry) -> Option<(Origin, u64)> {
        let known = entry.def.site() != sites::INITIAL;
        known.then(|| {
            (
                self.numbers.origin(entry.def.place()),
                entry.def.execution(),
            )
        })
    }
}

/// The tape's record of one execution of a node.
struct Record<'t> {
    words: std::slice::Iter<'t, u64>,
    wide: bool,
}

impl Record<'_> {
    /// Returns the next word. The tape has all words, unless the machine failed.
    #[inline(always)]
    fn word(&mut self) -> u64 {
        self.words.next().copied().unwrap_or_default()
    }

    #[inline(always)]
    fn value(&mut self) -> (u64, u64) {
        let low = self.word();
        (low, if self.wide { self.word() } else { 0 })
    }
}
