//! Writes computations in the usual notation.

use super::{WhyHow, WhyMade};

/// Infix operators.
const BETWEEN: [(&str, &str); 29] = [
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("div", "/"),
    ("div_s", "/"),
    ("div_u", "/"),
    ("rem_s", "%"),
    ("rem_u", "%"),
    ("and", "&"),
    ("or", "|"),
    ("xor", "^"),
    ("shl", "<<"),
    ("shr_s", ">>"),
    ("shr_u", ">>"),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("lt_s", "<"),
    ("lt_u", "<"),
    ("gt", ">"),
    ("gt_s", ">"),
    ("gt_u", ">"),
    ("le", "<="),
    ("le_s", "<="),
    ("le_u", "<="),
    ("ge", ">="),
    ("ge_s", ">="),
    ("ge_u", ">="),
    ("eqz", "=="),
];

/// Formats the operator with the values of its operands: `360 + 12`, `i32.clz(7)`. A read of a
/// constant table appears as its address. An operator on unsigned operands appears by name if an
/// operand is displayed as negative.
pub fn expression(made: &WhyMade) -> String {
    let values = made.operands.iter().map(|operand| operand.value.as_str());
    let values = Vec::from_iter(values);
    if made.step == WhyHow::LookedUp {
        return format!("table[{}]", values.join(", "));
    }
    let operator = made.place.operator.as_str();
    let scalar = ["i32.", "i64.", "f32.", "f64."];
    let own = scalar.iter().find_map(|space| operator.strip_prefix(space));
    let sign = own.and_then(|own| BETWEEN.iter().find(|(name, _)| *name == own));
    match (sign, &*values) {
        (Some((_, sign)), [left, right])
            if !operator.ends_with("_u") || !left.starts_with('-') && !right.starts_with('-') =>
        {
            format!("{left} {sign} {right}")
        }
        (Some((_, sign)), [only]) => format!("{only} {sign} 0"),
        (_, []) => operator.to_owned(),
        _ => format!("{operator}({})", values.join(", ")),
    }
}
