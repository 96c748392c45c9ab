//! Compares the results of `afterimage_numeric` with the recording engine, operator by operator.

mod memory;
mod scalars;
mod values;
mod vectors;

use std::fmt::Write;

use afterimage_record::recording_engine;
use wasmparser::{Operator, Parser, Payload};
use wasmtime::{Func, Instance, Memory, Module, Store, V128, Val};

/// The text of a function, and its parts for error messages.
struct Function {
    /// The operator and its immediates.
    operator: String,
    parameters: Vec<wasmparser::ValType>,
    result: Option<wasmparser::ValType>,
}

/// A module in the engine whose functions each apply one operator to their parameters.
struct Engine {
    store: Store<()>,
    instance: Instance,
    bytes: Vec<u8>,
}

impl Engine {
    fn new(functions: &[Function]) -> Self {
        let mut text = String::from("(module (memory (export \"memory\") 1)\n");
        for (i, function) in functions.iter().enumerate() {
            write!(text, "(func (export \"{i}\")").unwrap();
            for parameter in &function.parameters {
                write!(text, " (param {parameter})").unwrap();
            }
            if let Some(result) = function.result {
                write!(text, " (result {result})").unwrap();
            }
            for local in 0..function.parameters.len() {
                write!(text, " local.get {local}").unwrap();
            }
            writeln!(text, " {})", function.operator).unwrap();
        }
        text.push(')');
        let bytes = wat::parse_str(&text).unwrap();
        let engine = recording_engine().unwrap();
        let module = Module::new(&engine, &bytes).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        Self {
            store,
            instance,
            bytes,
        }
    }

    fn function(&mut self, i: usize) -> Func {
        let name = i.to_string();
        self.instance.get_func(&mut self.store, &name).unwrap()
    }

    fn memory(&mut self) -> Memory {
        self.instance.get_memory(&mut self.store, "memory").unwrap()
    }

    /// Returns the result's bits, or the trap.
    fn call(&mut self, function: &Func, parameters: &[Val]) -> Result<u128, wasmtime::Trap> {
        let mut result = [Val::I32(0)];
        match function.call(&mut self.store, parameters, &mut result) {
            Ok(()) => Ok(bits(&result[0])),
            Err(error) => Err(*error.downcast_ref().expect("a trap")),
        }
    }

    /// Returns each function's operators, except those that fetch parameters and the final one.
    fn operators(&self) -> Vec<Operator<'_>> {
        let payloads = Parser::new(0).parse_all(&self.bytes);
        let bodies = payloads.filter_map(|payload| match payload.unwrap() {
            Payload::CodeSectionEntry(body) => Some(body),
            _ => None,
        });
        let operators = bodies.map(|body| {
            let operators = body.get_operators_reader().unwrap().into_iter();
            let mut operators = operators
                .map(Result::unwrap)
                .filter(|operator| !matches!(operator, Operator::LocalGet { .. } | Operator::End));
            let operator = operators.next().unwrap();
            assert!(operators.next().is_none());
            operator
        });
        operators.collect()
    }
}

fn value(of: wasmparser::ValType, bits: u128) -> Val {
    match of {
        wasmparser::ValType::I32 => Val::I32(bits as i32),
        wasmparser::ValType::I64 => Val::I64(bits as i64),
        wasmparser::ValType::F32 => Val::F32(bits as u32),
        wasmparser::ValType::F64 => Val::F64(bits as u64),
        wasmparser::ValType::V128 => Val::V128(V128::from(bits)),
        wasmparser::ValType::Ref(_) => panic!("no reference is a number"),
    }
}

fn bits(value: &Val) -> u128 {
    match *value {
        Val::I32(value) => u128::from(value.cast_unsigned()),
        Val::I64(value) => u128::from(value.cast_unsigned()),
        Val::F32(bits) => u128::from(bits),
        Val::F64(bits) => u128::from(bits),
        Val::V128(value) => value.as_u128(),
        _ => panic!("no reference is a number"),
    }
}
