//! Formats numbers for people.

pub use afterimage_ids::{grouped, times};

/// Formats a part of a whole in percent, rounded to one decimal. Returns `<0.1%` or `>99.9%` where
/// rounding would wrongly give 0 or 100.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0.0%".into();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    let tenths = (part * 2000 + whole) / (whole * 2);
    match tenths {
        0 => "<0.1%".into(),
        1000 if part < whole => ">99.9%".into(),
        _ => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

/// Returns the ratio B/A, to two decimals, or `None` if one of the numbers is zero.
pub(crate) fn ratio([a, b]: [u64; 2]) -> Option<String> {
    if a == 0 || b == 0 {
        return None;
    }
    let ratio = b as f64 / a as f64;
    Some(match ratio {
        ..0.005 => "<0.01".to_owned(),
        _ => format!("{ratio:.2}"),
    })
}

/// Formats a number with its noun: `1 function`, `2 functions`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Formats a number of bytes for people: `1.3 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => counted(bytes, "byte"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Formats a duration for people, rounded: `40 seconds`, `3 minutes`.
pub fn time(seconds: u64) -> String {
    match seconds {
        0..100 => counted(seconds, "second"),
        100..6000 => counted((seconds + 30) / 60, "minute"),
        _ => counted((seconds + 1800) / 3600, "hour"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded() {
        for (seconds, text) in [
            (1, "1 second"),
            (99, "99 seconds"),
            (100, "2 minutes"),
            (5_999, "100 minutes"),
            (6_000, "2 hours"),
            (9_001, "3 hours"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn ratios_are_of_b_to_a() {
        assert_eq!(ratio([2, 8]).as_deref(), Some("4.00"));
        assert_eq!(ratio([3, 2]).as_deref(), Some("0.67"));
        assert_eq!(ratio([1_000_000, 1]).as_deref(), Some("<0.01"));
        assert_eq!(ratio([0, 8]), None);
        assert_eq!(ratio([8, 0]), None);
    }

    #[test]
    fn percentages_never_round_to_none_or_all() {
        assert_eq!(percent(0, 0), "0.0%");
        assert_eq!(percent(0, 7), "0.0%");
        assert_eq!(percent(7, 7), "100.0%");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(2, 3), "66.7%");
        assert_eq!(percent(1, 1_000_000), "<0.1%");
        assert_eq!(percent(999_999, 1_000_000), ">99.9%");
        assert_eq!(percent(u64::MAX - 1, u64::MAX), ">99.9%");
    }
}
