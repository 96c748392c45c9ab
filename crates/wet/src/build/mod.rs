//! Building a whole execution trace: the run is followed, and of every input is told where it comes from.

mod buffers;
mod costs;
mod known;
mod patterns;
pub(crate) mod run;
mod shadow;
mod sites;
#[cfg(test)]
mod tests;
mod variables;

use afterimage_ids::{EntityRef, FuncId, NodeId, PrimaryMap};
use afterimage_machine::{Caller, Code, GlobalBits, NodeCode, NodeEnd, Observer, Range};
use afterimage_program::Program;

use std::sync::Arc;

use crate::model::{Event, Read, ReadFrom};
pub(crate) use buffers::{Buffers, Column, Copies, Executions, Label};
use costs::Costs;
use known::{Current, Inst, Known};
pub(crate) use patterns::Pattern;
use shadow::{Entry, Shadow};
pub(crate) use sites::Numbers;
use sites::{Def, HOST, MOST_EXECUTIONS, MOST_SITES, Site};
use variables::Activations;
#[cfg(test)]
pub(crate) use {buffers::Run, sites::Site as SiteOf};

/// How many steps back within its activation the definition of a variable is looked for.
pub(crate) const NEAR: u64 = 64;
/// A value is kept if it would take more evaluations of nodes than this to compute it.
const DEAREST: u32 = 200;
/// What is never computed.
const KEPT: u32 = 250;

/// Watches a machine, and collects what is to be stored.
pub(crate) struct Builder<'a> {
    program: &'a Program,
    known: Known,
    numbers: Arc<Numbers>,
    memories: Vec<Shadow>,
    globals: Vec<Entry>,
    activations: Activations,
    /// The node that is being executed.
    current: Current,
    costs: Costs,
    /// The inputs whose values are to be kept, of this execution.
    cuts: Vec<u32>,
    /// Where an input's column is, plus 1.
    of_input: Vec<u32>,
    buffers: Buffers,
    /// Calls of the host so far.
    host_calls: u64,
    /// The node ended with a call, which has not begun.
    calls: bool,
    /// How many activations an exception ended since the node did.
    unwound: u64,
    /// An exception was caught since.
    caught: bool,
    /// Parts of the load at hand.
    parts: Vec<(u8, Def)>,
    /// Executed instructions.
    pub(crate) statements: u64,
    /// A number does not fit into a definition.
    pub(crate) overflow: bool,
}

impl<'a> Builder<'a> {
    /// Before the run.
    pub(crate) fn new(
        program: &'a Program,
        codes: &PrimaryMap<NodeId, NodeCode>,
        memories: usize,
        globals: usize,
    ) -> Self {
        let outside = Site {
            node: NodeId::new(0),
            write: 0,
        };
        // What is there before the run, and the host.
        let sites = vec![outside; HOST as usize + 1];
        let (known, numbers) = Known::new(program, codes, sites);
        let inputs = known.inputs();
        Self {
            program,
            known,
            overflow: numbers.sites.len() > MOST_SITES,
            numbers: Arc::new(numbers),
            memories: (0..memories).map(|_| Shadow::default()).collect(),
            globals: vec![Entry::default(); globals],
            activations: Activations::default(),
            current: Current::nothing(),
            costs: Costs::new(),
            cuts: Vec::new(),
            of_input: vec![0; inputs],
            buffers: Buffers::default(),
            host_calls: 0,
            calls: false,
            unwound: 0,
            caught: false,
            parts: Vec::new(),
            statements: 0,
        }
    }

    /// What was written before this moment is not to be asked for: the window begins.
    pub(crate) fn begin(&mut self) {
        self.take();
        self.statements = 0;
        self.memories.iter_mut().for_each(Shadow::keep);
        self.activations.keep();
        for global in &mut self.globals {
            global.cost = KEPT as u8;
        }
    }

    /// How many numbers wait to be written.
    pub(crate) fn size(&self) -> usize {
        self.buffers.size
    }

    /// Takes what waits to be written.
    pub(crate) fn take(&mut self) -> Buffers {
        for column in &self.buffers.columns {
            self.of_input[column.input as usize] = 0;
        }
        std::mem::take(&mut self.buffers)
    }

    /// What the numbers of inputs and sites stand for.
    pub(crate) fn numbers(&self) -> Arc<Numbers> {
        Arc::clone(&self.numbers)
    }

    #[inline]
    fn column(&mut self, input: usize) -> &mut Column {
        let input = self.current.input(input);
        let place = &mut self.of_input[input as usize];
        let columns = &mut self.buffers.columns;
        if *place == 0 {
            columns.push(Column {
                input,
                first: self.current.count,
                ..Column::default()
            });
            *place = columns.len() as u32;
        }
        &mut columns[*place as usize - 1]
    }

    /// An input has this cost, unless it is cut.
    #[inline]
    fn input(&mut self, input: usize, cost: u32) {
        if cost > DEAREST {
            self.cuts.push(input as u32);
        } else {
            self.costs.set(input, cost);
        }
    }

