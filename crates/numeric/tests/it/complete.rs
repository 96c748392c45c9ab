//! Checks the tables against wasmparser's list, so that no operator is missing.

use afterimage_numeric::{Scalar, Vector, VectorLoad, VectorStore};

/// An operator of wasmparser's list, with its proposal, name, immediates, visitor, operands and
/// results.
type Listed = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

macro_rules! list {
    ($(@$proposal:ident $operator:ident $({ $($immediates:tt)* })? => $visit:ident ($($arity:tt)*))*) => {
        const OPERATORS: &[Listed] = &[$((
            stringify!($proposal),
            stringify!($operator),
            concat!($(stringify!($($immediates)*))?),
            stringify!($visit),
            stringify!($($arity)*),
        ),)*];
    };
}

wasmparser::for_each_operator!(list);

/// Returns the operator's name in the text format, from the visitor's name.
fn text(visit: &str) -> String {
    visit.trim_start_matches("visit_").replacen('_', ".", 1)
}

#[test]
fn scalars_are_all_operators_from_scalars_to_a_scalar() {
    let listed = OPERATORS
        .iter()
        .filter(|(proposal, _, immediates, _, arity)| {
            matches!(
                *proposal,
                "mvp" | "sign_extension" | "saturating_float_to_int"
            ) && immediates.is_empty()
                && matches!(*arity, "arity 1 -> 1" | "arity 2 -> 1")
        });
    let listed = listed.map(|(_, operator, _, visit, arity)| {
        (operator.to_string(), text(visit), arity.to_string())
    });
    let ours = Scalar::ALL.iter().map(|scalar| {
        let arity = format!("arity {} -> 1", scalar.arity());
        (format!("{scalar:?}"), scalar.name().to_owned(), arity)
    });
    let sorted = |operators: &mut dyn Iterator<Item = _>| {
        let mut operators: Vec<(String, String, String)> = operators.collect();
        operators.sort();
        operators
    };
    assert_eq!(sorted(&mut { ours }), sorted(&mut { listed }));
}

#[test]
fn every_vector_operator_is_here() {
    let listed = OPERATORS.iter().filter(|(proposal, operator, ..)| {
        // The evaluator itself handles constants, both scalar and vector.
        matches!(*proposal, "simd" | "relaxed_simd") && *operator != "V128Const"
    });
    let mut listed = Vec::from_iter(listed.map(|(_, operator, _, visit, arity)| {
        (operator.to_string(), text(visit), arity.to_string())
    }));
    let vectors = Vector::ALL.iter().map(|vector| {
        let arity = format!("arity {} -> 1", vector.signature().0.len());
        (format!("{vector:?}"), vector.name().to_owned(), arity)
    });
    let loads = VectorLoad::ALL.iter().map(|load| {
        let arity = format!("arity {} -> 1", 1 + u32::from(load.keeps()));
        (format!("{load:?}"), load.name().to_owned(), arity)
    });
    let stores = VectorStore::ALL.iter().map(|store| {
        (
            format!("{store:?}"),
            store.name().to_owned(),
            "arity 2 -> 0".to_owned(),
        )
    });
    let mut ours = Vec::from_iter(vectors.chain(loads).chain(stores));
    listed.sort();
    ours.sort();
    assert_eq!(ours, listed);
}
