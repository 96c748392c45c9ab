//! Observes the running machine, and updates the shadow.

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::{Caller, NodeCode, Observer, Range};
use afterimage_wpp::Visit;
use anyhow::Result;

use super::Dependences;
use crate::depends::MadeBy;
use crate::shadow::{Began, Frame, Maker};

impl Dependences<'_> {
    /// Calls `act` and keeps its error. Does nothing if an earlier attempt failed.
    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) {
        if self.failed.is_none()
            && let Err(error) = act(self)
        {
            self.failed = Some(error);
        }
    }

    /// Records the writers of the memory that an instruction reads.
    fn reads(&mut self, inst: usize, range: Range, is_copy: bool) -> Result<()> {
        let mut parts = self.bytes.read(range);
        if parts.iter().any(|(_, maker)| *maker == Maker::Unknown) {
            let instance = self.instance()?;
            let readings = if is_copy {
                self.values.copied(instance, inst)?
            } else {
                self.values.reading(instance, inst)?
            };
            let mut at = range.address;
            for reading in readings {
                let length = match reading.length {
                    0 => range.length,
                    length => length,
                };
                let part = Range {
                    address: at,
                    length,
                    ..range
                };
                let maker = self.writer(reading.writer)?;
                self.bytes.write(part, maker);
                at = at.wrapping_add(length);
            }
            parts = self.bytes.read(range);
        }
        self.now.reads.push((inst, "memory", parts));
        Ok(())
    }

    /// Records that the innermost activation receives results in its variables from `first` on.
    fn take_results(&mut self, first: u32, count: u32) {
        if let Some(frame) = self.frames.last_mut() {
            for (variable, at) in (first..first + count).zip(0..) {
                let maker = self.given.get(at).copied();
                frame.set(variable, maker.unwrap_or_default());
            }
        }
        self.given_end = Some(first + count);
    }

    fn statement_at(&self, inst: usize) -> Maker {
        let place = self
            .now
            .plan
            .as_ref()
            .and_then(|plan| plan.places.get(inst));
        match (place, self.now.visit) {
            (Some(&(block, statement)), Some(visit)) => Maker::Statement {
                time: visit.start + u64::from(block),
                statement,
            },
            _ => Maker::Unknown,
        }
    }

    /// Records the variables that the node wrote, and the edges that it took.
    fn leave_node(&mut self) -> Result<()> {
        let (Some(plan), Some(visit)) = (self.now.plan.clone(), self.now.visit) else {
            return Ok(());
        };
        let mut given = Vec::with_capacity(plan.given.len());
        for &from in &plan.given {
            given.push(self.maker_lazily(from, visit));
        }
        self.given = given;
        let outputs = plan.outputs.iter();
        let outputs = outputs.map(|&(to, from)| (to, self.maker_lazily(from, visit)));
        let outputs = Vec::from_iter(outputs);
        if let Some(frame) = self.frames.last_mut() {
            for (to, maker) in outputs {
                frame.set(to, maker);
            }
            for &(position, edge) in &plan.taken {
                frame.taken.insert(edge, visit.start + u64::from(position));
            }
            frame.last = Some((plan.last, visit.last()));
        }
        self.now.done = true;
        Ok(())
    }

    /// Returns the producer of an operand. Does not look up an unknown producer.
    fn maker_lazily(&self, from: MadeBy, visit: Visit) -> Maker {
        match from {
            MadeBy::Constant => Maker::Constant,
            MadeBy::Own(block, statement) => Maker::Statement {
                time: visit.start + u64::from(block),
                statement,
            },
            MadeBy::Variable(variable) => {
                let frame = self.frames.last();
                frame.map_or(Maker::Unknown, |frame| frame.get(variable))
            }
        }
    }

    /// Records the edge over which the activation reaches a node.
    fn arrive(&mut self) {
        let (Some(plan), Some(visit)) = (self.now.plan.clone(), self.now.visit) else {
            return;
        };
        let program = self.values.program();
        let function = self.values.path().nodes()[visit.node].function;
        let Some(code) = program.function(function) else {
            return;
        };
        let control = self.controls.of(function, &code.cfg);
        if let Some(frame) = self.frames.last_mut()
            && let Some((from, time)) = frame.last
        {
            for edge in control.edges(&code.cfg, from, plan.first) {
                frame.taken.insert(edge, time);
            }
        }
    }
}