    /// A read comes from one write.
    #[inline]
    fn label(&mut self, input: usize, def: Def) {
        let count = self.executions(def);
        let label = Label::new(def.place(), def.execution(), count);
        self.column(input).labels.push(label);
        self.buffers.size += 1;
    }

    /// A read comes from several writes, which are in `parts`.
    fn labels(&mut self, input: usize) {
        let parts = std::mem::take(&mut self.parts);
        let places = Vec::from_iter(parts.iter().map(|&(length, def)| (length, def.place())));
        let pattern = self.buffers.patterns.number(&places);
        let executions = parts
            .iter()
            .map(|&(_, def)| (def.execution(), self.executions(def)));
        let executions = Vec::from_iter(executions);
        let column = self.column(input);
        if let Some((&(execution, count), others)) = executions.split_first() {
            column.labels.push(Label::new(pattern, execution, count));
            if column.parts.len() < others.len() {
                column.parts.resize(others.len(), Executions::default());
            }
            for (part, &(execution, count)) in column.parts.iter_mut().zip(others) {
                part.push(execution, count);
            }
        }
        self.buffers.size += parts.len();
        self.parts = parts;
    }

    /// How often the node of a definition was executed so far.
    #[inline]
    fn executions(&self, def: Def) -> u64 {
        match def.site() {
            // So that the number of a call is told, not how many calls ago it was: calls cannot be counted in a path.
            sites::INITIAL | HOST => 2 * def.execution(),
            site => self.known.count(self.numbers.sites[site as usize].node),
        }
    }

    /// What it costs to compute what a definition wrote, and to get at it.
    #[inline]
    fn cost_of(&self, entry: Entry, address: u32) -> u32 {
        match entry.def.site() {
            // It is in the module or the log, at an address that has to be computed.
            sites::INITIAL | HOST => address + 1,
            // So it is with what was copied there.
            _ if entry.def.step() == 0 => u32::from(entry.cost) + address + 1,
            _ => u32::from(entry.cost) + 1,
        }
    }

    /// Splits a range by who wrote it.
    fn split(&mut self, range: Range) -> u32 {
        let shadow = &self.memories[range.memory as usize];
        let mut cost = 0;
        self.parts.clear();
        for i in 0..range.length {
            let entry = shadow.byte(range.address + i);
            if let Some((length, def)) = self.parts.last_mut()
                && def.fits(u64::from(*length) + 1)
                && def.at(u64::from(*length)) == entry.def
            {
                *length += 1;
                continue;
            }
            cost += u32::from(entry.cost) + 1;
            self.parts.push((1, entry.def));
        }
        cost
    }

    /// The site of a write, and what it costs to compute what it writes.
    #[inline]
    fn written(&self, inst: Inst) -> (u32, u32) {
        (inst.number, self.costs.of(inst.mask))
    }
}

