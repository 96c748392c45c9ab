//! Demangles symbol names.

use std::fmt::{self, Write};

/// Returns the demangled form of a Rust or C++ symbol, without Rust's hash. Returns `None` if the
/// symbol is from neither language, or its name is too long to read. The demangled form of a short
/// symbol can have exponential length.
pub fn demangle(raw: &str) -> Option<String> {
    let mut out = Limited(String::new());
    if let Ok(symbol) = rustc_demangle::try_demangle(raw) {
        write!(out, "{symbol:#}").ok()?;
        return Some(out.0);
    }
    // On some platforms, symbols have an additional underscore.
    let symbol = raw
        .strip_prefix('_')
        .filter(|rest| rest.starts_with("_Z"))
        .unwrap_or(raw);
    if !symbol.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(symbol).ok()?;
    symbol
        .structured_demangle(&mut out, &cpp_demangle::DemangleOptions::default())
        .ok()?;
    Some(out.0)
}

/// A text that refuses to grow beyond 64 KiB.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > 1 << 16 {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn rust_and_cpp_symbols() {
        let cases = [
            (
                "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                Some("core::fmt::Formatter::pad"),
            ),
            ("_RNvC6_123foo3bar", Some("123foo::bar")),
            ("_ZN5space3fooEibc", Some("space::foo(int, bool, char)")),
            ("__ZN5space3fooEibc", Some("space::foo(int, bool, char)")),
            ("main", None),
            ("_Z", None),
        ];
        for (raw, expected) in cases {
            assert_eq!(demangle(raw).as_deref(), expected, "{raw}");
        }
    }

    #[test]
    fn a_symbol_that_explodes_is_left_alone() {
        // Every back reference such as `S_` doubles the type before it.
        let mut symbol = String::from("_Z1fP1aM");
        for _ in 0..60 {
            symbol.push_str("S0_");
        }
        assert!(demangle(&symbol).is_none_or(|name| name.len() <= 1 << 16));
        let mut nested = String::from("_Z1f1aI");
        nested.push_str(&"I".repeat(100_000));
        assert_eq!(demangle(&nested), None);
    }
}
