//! Parses sizes with unit suffixes.

/// Parses `32768`, `32k`, `1m` or `1g`, in either case. Returns `None` for other text or a size of
/// more than 64 bits.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    number(digits)?.checked_mul(1 << shift)
}

/// Parses an unsigned decimal number.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{bytes, number};

    #[test]
    fn sizes_may_end_in_a_unit() {
        assert_eq!(bytes("32768"), Some(32_768));
        assert_eq!(bytes("32k"), Some(32_768));
        assert_eq!(bytes(" 1M "), Some(1 << 20));
        assert_eq!(bytes("2g"), Some(2 << 30));
        for wrong in ["", "k", "-1", "1kb", "+5", "18446744073709551615k", "é"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(number("18446744073709551616"), None);
    }
}
