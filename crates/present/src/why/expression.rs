//! How a value was computed, as people write it.

use super::WhyMade;

/// Operators that are written between their operands.
const BETWEEN: [(&str, &str); 25] = [
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
    ("shr_u", ">>>"),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("lt_s", "<"),
    ("gt", ">"),
    ("gt_s", ">"),
    ("le", "<="),
    ("le_s", "<="),
    ("ge", ">="),
    ("ge_s", ">="),
    ("eqz", "=="),
];

/// The operator with its operands' values: `360 + 12`, `i32.clz(7)`; of a read of a constant table, the address. Operators that take their operands as unsigned are
/// written by name, but for shifts, which are as in Java.
pub fn expression(made: &WhyMade) -> String {
    let values = made.operands.iter().map(|operand| operand.value.as_str());
    let values = Vec::from_iter(values);
    if made.lookup {
        return format!("table[{}]", values.join(", "));
    }
    let operator = made.place.operator.as_str();
    let scalar = ["i32.", "i64.", "f32.", "f64."];
    let own = scalar.iter().find_map(|space| operator.strip_prefix(space));
    let sign = own.and_then(|own| BETWEEN.iter().find(|(name, _)| *name == own));
    match (sign, &*values) {
        (Some((_, sign)), [left, right]) if !operator.ends_with("_u") || *sign == ">>>" => {
            format!("{left} {sign} {right}")
        }
        (Some((_, sign)), [only]) => format!("{only} {sign} 0"),
        (_, []) => operator.to_owned(),
        _ => format!("{operator}({})", values.join(", ")),
    }
}
