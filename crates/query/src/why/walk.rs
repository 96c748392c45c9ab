//! One link back.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::{Code, NodeEnd, Range, Register};
use afterimage_program::{Callee, Program};
use afterimage_wet::{Reading, Source, Writer};
use wasmparser::Operator;

use super::{At, Computed, End, Found, Move, WhyError};
use crate::values::{Bits, Instance, RecordedValues, written_by};

/// Of what is no memory.
const NOTHING: Range = Range {
    memory: 0,
    address: 0,
    length: 0,
};

/// Goes back through a run, link by link.
#[derive(Clone, Copy)]
pub struct Walk<'v, 'a> {
    /// The whole execution trace.
    pub values: &'v RecordedValues<'a>,
    /// The program.
    pub program: &'a Program,
    /// What it was parsed from.
    pub module: &'a [u8],
}

impl Walk<'_, '_> {
    /// Where a value was before. Some questions to the trace.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
    pub fn back(&self, at: At) -> Result<Found, WhyError> {
        match at {
            At::Register(instance, register) => self.register(instance, register),
            At::Result(call, index) => match self.values.returned_in(call, index)? {
                Ok((instance, register)) => self.register(instance, register),
                Err(source) => self.source(source, call, 0),
            },
            At::Written {
                instance,
                inst,
                range,
            } => self.written(instance, inst, range),
            At::End(end) => Ok(Found::End(end)),
        }
    }

    /// Whom an execution calls at its end, if it is always the same function.
    ///
    /// # Errors
    /// If the trace is damaged.
    pub fn called(&self, instance: Instance) -> Result<Option<FuncId>, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        Ok(match compiled.code.end {
            NodeEnd::Call {
                callee: Callee::Direct(function),
                ..
            }
            | NodeEnd::TailCall {
                callee: Callee::Direct(function),
                ..
            } => Some(function),
            _ => None,
        })
    }

    fn register(&self, instance: Instance, register: Register) -> Result<Found, WhyError> {
        let (source, instance, register) = self.values.source_at(instance, register)?;
        self.source(source, instance, register)
    }

    fn source(&self, source: Source, at: Instance, register: Register) -> Result<Found, WhyError> {
        Ok(match source {
            Source::Constant(low) => {
                let compiled = self.values.compiled(at.node)?;
                let code = &compiled.code;
                let wide = code.wide_constants.iter().find(|(r, _)| *r == register);
                let bits = (low, wide.map_or(0, |(_, high)| *high));
                Found::End(End::Constant {
                    bits,
                    instance: at,
                    op: constant(self, at, bits),
                })
            }
            Source::Zero => Found::End(End::Zero),
            Source::Argument { instance, index } => Found::End(End::Argument { instance, index }),
            Source::Returned { instance, index } => Found::End(End::Returned { instance, index }),
            Source::Open { instance } | Source::Caught { instance } => {
                Found::End(End::Caught(instance))
            }
            Source::Result { instance, inst } => self.result(instance, inst)?,
        })
    }

    /// What an instruction gave.
    fn result(&self, instance: Instance, inst: usize) -> Result<Found, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let moved = |how, next| Found::Moved {
            how,
            instance,
            inst,
            next,
            besides: 0,
        };
        Ok(match one.code {
            Code::Load(_) | Code::LoadVector(_) => self.loaded(instance, inst)?,
            Code::GlobalGet => {
                let index = one.immediate as u32;
                let readings = self.values.reading(instance, inst)?;
                let unknown = WhyError::Damaged("a global that nobody wrote");
                let next = match readings.first().ok_or(unknown)?.writer {
                    Writer::Write { instance, inst, .. } => At::Written {
                        instance,
                        inst,
                        range: NOTHING,
                    },
                    Writer::Initial => At::End(End::Global(index)),
                    Writer::Host { call } => At::End(End::Host {
                        call,
                        range: NOTHING,
                    }),
                };
                moved(Move::GlobalGet(index), next)
            }
            Code::Select | Code::SelectVector => {
                let first = self.values.value(instance, one.c)?.0 as u32 != 0;
                let register = if first { one.a } else { one.b };
                moved(Move::Select(first), At::Register(instance, register))
            }
            _ => Found::Computed(Computed { instance, inst }),
        })
    }

    fn loaded(&self, instance: Instance, inst: usize) -> Result<Found, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let readings = self.values.reading(instance, inst)?;
        let (base, _) = self.values.value(instance, one.a)?;
        let range = Range {
            memory: u32::from(one.memory),
            address: base.wrapping_add(one.immediate),
            length: match one.code {
                Code::Load(load) => u64::from(load.bytes),
                Code::LoadVector(load) => load.bytes() as u64,
                _ => 0,
            },
        };
        let register = compiled.code.first_result() + inst as u32;
        let part = match readings.len() {
            0 => return Err(WhyError::Damaged("a load that reads nothing")),
            1 => 0,
            _ => telling(&readings, self.values.value(instance, register)?),
        };
        let before: u64 = readings[..part].iter().map(|reading| reading.length).sum();
        let of_part = Range {
            address: range.address.wrapping_add(before),
            length: match readings[part].length {
                // All of it.
                0 => range.length,
                length => length,
            },
            ..range
        };
        Ok(Found::Moved {
            how: Move::Load(range),
            instance,
            inst,
            next: written_in(readings[part].writer, of_part),
            besides: readings.len() as u64 - 1,
        })
    }

    /// Bytes that an instruction wrote.
    fn written(&self, instance: Instance, inst: usize, range: Range) -> Result<Found, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let moved = |how, next, besides| Found::Moved {
            how,
            instance,
            inst,
            next,
            besides,
        };
        let value = |register| At::Register(instance, register);
        let all = written_by(self.values, instance, &compiled, inst)?;
        let Some(all) = all else {
            let how = Move::GlobalSet(one.immediate as u32);
            return Ok(moved(how, value(one.a), 0));
        };
        Ok(match one.code {
            Code::MemoryFill => moved(Move::Fill(all), value(one.b), 0),
            Code::MemoryInit => {
                let (from, _) = self.values.value(instance, one.b)?;
                Found::End(End::Segment {
                    segment: one.immediate as u32,
                    offset: from.wrapping_add(range.address.wrapping_sub(all.address)),
                })
            }
            Code::MemoryCopy => {
                let (from, _) = self.values.value(instance, one.b)?;
                let mut skipped = range.address.wrapping_sub(all.address);
                let from = Range {
                    memory: one.immediate as u32,
                    address: from.wrapping_add(skipped),
                    length: range.length,
                };
                let readings = self.values.copied(instance, inst)?;
                let before = |reading: &&Reading| {
                    let before = reading.length <= skipped;
                    skipped -= if before { reading.length } else { 0 };
                    before
                };
                let first = readings.iter().take_while(before).count();
                let unknown = WhyError::Damaged("a copy of nothing");
                let part = readings.get(first).ok_or(unknown)?;
                let length = range.length.min(part.length - skipped);
                let mut left = range.length - length;
                let mut besides = 0;
                for part in &readings[first + 1..] {
                    if left == 0 {
                        break;
                    }
                    left = left.saturating_sub(part.length);
                    besides += 1;
                }
                let next = written_in(part.writer, Range { length, ..from });
                moved(Move::Copy { from, to: range }, next, besides)
            }
            _ => moved(Move::Store(all), value(one.b), 0),
        })
    }
}

