//! Translates operators to instructions.

use afterimage_ids::{BlockId, EdgeId, OpId};
use afterimage_numeric::{Scalar, Vector, VectorLoad, VectorStore};
use afterimage_program::{Callee, EdgeKind};
use wasmparser::{MemArg, Operator};

use super::body::{callee_of, type_of};
use super::{Compiler, Constant};
use crate::code::{NodeEnd, TableIndices, VectorExtra};
use crate::inst::{Code, Expected, Load};

impl Compiler<'_> {
    /// Appends the instructions for an operator. `ways` are the edges that the path takes after the
    /// operator's block. Returns `None` if these edges are impossible.
    pub(super) fn operator(
        &mut self,
        op: OpId,
        operator: &Operator<'_>,
        ways: &[EdgeId],
        block: BlockId,
    ) -> Option<()> {
        if let Some(scalar) = Scalar::of(operator) {
            let b = if scalar.arity() == 2 { self.pop()? } else { 0 };
            let a = self.pop()?;
            let result = self.inst(op, Code::Scalar(scalar), [a, b, 0], 0);
            self.push(result);
            return Some(());
        }
        if self.moves(operator)?
            || self.constants_of(op, operator)
            || self.memory_access(op, operator)?
            || self.control(op, operator, ways, block)?
            || self.vector(op, operator)?
            || self.atomic(op, operator)?
        {
            return Some(());
        }
        self.bulk(op, operator)
    }

    fn moves(&mut self, operator: &Operator<'_>) -> Option<bool> {
        match *operator {
            Operator::Nop => {}
            Operator::Drop => {
                self.height = self.height.checked_sub(1)?;
            }
            Operator::LocalGet { local_index } => {
                let value = self.read(local_index);
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop()?;
                self.assign(local_index, value);
            }
            Operator::LocalTee { local_index } => {
                let value = self.pop()?;
                self.push(value);
                self.assign(local_index, value);
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn constants_of(&mut self, op: OpId, operator: &Operator<'_>) -> bool {
        let value = Constant::Scalar(match *operator {
            Operator::I32Const { value } => u64::from(value as u32),
            Operator::I64Const { value } => value as u64,
            Operator::F32Const { value } => u64::from(value.bits()),
            Operator::F64Const { value } => value.bits(),
            Operator::RefNull { .. } => 0,
            Operator::RefFunc { function_index } => u64::from(function_index) + 1,
            Operator::V128Const { value } => {
                let bits = u128::from_le_bytes(*value.bytes());
                let register = self.constant(op, Constant::Vector(bits));
                self.push(register);
                return true;
            }
            _ => return false,
        });
        let register = self.constant(op, value);
        self.push(register);
        true
    }

    fn control(
        &mut self,
        op: OpId,
        operator: &Operator<'_>,
        ways: &[EdgeId],
        block: BlockId,
    ) -> Option<bool> {
        if let Some((callee, tail)) = callee_of(operator) {
            let index = match callee {
                Callee::Indirect { .. } => Some(self.pop()?),
                Callee::Direct(_) => None,
            };
            let ty = type_of(self.program, callee)?;
            let base = self.height.checked_sub(ty.params.len() as u32)?;
            let arguments = (base..self.height).map(|slot| self.read_slot(slot));
            let arguments = arguments.collect();
            self.height = base;
            self.end = if tail {
                NodeEnd::TailCall {
                    callee,
                    index,
                    arguments,
                }
            } else {
                NodeEnd::Call {
                    callee,
                    index,
                    arguments,
                    results: self.body.slots.of_slot(base),
                    block,
                }
            };
            return Some(true);
        }
        match operator {
            Operator::Br { .. } | Operator::Return | Operator::Unreachable => {}
            Operator::If { .. } | Operator::BrIf { .. } => {
                let a = self.pop()?;
                let kinds = ways.iter().map(|&e| self.body.function.cfg.edges[e].kind);
                let taken = |kind| matches!(kind, EdgeKind::Taken | EdgeKind::Then);
                let (mut yes, mut no) = (false, false);
                for kind in kinds {
                    *(if taken(kind) { &mut yes } else { &mut no }) = true;
                }
                let expected = match (yes, no) {
                    (true, false) => Expected::True,
                    (false, true) => Expected::False,
                    _ => Expected::Any,
                };
                self.inst(op, Code::Branch(expected), [a, 0, 0], 0);
            }
            Operator::BrTable { targets } => {
                let a = self.pop()?;
                let cfg = &self.body.function.cfg;
                let depths = Vec::from_iter(ways.iter().filter_map(|&e| match cfg.edges[e].kind {
                    EdgeKind::Table(depth) => Some(depth),
                    _ => None,
                }));
                let (expected, list) = if depths.is_empty() {
                    (Expected::Any, 0)
                } else {
                    let all = targets.targets().collect::<Result<Vec<_>, _>>().ok()?;
                    let indices = (0..).zip(&all).filter(|(_, d)| depths.contains(d));
                    self.lists.push(TableIndices {
                        indices: indices.map(|(i, _)| i).collect(),
                        from: depths
                            .contains(&targets.default())
                            .then_some(all.len() as u32),
                    });
                    (Expected::OneOf, self.lists.len() as u64 - 1)
                };
                self.inst(op, Code::Branch(expected), [a, 0, 0], list);
            }
            Operator::Throw { tag_index } => {
                let ty = self.program.tags.get(*tag_index as usize)?;
                let count = self.program.types.get(*ty)?.params.len() as u32;
                let base = self.height.checked_sub(count)?;
                let values = (base..self.height).map(|slot| self.read_slot(slot));
                let values = values.collect();
                self.height = base;
                self.end = NodeEnd::Throw {
                    tag: *tag_index,
                    values,
                    block,
                };
            }
            Operator::ThrowRef => {
                let exception = self.pop()?;
                self.end = NodeEnd::Rethrow { exception, block };
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn memory_access(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        let load = |bytes, sign| Code::Load(Load { bytes, sign });
        let loads = |memarg: &MemArg, bytes, sign| Some((*memarg, load(bytes, sign), false));
        let stores = |memarg: &MemArg, bytes| Some((*memarg, Code::Store(bytes), true));
        let access = match operator {
            Operator::I32Load { memarg }
            | Operator::F32Load { memarg }
            | Operator::I64Load32U { memarg } => loads(memarg, 4, 0),
            Operator::I64Load { memarg } | Operator::F64Load { memarg } => loads(memarg, 8, 0),
            Operator::I32Load8U { memarg } | Operator::I64Load8U { memarg } => loads(memarg, 1, 0),
            Operator::I32Load16U { memarg } | Operator::I64Load16U { memarg } => {
                loads(memarg, 2, 0)
            }
            Operator::I32Load8S { memarg } => loads(memarg, 1, 32),
            Operator::I32Load16S { memarg } => loads(memarg, 2, 32),
            Operator::I64Load8S { memarg } => loads(memarg, 1, 64),
            Operator::I64Load16S { memarg } => loads(memarg, 2, 64),
            Operator::I64Load32S { memarg } => loads(memarg, 4, 64),
            Operator::I32Store { memarg }
            | Operator::F32Store { memarg }
            | Operator::I64Store32 { memarg } => stores(memarg, 4),
            Operator::I64Store { memarg } | Operator::F64Store { memarg } => stores(memarg, 8),
            Operator::I32Store8 { memarg } | Operator::I64Store8 { memarg } => stores(memarg, 1),
            Operator::I32Store16 { memarg } | Operator::I64Store16 { memarg } => stores(memarg, 2),
            _ => None,
        };
        let Some((memarg, code, store)) = access else {
            return Some(false);
        };
        let b = if store { self.pop()? } else { 0 };
        let a = self.pop()?;
        let result = self.in_memory(op, code, memarg.memory, [a, b, 0], memarg.offset);
        if !store {
            self.push(result);
        }
        Some(true)
    }

    fn vector(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        if let Some((vector, immediate)) = Vector::of(operator) {
            let mut operands = [0; 3];
            for operand in operands[..vector.signature().0.len()].iter_mut().rev() {
                *operand = self.pop()?;
            }
            let result = self.inst(op, Code::Vector(vector), operands, 0);
            let c = operands[2];
            self.vectors.push((result, VectorExtra { c, immediate }));
            self.push(result);
            return Some(true);
        }
        if let Some((load, memarg, lane)) = VectorLoad::of(operator) {
            let b = if load.keeps() { self.pop()? } else { 0 };
            let a = self.pop()?;
            let code = Code::LoadVector(load);
            let lane = u32::from(lane);
            let result = self.in_memory(op, code, memarg.memory, [a, b, lane], memarg.offset);
            self.push(result);
            return Some(true);
        }
        if let Some((store, memarg, lane)) = VectorStore::of(operator) {
            let b = self.pop()?;
            let a = self.pop()?;
            let code = Code::StoreVector(store);
            let lane = u32::from(lane);
            self.in_memory(op, code, memarg.memory, [a, b, lane], memarg.offset);
            return Some(true);
        }
        Some(false)
    }

    /// Appends the instructions for operators on globals, sizes, bulk memory, tables and
    /// references, and for selects.
    fn bulk(&mut self, op: OpId, operator: &Operator<'_>) -> Option<()> {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (code, memory, immediate) = match *operator {
            Operator::Select | Operator::TypedSelect { .. } => (Code::Select, 0, 0),
            Operator::GlobalGet { global_index } => (Code::GlobalGet, 0, u64::from(global_index)),
            Operator::GlobalSet { global_index } => (Code::GlobalSet, 0, u64::from(global_index)),
            Operator::MemorySize { mem } => (Code::MemorySize, mem, 0),
            Operator::MemoryGrow { mem } => (Code::MemoryGrow, mem, 0),
            Operator::MemoryCopy { dst_mem, src_mem } => {
                (Code::MemoryCopy, dst_mem, u64::from(src_mem))
            }
            Operator::MemoryFill { mem } => (Code::MemoryFill, mem, 0),
            Operator::MemoryInit { data_index, mem } => {
                (Code::MemoryInit, mem, u64::from(data_index))
            }
            Operator::DataDrop { data_index } => (Code::DataDrop, 0, u64::from(data_index)),
            Operator::TableGet { table } => (Code::TableGet, 0, u64::from(table)),
            Operator::TableSet { table } => (Code::TableSet, 0, u64::from(table)),
            Operator::TableSize { table } => (Code::TableSize, 0, u64::from(table)),
            Operator::TableGrow { table } => (Code::TableGrow, 0, u64::from(table)),
            Operator::TableFill { table } => (Code::TableFill, 0, u64::from(table)),
            Operator::TableCopy {
                dst_table,
                src_table,
            } => (Code::TableCopy, 0, pair(dst_table, src_table)),
            Operator::TableInit { elem_index, table } => {
                (Code::TableInit, 0, pair(table, elem_index))
            }
            Operator::ElemDrop { elem_index } => (Code::ElementDrop, 0, u64::from(elem_index)),
            Operator::RefIsNull => (Code::RefIsNull, 0, 0),
            _ => return None,
        };
        let mut operands = [0; 3];
        for operand in operands[..code.operands()].iter_mut().rev() {
            *operand = self.pop()?;
        }
        let code = match code {
            Code::Select if self.is_vector(operands[0]) || self.is_vector(operands[1]) => {
                Code::SelectVector
            }
            other => other,
        };
        let result = self.in_memory(op, code, memory, operands, immediate);
        if code.gives() {
            self.push(result);
        }
        Some(())
    }
}
