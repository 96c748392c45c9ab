//! Checks that the tests execute every kind of instruction.

use std::collections::BTreeSet;

use afterimage_machine::{Code, Expected, Load};
use afterimage_numeric::{VectorLoad, VectorStore};

use super::follow::agree;
use crate::guests::{CASES, record_case};
use crate::stored::Stored;

/// Returns the name of an instruction's kind.
pub fn class(code: Code) -> &'static str {
    match code {
        Code::Scalar(_) => "scalar",
        Code::Vector(_) => "vector",
        Code::Select => "select",
        Code::SelectVector => "select of vectors",
        Code::Load(Load { bytes, sign }) => match (bytes, sign) {
            (1, 0) => "load 8",
            (1, 32) => "load 8 to 32",
            (1, _) => "load 8 to 64",
            (2, 0) => "load 16",
            (2, 32) => "load 16 to 32",
            (2, _) => "load 16 to 64",
            (4, 0) => "load 32",
            (4, _) => "load 32 to 64",
            (_, _) => "load 64",
        },
        Code::LoadVector(load) => load.name(),
        Code::Store(1) => "store 8",
        Code::Store(2) => "store 16",
        Code::Store(4) => "store 32",
        Code::Store(_) => "store 64",
        Code::StoreVector(store) => store.name(),
        Code::GlobalGet => "global.get",
        Code::GlobalSet => "global.set",
        Code::MemorySize => "memory.size",
        Code::MemoryGrow => "memory.grow",
        Code::MemoryCopy => "memory.copy",
        Code::MemoryFill => "memory.fill",
        Code::MemoryInit => "memory.init",
        Code::DataDrop => "data.drop",
        Code::TableGet => "table.get",
        Code::TableSet => "table.set",
        Code::TableSize => "table.size",
        Code::TableGrow => "table.grow",
        Code::TableFill => "table.fill",
        Code::TableCopy => "table.copy",
        Code::TableInit => "table.init",
        Code::ElementDrop => "elem.drop",
        Code::RefIsNull => "ref.is_null",
        Code::Aligned(_) => "a check of an address",
        Code::Wait(_) => "memory.atomic.wait",
        Code::Notify => "memory.atomic.notify",
        Code::Branch(Expected::True) => "branch if true",
        Code::Branch(Expected::False) => "branch if false",
        Code::Branch(Expected::OneOf) => "branch by a table",
        Code::Branch(Expected::Any) => "branch to the same place",
    }
}

/// All kinds.
const KINDS: &[&str] = &[
    "scalar",
    "vector",
    "select",
    "select of vectors",
    "load 8",
    "load 8 to 32",
    "load 8 to 64",
    "load 16",
    "load 16 to 32",
    "load 16 to 64",
    "load 32",
    "load 32 to 64",
    "load 64",
    "store 8",
    "store 16",
    "store 32",
    "store 64",
    "global.get",
    "global.set",
    "memory.size",
    "memory.grow",
    "memory.copy",
    "memory.fill",
    "memory.init",
    "data.drop",
    "table.get",
    "table.set",
    "table.size",
    "table.grow",
    "table.fill",
    "table.copy",
    "table.init",
    "elem.drop",
    "ref.is_null",
    "a check of an address",
    "branch if true",
    "branch if false",
    "branch by a table",
    "branch to the same place",
];

#[test]
fn every_kind_of_instruction_is_executed() {
    let mut seen = BTreeSet::new();
    for case in CASES {
        let recording = record_case(case);
        seen.append(&mut agree(&recording, &Stored::of(&recording)));
    }
    let loads = VectorLoad::ALL.iter().map(|load| load.name());
    let stores = VectorStore::ALL.iter().map(|store| store.name());
    let kinds = KINDS.iter().copied().chain(loads).chain(stores);
    let missing = Vec::from_iter(kinds.filter(|kind| !seen.contains(kind)));
    assert!(missing.is_empty(), "{missing:?} of {seen:?}");
}
