//! Tests well-formed and malformed conditions.

use super::*;

fn constant(name: &str) -> Held {
    let number = match name {
        "FIVE" => Some(Number::Integer(5)),
        "SIX" => Some(Number::Integer(6)),
        _ => None,
    };
    Held {
        number,
        text: name.to_owned(),
        is_constant: true,
    }
}

#[test]
fn constants_are_compared_by_name_or_number() {
    for text in [
        "scan == SCAN && mode != SCAN",
        "a == FIVE && a != SIX && b < FIVE",
        "leave == LEAVE && leave != SCAN",
        "opt == nullopt && full != nullopt && a != nullopt",
    ] {
        assert_eq!(holds(text), Truth::True, "{text}");
    }
    // Neither the constant's name nor a number for it is known.
    for text in ["a == SCAN", "SCAN != b", "flags != SCAN"] {
        assert!(matches!(holds(text), Truth::Unknown(_)), "{text}");
    }
}

/// Evaluates a condition with a = 5, b = -2, f = 2.5, s = "abc", mode = Scan. Other variables have
/// no value.
fn holds(text: &str) -> Truth {
    let condition: Condition = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let held = |(name, _): &(String, Path)| {
        let (number, text) = match name.as_str() {
            "a" | "p->a" | "(*p).a" | "v[2].a" => (Some(Number::Integer(5)), "5"),
            "b" => (Some(Number::Integer(-2)), "-2"),
            "f" => (Some(Number::Float(2.5)), "2.5"),
            "nan" => (Some(Number::Float(f64::NAN)), "nan"),
            "s" => (None, "\"abc\""),
            "long" => (None, "\"abc\"…"),
            "c" => (Some(Number::Integer(0x404)), "0x404 \"abc\""),
            "mode" => (Some(Number::Integer(3)), "Scan"),
            "scan" => (Some(Number::Integer(3)), "SCAN"),
            "leave" => (None, "LEAVE(\"a\", 3)"),
            "opt" => (None, "nullopt"),
            "full" => (None, "{ 1, 2 }"),
            "flags" => (Some(Number::Integer(3)), "READ | WRITE"),
            "FIVE" | "SIX" | "SCAN" | "LEAVE" | "nullopt" => return Ok(constant(name)),
            _ => return Err(PathError::NoAddress),
        };
        let text = text.to_owned();
        Ok(Held {
            number,
            text,
            is_constant: false,
        })
    };
    let held = Vec::from_iter(condition.paths.iter().map(held));
    condition.holds(|number| held[number].clone())
}

#[test]
fn operators_bind_as_in_c() {
    for text in [
        "a == 5",
        "a > 4 && b < 0",
        "a + b * 2 == 1",
        "(a + b) * 2 == 6",
        "a - 1 - 1 == 3",
        "!(a < b) || a == 7",
        "-b == 2 && - -b == b",
        "a & 4",
        "(a & 3) == 1",
        "a | 2 && (a ^ 1) == 4",
        "1 << 3 > 7 && a >> 1 == 2",
        "~0 == -1",
        "7 / 2 == 3 && 7 % 4 == 3 && -7 / 2 == -3",
        "p->a == 5 && (*p).a == 5 && v[2].a == a",
        "f * 2 == a && f < 3 && 2 < f",
        "s == \"abc\" && s != \"abd\" && \"abc\" == s && \"a\" != \"b\"",
        "c == \"abc\" && c == 0x404",
        "s == s && !(s != s)",
        "mode == \"Scan\" && mode == 3",
        "'a' == 97 && '\\n' == 10",
        "true && !false && a != NULL",
        "0xff == 255 && 1_000 == 1000 && 1e3 == 1000 && 1.5e-1 < 0.2 && 3u == 3",
        // Unsigned numbers are not negative.
        "b < 18446744073709551615",
        "9007199254740993 > 9007199254740992.0",
    ] {
        assert_eq!(holds(text), Truth::True, "{text}");
    }
}

#[test]
fn what_has_no_value_is_unknown_unless_the_rest_decides() {
    for (text, truth) in [
        ("gone == 1", None),
        ("gone && a == 5", None),
        ("gone && a == 6", Some(false)),
        ("gone || a == 5", Some(true)),
        ("a == 6 && gone", Some(false)),
        ("!gone", None),
        ("a / 0 == 1", None),
        ("s + 1 == 2", None),
        ("s", None),
        ("long == \"abc\"", None),
        ("long == s", None),
        ("mode == s", None),
        ("s < \"abd\"", None),
        ("f & 1", None),
        ("a == \"5\"", None),
        ("a >> -1", None),
        ("a << 200 == 0", None),
        ("nan == nan", Some(false)),
        ("nan != nan", Some(true)),
        ("nan < 1 || nan >= 1", Some(false)),
    ] {
        let found = match holds(text) {
            Truth::True => Some(true),
            Truth::False => Some(false),
            Truth::Unknown(_) => None,
        };
        assert_eq!(found, truth, "{text}");
    }
}

#[test]
fn errors_say_what_should_be_where() {
    for (text, why) in [
        (
            "",
            "expected a variable, a number, a string or '(' at character 1",
        ),
        (
            "a ==",
            "expected a variable, a number, a string or '(' at character 5",
        ),
        (
            "a == 1 b",
            "expected an operator, such as ==, < or &&, or the end at character 8",
        ),
        ("(a == 1", "expected ')' at character 8"),
        (
            "a == 1)",
            "expected the end: there is no '(' for this ')' at character 7",
        ),
        (
            "a < b < 3",
            "expected && or ||: comparisons do not chain at character 7",
        ),
        (
            "a == 'xy'",
            "expected one character between the quotation marks at character 6",
        ),
        (
            "s == \"x",
            "expected the closing quotation mark at character 8",
        ),
        (
            "a == 010",
            "expected a number, such as 42, 0x2a or 1.5 at character 6",
        ),
        (
            "a == 12x4",
            "expected a number, such as 42, 0x2a or 1.5 at character 6",
        ),
        ("a.", "expected the name of a member at character 3"),
    ] {
        let error = text.parse::<Condition>().unwrap_err().to_string();
        assert!(error.starts_with(why), "{text}: {error}");
    }
    // Deep nesting needs no recursion.
    let deep = "(".repeat(100_000) + "1" + &")".repeat(100_000);
    assert_eq!(holds(&deep), Truth::True);
    let long = "!".repeat(100_000) + "0 || " + &"a == 5 && ".repeat(10_000) + "1";
    assert_eq!(holds(&long), Truth::True);
}
