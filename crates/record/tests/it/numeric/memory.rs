use afterimage_numeric::{VectorLoad, VectorStore};
use wasmparser::ValType;

use super::values::Random;
use super::{Engine, Function, value};

/// The address that operators access.
const PLACE: usize = 24;

/// Returns the lanes to try, in the text format.
fn lanes(name: &str, bytes: usize) -> Vec<String> {
    if name.ends_with("_lane") {
        (0..16 / bytes).map(|lane| format!(" {lane}")).collect()
    } else {
        vec![String::new()]
    }
}

#[test]
fn every_vector_load_makes_what_the_engine_does() {
    let mut functions = Vec::new();
    for load in VectorLoad::ALL {
        for lane in lanes(load.name(), load.bytes()) {
            let vector = load.keeps().then_some(ValType::V128);
            functions.push(Function {
                operator: format!("{}{lane}", load.name()),
                parameters: [ValType::I32].into_iter().chain(vector).collect(),
                result: Some(ValType::V128),
            });
        }
    }
    let mut engine = Engine::new(&functions);
    let found = engine.operators();
    let found = Vec::from_iter(
        found
            .iter()
            .map(|operator| VectorLoad::of(operator).unwrap()),
    );
    let mut distinct = Vec::from_iter(found.iter().map(|(load, ..)| *load));
    distinct.dedup();
    assert_eq!(distinct, VectorLoad::ALL);

    let mut random = Random(3);
    let memory = engine.memory();
    for (i, (load, memarg, lane)) in found.into_iter().enumerate() {
        assert_eq!(memarg.offset, 0);
        let function = engine.function(i);
        for _ in 0..500 {
            let [bytes, into] = [random.wide(), random.wide()];
            memory
                .write(&mut engine.store, PLACE, &bytes.to_le_bytes())
                .unwrap();
            let mut parameters = vec![value(ValType::I32, PLACE as u128)];
            if load.keeps() {
                parameters.push(value(ValType::V128, into));
            }
            let expected = engine.call(&function, &parameters).unwrap();
            let computed = load.make(bytes, into, lane);
            assert!(
                computed == expected,
                "{} of {bytes:#x} into {into:#x} is {computed:#x}, the engine has {expected:#x}",
                functions[i].operator
            );
        }
    }
}

#[test]
fn every_vector_store_writes_what_the_engine_does() {
    let mut functions = Vec::new();
    for store in VectorStore::ALL {
        for lane in lanes(store.name(), store.bytes()) {
            functions.push(Function {
                operator: format!("{}{lane}", store.name()),
                parameters: vec![ValType::I32, ValType::V128],
                result: None,
            });
        }
    }
    let mut engine = Engine::new(&functions);
    let found = engine.operators();
    let found = Vec::from_iter(
        found
            .iter()
            .map(|operator| VectorStore::of(operator).unwrap()),
    );
    let mut distinct = Vec::from_iter(found.iter().map(|(store, ..)| *store));
    distinct.dedup();
    assert_eq!(distinct, VectorStore::ALL);

    let mut random = Random(4);
    let memory = engine.memory();
    for (i, (store, _, lane)) in found.into_iter().enumerate() {
        let function = engine.function(i);
        for _ in 0..500 {
            let [before, vector] = [random.wide(), random.wide()];
            memory
                .write(&mut engine.store, PLACE, &before.to_le_bytes())
                .unwrap();
            let parameters = [(ValType::I32, PLACE as u128), (ValType::V128, vector)];
            let parameters = parameters.map(|(of, bits)| value(of, bits));
            function
                .call(&mut engine.store, &parameters, &mut [])
                .unwrap();
            let mut expected = [0; 16];
            memory.read(&engine.store, PLACE, &mut expected).unwrap();

            let value = store.value(vector, lane);
            let mut computed = before.to_le_bytes();
            computed[..store.bytes()].copy_from_slice(&value.to_le_bytes()[..store.bytes()]);
            assert_eq!(
                computed, expected,
                "{} of {vector:#x}",
                functions[i].operator
            );
            assert_eq!(value.checked_shr(8 * store.bytes() as u32).unwrap_or(0), 0);
        }
    }
}