impl Observer for Dependences<'_> {
    const REGISTERS: bool = false;

    fn node(&mut self, _: NodeId, _: &NodeCode) {
        // Add the activations that were open before the window.
        if std::mem::take(&mut self.is_new) {
            let missing = self.now.depth.saturating_sub(self.frames.len());
            let before = (0..missing).map(|_| Frame::default());
            self.frames.splice(0..0, before);
        }
        self.arrive();
    }

    fn read(&mut self, inst: usize, range: Range) {
        self.attempt(|this| this.reads(inst, range, false));
    }

    fn write(&mut self, inst: usize, range: Range) {
        let maker = self.statement_at(inst);
        self.bytes.write(range, maker);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        if from.length > 0 {
            self.attempt(|this| this.reads(inst, from, true));
        }
        let maker = self.statement_at(inst);
        self.bytes.write(to, maker);
    }

    fn read_global(&mut self, inst: usize, global: u32) {
        self.attempt(|this| {
            let maker = match this.globals.get(&global) {
                Some(known) => *known,
                None => {
                    let instance = this.instance()?;
                    let readings = this.values.reading(instance, inst)?;
                    let maker = match readings.first() {
                        Some(reading) => this.writer(reading.writer)?,
                        None => Maker::Constant,
                    };
                    this.globals.insert(global, maker);
                    maker
                }
            };
            this.now.reads.push((inst, "global", vec![(0, maker)]));
            Ok(())
        });
    }

    fn write_global(&mut self, inst: usize, global: u32) {
        let maker = self.statement_at(inst);
        self.globals.insert(global, maker);
    }

    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        self.attempt(|this| {
            this.rows(usize::MAX, false)?;
            this.leave_node()
        });
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        self.attempt(|this| this.rows(executed, true));
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        let program = self.values.program();
        let params = program.type_of(function).map_or(0, |ty| ty.params.len());
        // The call ended the block before this node.
        let call = self.now.visit.map_or(0, |visit| visit.start - 1);
        let frame = match by {
            Caller::Host => Frame::new(Began::Host, vec![Maker::Argument; params]),
            // The producers of the arguments were lost at the end of the last window.
            _ if self.is_new => Frame::new(Began::Call(call), vec![Maker::Unknown; params]),
            _ => Frame::new(Began::Call(call), self.given.clone()),
        };
        self.frames.push(frame);
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.frames.pop();
        if let Some((first, count)) = results {
            self.take_results(first, count);
        }
    }

    fn host_call(&mut self) {
        self.attempt(|this| {
            let call = if this.now.done {
                let instance = this.instance()?;
                this.of_guest(this.values.host_call(instance)?)?
            } else {
                None
            };
            this.now.host = Some(call);
            Ok(())
        });
    }

    fn host_write(&mut self, range: Range) {
        let call = self.now.host.flatten();
        self.bytes.write(range, Maker::Host { call });
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        let returned = Maker::Returned {
            time: self.now.visit.map_or(0, |visit| visit.last()),
            statement: self.now.plan.as_ref().and_then(|plan| plan.last_statement),
            call: self.now.host.flatten(),
        };
        self.given = vec![returned; count as usize];
        self.take_results(first, count);
    }

    fn caught(&mut self, first: u32, count: u32) {
        // The stored values show which statement threw these values. A reference to the exception
        // may follow them, hence the inclusive range.
        if let Some(frame) = self.frames.last_mut() {
            for variable in first..=first + count {
                frame.set(variable, Maker::Unknown);
            }
        }
        self.given_end = None;
    }

    fn passes_on(&mut self, function: FuncId) {
        let program = self.values.program();
        let count = program.type_of(function).map_or(0, |ty| ty.results.len()) as u32;
        let first = self.given_end.and_then(|end| end.checked_sub(count));
        self.given = match self.frames.last().zip(first) {
            Some((frame, first)) => {
                let variables = first..first + count;
                variables.map(|variable| frame.get(variable)).collect()
            }
            None => vec![Maker::Unknown; count as usize],
        };
    }
}
