//! Names of functions in few columns.

/// A function's name without the types of its parameters, which C++ has in it.
pub(crate) fn without_parameters(name: &str) -> &str {
    let (mut open, mut at) = (0u32, 0);
    while let Some(rest) = name.get(at..).filter(|rest| !rest.is_empty()) {
        let taken = [
            "operator()",
            "operator<",
            "operator>",
            "(anonymous namespace)",
            "->",
        ];
        if let Some(whole) = taken.iter().find(|whole| rest.starts_with(**whole)) {
            at += whole.len();
            continue;
        }
        match rest.as_bytes()[0] {
            b'<' => open += 1,
            b'>' => open = open.saturating_sub(1),
            b'(' if open == 0 && at > 0 => return &name[..at],
            _ => {}
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::without_parameters;

    #[test]
    fn parameters_are_no_part_of_a_name() {
        for (name, short) in [
            ("main", "main"),
            ("look(Rect const&, int (*)(int))", "look"),
            (
                "Box<int (*)(int)>::get(int) const",
                "Box<int (*)(int)>::get",
            ),
            (
                "(anonymous namespace)::f(int) (.specialized.1)",
                "(anonymous namespace)::f",
            ),
            ("a::operator()(int) const", "a::operator()"),
            ("a::operator<(a const&)", "a::operator<"),
            ("a::operator->() const", "a::operator->"),
            (
                "<fn(u32) as a::B>::c::{closure#0}",
                "<fn(u32) as a::B>::c::{closure#0}",
            ),
            ("(odd", "(odd"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }
}
