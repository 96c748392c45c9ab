//! Collects static facts about a function's operators.

use std::hash::{Hash, Hasher};

use afterimage_ids::{FuncId, TypeId};
use afterimage_matching::Class;
use afterimage_program::{Function, Program};
use rustc_hash::FxHasher;
use wasmparser::Operator;

use afterimage_replay::steps::name;

/// The facts about an operator that matching uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperatorFacts {
    pub class: Class,
    /// A number that is equal for operators of the same name. It is also equal for comparisons that
    /// differ only by negation or exchanged operands.
    pub operator: u64,
    /// The value of a scalar constant, or the offset of a scalar load or store. 0 for other
    /// operators.
    pub immediate: u64,
    /// A number that is equal only for operators of the same name.
    pub exact: u64,
    /// Whether the operator is `i32.and`.
    pub is_and: bool,
    /// Whether the operator is a `select`.
    pub chooses: bool,
    /// Whether the operator's constants may be addresses of data.
    pub takes_addresses: bool,
    /// Whether the operator is `i32.add` or `i32.sub`, which turn an address into another address.
    pub adds: bool,
    /// Whether the operator may combine several conditions into one.
    pub joins: bool,
    /// For a call, the number of arguments.
    pub arguments: u32,
}

/// Returns the facts about a function's operators, by ordinal. Takes time linear in the function's
/// body.
pub(super) fn operators(
    program: &Program,
    module: &[u8],
    function: &Function,
) -> Vec<OperatorFacts> {
    let all = program.operators(module, function);
    all.map(|(_, _, operator)| known(program, &operator))
        .collect()
}

fn known(program: &Program, operator: &Operator<'_>) -> OperatorFacts {
    let name = name(operator);
    let class = class(operator, &name);
    let mut hasher = FxHasher::default();
    match class {
        Class::Test => comparison(&name).hash(&mut hasher),
        _ => name.hash(&mut hasher),
    }
    let mut exact = FxHasher::default();
    name.hash(&mut exact);
    let chooses = matches!(operator, Operator::Select | Operator::TypedSelect { .. });
    OperatorFacts {
        class,
        exact: exact.finish(),
        joins: chooses || matches!(operator, Operator::I32And | Operator::I32Or),
        chooses,
        takes_addresses: takes_addresses(class, operator, &name),
        adds: matches!(operator, Operator::I32Add | Operator::I32Sub),
        operator: hasher.finish(),
        immediate: immediate(operator, &name),
        is_and: matches!(operator, Operator::I32And),
        arguments: arguments(program, operator),
    }
}

/// Whether the operator's constants may be addresses of data. Code may add and compare addresses or
/// choose between them, but not multiply them.
fn takes_addresses(class: Class, operator: &Operator<'_>, name: &str) -> bool {
    match class {
        Class::Compute => matches!(
            operator,
            Operator::I32Add
                | Operator::I32Sub
                | Operator::I32Or
                | Operator::I32And
                | Operator::Select
                | Operator::TypedSelect { .. }
        ),
        Class::Test => name.starts_with("i32."),
        _ => true,
    }
}

/// Returns the number of a call's arguments; 0 for other operators.
fn arguments(program: &Program, operator: &Operator<'_>) -> u32 {
    let ty = match *operator {
        Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
            let import = program.imports.get(function_index as usize);
            let defined = program.function(FuncId::from_u32(function_index));
            defined.map(|f| f.ty).or(import.map(|import| import.ty))
        }
        Operator::CallIndirect { type_index, .. }
        | Operator::ReturnCallIndirect { type_index, .. } => Some(TypeId::from_u32(type_index)),
        _ => None,
    };
    let ty = ty.and_then(|ty| program.types.get(ty));
    ty.map_or(0, |ty| ty.params.len() as u32)
}

/// Returns one name for a comparison, its negation, and its forms with exchanged operands. `eqz`
/// counts as a test for equality.
fn comparison(name: &str) -> String {
    let (space, rest) = name.split_once('.').unwrap_or(("", name));
    let (stem, sign) = rest.split_once('_').unwrap_or((rest, ""));
    match stem {
        "eqz" | "eq" | "ne" => format!("{space}.equal"),
        _ => format!("{space}.order_{sign}"),
    }
}

fn class(operator: &Operator<'_>, name: &str) -> Class {
    match operator {
        Operator::BrIf { .. } | Operator::If { .. } => Class::Branch,
        Operator::BrTable { .. } => Class::Table,
        Operator::Call { .. }
        | Operator::CallIndirect { .. }
        | Operator::ReturnCall { .. }
        | Operator::ReturnCallIndirect { .. } => Class::Call,
        _ => {
            let (space, rest) = name.split_once('.').unwrap_or(("", name));
            let tests = ["eqz", "eq", "ne", "lt", "gt", "le", "ge"];
            let scalar = ["i32", "i64", "f32", "f64"].contains(&space);
            let stem = rest.split('_').next().unwrap_or(rest);
            if scalar && tests.contains(&stem) {
                Class::Test
            } else if rest.starts_with("load") {
                Class::Load
            } else if rest.starts_with("store") {
                Class::Store
            } else if ["memory", "table", "data", "elem", "global"].contains(&space) {
                Class::Other
            } else {
                Class::Compute
            }
        }
    }
}

fn immediate(operator: &Operator<'_>, name: &str) -> u64 {
    match *operator {
        Operator::I32Const { value } => u64::from(value as u32),
        Operator::I64Const { value } => value as u64,
        Operator::F32Const { value } => u64::from(value.bits()),
        Operator::F64Const { value } => value.bits(),
        Operator::I32Load { memarg }
        | Operator::I64Load { memarg }
        | Operator::F32Load { memarg }
        | Operator::F64Load { memarg }
        | Operator::I32Load8S { memarg }
        | Operator::I32Load8U { memarg }
        | Operator::I32Load16S { memarg }
        | Operator::I32Load16U { memarg }
        | Operator::I64Load8S { memarg }
        | Operator::I64Load8U { memarg }
        | Operator::I64Load16S { memarg }
        | Operator::I64Load16U { memarg }
        | Operator::I64Load32S { memarg }
        | Operator::I64Load32U { memarg }
        | Operator::I32Store { memarg }
        | Operator::I64Store { memarg }
        | Operator::F32Store { memarg }
        | Operator::F64Store { memarg }
        | Operator::I32Store8 { memarg }
        | Operator::I32Store16 { memarg }
        | Operator::I64Store8 { memarg }
        | Operator::I64Store16 { memarg }
        | Operator::I64Store32 { memarg } => memarg.offset,
        _ => {
            debug_assert!(!name.ends_with(".const") || name.starts_with("v128"));
            0
        }
    }
}