/// Bytes by whoever wrote them.
fn written_in(writer: Writer, range: Range) -> At {
    match writer {
        Writer::Initial => At::End(End::Memory(range)),
        Writer::Host { call } => At::End(End::Host { call, range }),
        Writer::Write { instance, inst, .. } => At::Written {
            instance,
            inst,
            range,
        },
    }
}

/// Of a value that was read in parts, the one that tells most: the first with a byte that is not zero.
fn telling(readings: &[Reading], (low, high): Bits) -> usize {
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
    let mut first = 0;
    for (number, reading) in readings.iter().enumerate() {
        let end = (first + reading.length as usize).min(bytes.len());
        if bytes[first.min(end)..end].iter().any(|byte| *byte != 0) {
            return number;
        }
        first = end;
    }
    0
}

/// The operator in the blocks of an execution's node that is a constant, if there is one only.
pub fn constant(walk: &Walk<'_, '_>, at: Instance, bits: Bits) -> Option<OpId> {
    let node = &walk.values.path().nodes()[at.node];
    let function = walk.program.function(node.function)?;
    let is_it = |operator: &Operator<'_>| match *operator {
        Operator::I32Const { value } => bits == (u64::from(value as u32), 0),
        Operator::I64Const { value } => bits == (value as u64, 0),
        Operator::F32Const { value } => bits == (u64::from(value.bits()), 0),
        Operator::F64Const { value } => bits == (value.bits(), 0),
        Operator::V128Const { value } => {
            let value = value.i128() as u128;
            bits == (value as u64, (value >> 64) as u64)
        }
        _ => false,
    };
    let mut found = None;
    for (op, _, operator) in walk.program.operators(walk.module, function) {
        let here = || {
            function
                .block_of(op)
                .is_some_and(|block| node.blocks.contains(&block))
        };
        if is_it(&operator) && here() && found.replace(op).is_some() {
            return None;
        }
    }
    found
}
