//! Formats numbers for people. All messages and reports use this form for counts and times.

/// Formats a number with a comma before every third digit from the right.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats how often something happened: `once`, `2 times`.
pub fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        many => format!("{} times", grouped(many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(times(1), "once");
        assert_eq!(times(1_000), "1,000 times");
    }
}
