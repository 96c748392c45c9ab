//! Goes one link back from a value.

use afterimage_ids::FuncId;
use afterimage_machine::{Code, NodeEnd, Range, Register};
use afterimage_program::{Callee, Program};
use afterimage_wet::{Source, Writer};

use super::bits;
use super::lanes::{self, Loaded};
use super::{At, Bytes, Computed, End, Move, StepBack, WhyError};
use afterimage_replay::values::{Instance, RecordedValues};

/// The range that represents everything outside memory.
const NOTHING: Range = Range {
    memory: 0,
    address: 0,
    length: 0,
};

/// Some bytes of a value, with the bits of interest. `None` means all bits of the bytes.
#[derive(Clone, Copy)]
struct Part {
    bytes: Bytes,
    bits: Option<u64>,
}

/// Goes back through a run, link by link.
#[derive(Clone, Copy)]
pub struct Walk<'v, 'a> {
    /// The whole execution trace.
    pub values: &'v RecordedValues<'a>,
    /// The program that ran.
    pub program: &'a Program,
}

impl Walk<'_, '_> {
    /// Follows a value back by one link. Takes a few look-ups in the trace.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn back(&self, at: At) -> Result<StepBack, WhyError> {
        self.back_from(at, None)
    }

    /// Like [`back`](Self::back), but for an [`At::Part`], follows only these bits of the bytes in
    /// question.
    pub(super) fn back_from(&self, at: At, bits: Option<u64>) -> Result<StepBack, WhyError> {
        match at {
            At::Register(instance, register) => self.register(instance, register, None),
            At::Part(instance, register, bytes) => {
                self.register(instance, register, Some(Part { bytes, bits }))
            }
            At::Result(call, index) => match self.values.returned_in(call, index)? {
                Ok((instance, register)) => self.register(instance, register, None),
                Err(source) => match self.carried(source)? {
                    Some((instance, register)) => self.register(instance, register, None),
                    None => self.source(source, (call, 0), None),
                },
            },
            At::Written {
                instance,
                inst,
                range,
            } => self.written(instance, inst, range),
            At::End(end) => Ok(StepBack::End(end)),
        }
    }

    /// Returns the function that the call at the end of an execution calls directly. Returns `None`
    /// for an indirect call, and if the execution does not end with a call.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
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

    fn register(
        &self,
        mut instance: Instance,
        mut register: Register,
        part: Option<Part>,
    ) -> Result<StepBack, WhyError> {
        loop {
            let (source, at, of) = self.values.source_at(instance, register)?;
            match self.carried(source)? {
                Some(next) => (instance, register) = next,
                None => return self.source(source, (at, of), part),
            }
        }
    }

    /// If the source is an exception that carries exactly one value, returns this value. Examines
    /// each place where the exception was rethrown.
    fn carried(&self, mut source: Source) -> Result<Option<(Instance, Register)>, WhyError> {
        while let Source::Thrown { instance } = source {
            let compiled = self.values.compiled(instance.node)?;
            source = match &compiled.code.end {
                NodeEnd::Throw { values, .. } => {
                    return Ok(match values[..] {
                        [only] => Some((instance, only)),
                        _ => None,
                    });
                }
                NodeEnd::Rethrow { exception, .. } => self.values.source(instance, *exception)?,
                _ => return Err(WhyError::Damaged("an exception that nothing threw")),
            };
        }
        Ok(None)
    }

    fn source(
        &self,
        source: Source,
        (at, register): (Instance, Register),
        part: Option<Part>,
    ) -> Result<StepBack, WhyError> {
        Ok(match source {
            Source::Constant(low) => {
                let compiled = self.values.compiled(at.node)?;
                let code = &compiled.code;
                let wide = code.wide_constants.iter().find(|(r, _)| *r == register);
                let position = (register - code.variables) as usize;
                StepBack::End(End::Constant {
                    bits: (low, wide.map_or(0, |(_, high)| *high)),
                    instance: at,
                    op: compiled.constants[position],
                })
            }
            Source::Zero => StepBack::End(End::Zero),
            Source::Argument { instance, index } => {
                StepBack::End(End::Argument { instance, index })
            }
            Source::Returned { instance, index } => {
                StepBack::End(End::Returned { instance, index })
            }
            Source::Thrown { instance } => StepBack::End(End::Thrown(instance)),
            Source::Open { instance } => StepBack::End(End::Open(instance)),
            Source::Result { instance, inst } => self.result(instance, inst, part)?,
        })
    }

    /// Goes back from the result of an instruction, or from a part of it.
    fn result(
        &self,
        instance: Instance,
        inst: usize,
        part: Option<Part>,
    ) -> Result<StepBack, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let moved = |how, next| StepBack::Moved {
            how,
            instance,
            inst,
            next,
            besides: 0,
        };
        Ok(match one.code {
            Code::Load(_) | Code::LoadVector(_) => self.loaded(instance, inst, part)?,
            Code::GlobalGet => {
                let index = one.immediate as u32;
                let readings = self.values.reading(instance, inst)?;
                let unknown = WhyError::Damaged("a global that nothing wrote");
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
            Code::Vector(operator) => {
                let extra = compiled.code.vector(inst);
                let immediate = extra.map_or(0, |extra| extra.immediate);
                match lanes::moved(operator, immediate, part.map(|part| part.bytes)) {
                    Some((operand, bytes)) => {
                        let register = if operand == 0 { one.a } else { one.b };
                        let next = At::Part(instance, register, bytes);
                        moved(Move::Lanes { operand, bytes }, next)
                    }
                    None => StepBack::Computed(Computed { instance, inst }),
                }
            }
            Code::Select | Code::SelectVector => {
                let first = self.values.value(instance, one.c)?.0 as u32 != 0;
                let register = if first { one.a } else { one.b };
                moved(Move::Select(first), in_register(instance, register, part))
            }
            _ => StepBack::Computed(Computed { instance, inst }),
        })
    }

    fn loaded(
        &self,
        instance: Instance,
        inst: usize,
        part: Option<Part>,
    ) -> Result<StepBack, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let register = compiled.code.first_result() + inst as u32;
        let lane = u64::from(one.c);
        let wanted = match one.code {
            Code::LoadVector(load) => {
                match lanes::loaded(load, lane, part.map(|part| part.bytes)) {
                    Loaded::Memory(bytes) => bytes,
                    Loaded::Kept(bytes) => {
                        return Ok(StepBack::Moved {
                            how: Move::Lanes { operand: 1, bytes },
                            instance,
                            inst,
                            next: At::Part(instance, one.b, bytes),
                            besides: 0,
                        });
                    }
                }
            }
            Code::Load(load) => match part.map(|part| part.bytes) {
                // Bytes that were not read from memory extend the sign of the highest byte that
                // was.
                Some(part) if part.first < load.bytes.into() => {
                    part.first..(part.first + part.length).min(load.bytes.into())
                }
                _ => 0..load.bytes.into(),
            },
            _ => 0..0,
        };
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
        let mut parts = Vec::with_capacity(readings.len());
        let mut first = 0;
        for reading in &readings {
            // Length 0 means the whole range.
            let length = if reading.length == 0 {
                range.length
            } else {
                reading.length
            };
            let here = wanted.start.max(first)..wanted.end.min(first + length);
            if !here.is_empty() {
                parts.push((here, reading.writer));
            }
            first += length;
        }
        // For a scalar, the bytes with bits of interest.
        let bits = match (one.code, part.and_then(|part| part.bits)) {
            (Code::Load(load), Some(bits)) => bits::read(load, bits),
            _ => u64::MAX,
        };
        let has_bits =
            |(here, _): &(std::ops::Range<u64>, Writer)| bits::within(bits, here.clone()) != 0;
        if parts.iter().any(has_bits) {
            parts.retain(has_bits);
        }
        let which = match parts.len() {
            0 => return Err(WhyError::Damaged("a load that reads nothing")),
            1 => 0,
            _ => {
                let (low, high) = self.values.value(instance, register)?;
                let held = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
                telling(
                    &parts,
                    &match one.code {
                        Code::LoadVector(load) => lanes::in_memory(load, lane, held),
                        _ => (low & bits).to_le_bytes().to_vec(),
                    },
                )
            }
        };
        let (bytes, writer) = &parts[which];
        let of_part = Range {
            address: range.address.wrapping_add(bytes.start),
            length: bytes.end - bytes.start,
            ..range
        };
        Ok(StepBack::Moved {
            how: Move::Load(range),
            instance,
            inst,
            next: written_in(*writer, of_part),
            besides: parts.len() as u64 - 1,
        })
    }

    /// Goes back from bytes that an instruction wrote.
    fn written(&self, instance: Instance, inst: usize, range: Range) -> Result<StepBack, WhyError> {
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let moved = |how, next, besides| StepBack::Moved {
            how,
            instance,
            inst,
            next,
            besides,
        };
        let value = |register| At::Register(instance, register);
        let all = self.values.range_written(instance, inst)?;
        let Some(all) = all else {
            let how = Move::GlobalSet(one.immediate as u32);
            return Ok(moved(how, value(one.a), 0));
        };
        Ok(match one.code {
            Code::MemoryFill => {
                let lowest = Bytes {
                    first: 0,
                    length: 1,
                };
                moved(Move::Fill(all), At::Part(instance, one.b, lowest), 0)
            }
            Code::MemoryInit => {
                let (from, _) = self.values.value(instance, one.b)?;
                StepBack::End(End::Segment {
                    segment: one.immediate as u32,
                    offset: from.wrapping_add(range.address.wrapping_sub(all.address)),
                })
            }
            Code::MemoryCopy => {
                let (from, _) = self.values.value(instance, one.b)?;
                let skipped = range.address.wrapping_sub(all.address);
                let from = Range {
                    memory: one.immediate as u32,
                    address: from.wrapping_add(skipped),
                    length: range.length,
                };
                let bytes = skipped..skipped.saturating_add(range.length);
                let readings = self.values.copied_within(instance, inst, bytes)?;
                let unknown = WhyError::Damaged("a copy of nothing");
                let (part, others) = readings.split_first().ok_or(unknown)?;
                let length = range.length.min(part.length);
                let besides = others.len() as u64;
                let next = written_in(part.writer, Range { length, ..from });
                moved(Move::Copy { from, to: range }, next, besides)
            }
            code => {
                let skipped = range.address.wrapping_sub(all.address);
                let lane = match code {
                    Code::StoreVector(store) => lanes::stored(store, one.c.into()),
                    _ => 0,
                };
                let part = Bytes {
                    first: lane + skipped,
                    length: range.length,
                };
                let next = At::Part(instance, one.b, part);
                moved(Move::Store(all), next, 0)
            }
        })
    }
}

/// Returns the origin of the bytes that this writer wrote.
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

/// Returns the contents of a register, or a part of them.
fn in_register(instance: Instance, register: Register, part: Option<Part>) -> At {
    match part {
        Some(part) => At::Part(instance, register, part.bytes),
        None => At::Register(instance, register),
    }
}

/// Among the parts that were read, chooses the first with a byte other than zero, because that part
/// is the most informative. If all bytes are zero, chooses the first part.
fn telling(parts: &[(std::ops::Range<u64>, Writer)], bytes: &[u8]) -> usize {
    let tells = |part: &std::ops::Range<u64>| {
        let own = bytes.get(part.start as usize..part.end as usize);
        own.is_some_and(|own| own.iter().any(|byte| *byte != 0))
    };
    parts.iter().position(|(part, _)| tells(part)).unwrap_or(0)
}