impl Observer for Builder<'_> {
    #[inline]
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.current = self.known.begin(node);
        self.calls = false;
        self.unwound = 0;
        self.caught = false;
        self.cuts.clear();
        self.statements += code.insts.len() as u64;
        let count = self.current.count;
        self.overflow |= count > MOST_EXECUTIONS;
        self.costs.clear(self.known.node(node).count as usize);
        let step = self.activations.node(node, count, code.variables as usize);
        for (input, &variable) in code.inputs.iter().enumerate() {
            let written = self.activations.get(variable);
            if step - written.step > NEAR {
                let ago = self.known.count(written.node);
                let column = self.column(input);
                let (node, execution) = (written.node.as_u32(), written.execution);
                if column.far_nodes.last() != Some(&node)
                    || column.far.absolute.last() != Some(&execution)
                {
                    column.far_at.push(count);
                    column.far_nodes.push(node);
                    column.far.push(execution, ago);
                    self.buffers.size += 1;
                }
            }
            self.input(input, written.cost + 1);
        }
    }

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        let inst = self.known.inst(self.current, inst);
        let input = inst.number as usize;
        let address = self.costs.of(inst.mask);
        let shadow = &self.memories[range.memory as usize];
        let cost = match shadow.single(range.address, range.length) {
            Some(entry) => {
                let cost = self.cost_of(entry, address);
                self.label(input, entry.def);
                cost
            }
            None => {
                let cost = self.split(range) + address;
                self.labels(input);
                cost
            }
        };
        self.input(input, cost);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        let inst = self.known.inst(self.current, inst);
        let (site, cost) = self.written(inst);
        let execution = self.current.count;
        let def = match inst.stepping {
            true => Def::value(site, execution),
            false => Def::other(site, execution),
        };
        let cost = cost as u8;
        self.memories[range.memory as usize].write(
            range.address,
            range.length,
            Entry { def, cost },
        );
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        let inst = self.known.inst(self.current, inst);
        let (site, mut cost) = self.written(inst);
        let execution = self.current.count;
        let copies = &mut self.buffers.copies;
        let place = *self.buffers.of_site.entry(site).or_insert_with(|| {
            copies.push(Copies {
                site,
                ..Copies::default()
            });
            copies.len() - 1
        });
        let copies = &mut self.buffers.copies[place];
        let before = copies.runs.len();
        let dearest = self.memories[from.memory as usize].runs(from, &mut copies.runs);
        cost = (cost + 1 + dearest).min(KEPT);
        copies.at.push(execution);
        let count = copies.runs.len() - before;
        copies.counts.push(count as u64);
        self.buffers.size += count + 1;
        let entry = Entry {
            def: Def::other(site, execution),
            cost: cost as u8,
        };
        self.memories[to.memory as usize].write(to.address, to.length, entry);
    }

    #[inline]
    fn read_global(&mut self, inst: usize, global: u32) {
        let entry = self.globals[global as usize];
        let input = self.known.inst(self.current, inst).number as usize;
        self.label(input, entry.def);
        let cost = self.cost_of(entry, 0);
        self.input(input, cost);
    }

    #[inline]
    fn write_global(&mut self, inst: usize, global: u32) {
        let (site, cost) = self.written(self.known.inst(self.current, inst));
        let def = Def::other(site, self.current.count);
        let cost = cost as u8;
        self.globals[global as usize] = Entry { def, cost };
    }

    #[inline]
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.keep_values(code, code.insts.len(), low, high);
        let masks = &self.known.node(self.current.node).masks;
        for (&(variable, _), &mask) in code.outputs.iter().zip(&masks.outputs) {
            let cost = self.costs.of(mask);
            self.activations.set(variable, cost);
        }
        if !masks.end.is_empty() || !matches!(code.end, NodeEnd::Next) {
            let given = &mut self.activations.given;
            given.clear();
            given.extend(masks.end.iter().map(|&mask| self.costs.of(mask) + 1));
        }
        self.calls = matches!(code.end, NodeEnd::Call { .. } | NodeEnd::TailCall { .. });
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.keep_values(code, executed, low, high);
        self.event(Event::Stopped, executed as u64, 0);
        self.statements -= (code.insts.len() - executed) as u64;
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        self.calls = false;
        if by == Caller::Host {
            // What the host passes is in the log only.
            let function = self.program.function(function);
            let parameters = function.map_or(0, |f| self.program.types[f.ty].params.len());
            self.activations.given = vec![KEPT; parameters];
        }
        self.activations.enter();
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        // Nothing of it is computed by an instruction.
        if std::mem::take(&mut self.caught) {
            for &(low, high) in values {
                self.event(Event::Returned, low, high);
            }
        }
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.activations.leave();
        match results {
            Some((first, count)) => self.deliver(first, count, None),
            None => self.unwound += 1,
        }
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        // The log has it.
        self.deliver(first, count, Some(1));
    }

    fn host_call(&mut self) {
        self.host_calls += 1;
        // The host may call itself, where an import is exported.
        if std::mem::take(&mut self.calls) {
            self.event(Event::HostCall, self.host_calls, 0);
        }
    }

    fn host_write(&mut self, range: Range) {
        let def = Def::other(HOST, self.host_calls);
        let entry = Entry { def, cost: 0 };
        self.memories[range.memory as usize].write(range.address, range.length, entry);
    }

    fn caught(&mut self, first: u32, count: u32) {
        let variables = u64::from(first) << 32 | u64::from(count);
        self.event(Event::Caught, self.unwound, variables);
        self.caught = true;
        // The reference may follow.
        for variable in first..=first.saturating_add(count) {
            self.activations.set(variable, KEPT);
        }
        // If the handler is the function's own label, these are returned.
        self.activations.given.clear();
    }
}

impl Builder<'_> {
    /// Tells what happens to the execution at hand.
    fn event(&mut self, event: Event, value: u64, high: u64) {
        let known = self.known.node(self.current.node);
        let (input, execution) = (known.model.of_event(event), self.current.count);
        let column = self.column(input);
        column.cut_at.push(execution);
        column.cut.push(value);
        if matches!(event, Event::Caught | Event::Returned) {
            column.cut_high.push(high);
        }
        self.buffers.size += 1;
    }

    /// Keeps the values of the execution at hand that are to be, as far as it came.
    #[inline]
    fn keep_values(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        let count = self.current.count;
        // What comes from elsewhere than memory is always kept.
        for &(inst, input) in &self.known.node(self.current.node).elsewhere {
            if (inst as usize) < executed {
                self.cuts.push(input);
            }
        }
        for i in 0..self.cuts.len() {
            let input = self.cuts[i] as usize;
            let model = &self.known.node(self.current.node).model;
            let (register, vector) = match input.checked_sub(model.variables.len()) {
                Some(read) => {
                    let Read { inst, from } = model.reads[read];
                    let scalar = matches!(code.insts[inst as usize].code, Code::Load(_));
                    let vector = !scalar && from != ReadFrom::Elsewhere;
                    (code.first_result() + inst, vector)
                }
                None => (model.variables[input], true),
            };
            let register = register as usize;
            let column = self.column(input);
            column.cut_at.push(count);
            column.cut.push(low[register]);
            if let Some(&high) = high.get(register) {
                column.cut_high.push(if vector { high } else { 0 });
            }
            self.buffers.size += 1;
        }
    }

    /// What a call gave is in the variables from `first` on.
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
