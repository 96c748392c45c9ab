//! Reads the numbers of a text, and compares them with values.

use std::ops::Range;

use afterimage_replay::values::Bits;
use wasmparser::ValType;

/// A number as it appears in a string, such as `-41`, `3.14`, `1.5e+10`, `0x1f` or `1,234`.
#[derive(Clone, Debug, PartialEq)]
pub struct Digits {
    /// The range of the number's characters in the text, without a sign.
    pub at: Range<usize>,
    /// The number as written.
    pub text: String,
    /// The number without separators between groups of three digits, and without zeros that only
    /// fill its width.
    plain: String,
    number: Number,
    /// The highest possible agreement of a value with this reading.
    most: Agrees,
}

#[derive(Clone, Debug, PartialEq)]
enum Number {
    Integer {
        magnitude: u128,
        is_negative: bool,
        radix: Radix,
    },
    /// A decimal number. Contains the number of digits after the point and the exponent, if any.
    Decimal {
        places: usize,
        exponent: Option<i32>,
    },
    /// The magnitude of a floating-point number in hexadecimal, such as `0x1.8p+3`.
    Float(f64),
}

/// The radix in which an integer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Radix {
    /// Decimal, or the radix of the prefix `0x`, `0o` or `0b`.
    Written,
    /// Octal without a prefix.
    Octal,
    /// Hexadecimal without a prefix.
    Hexadecimal,
}

impl Radix {
    /// Whether a constant operand is the mask or the divisor with which code makes digits of this
    /// radix.
    fn is_made_with(self, constant: u64) -> bool {
        match self {
            Self::Written => true,
            Self::Octal => matches!(constant, 7 | 8),
            Self::Hexadecimal => matches!(constant, 15 | 16),
        }
    }
}

/// How well a value agrees with the digits. The weakest agreement comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Agrees {
    /// The value is an integer with the digits of a decimal number, or with those on one side of
    /// its point. Such a number may have been printed as integers with a point between them, but a
    /// library also makes these integers from floating-point numbers. So this agreement counts only
    /// in the user's own code.
    Scaled,
    /// The magnitudes agree. The sign may have been printed separately, before the digits.
    Magnitude,
    Exactly,
}

impl Digits {
    /// Returns the possible readings of the digits at `position` in a string. Without a prefix,
    /// digits may be decimal, hexadecimal or octal. The digits of a decimal number may be those of
    /// an integer: 1250 printed as `12.50`. O(text).
    pub fn readings(text: &[u8], position: usize) -> Vec<Self> {
        let written = Self::around(text, position);
        let has_prefix = |digits: &Self| digits.text.contains(['x', 'X', 'o', 'b']);
        if written.as_ref().is_some_and(has_prefix) {
            return Vec::from_iter(written);
        }
        let word = Self::word(text, position);
        let read = |radix, base| {
            let at = word.clone()?;
            let text = std::str::from_utf8(&text[at.clone()]).ok()?;
            let magnitude = u128::from_str_radix(text, base).ok()?;
            // These digits would mean the same in each radix.
            (magnitude >= 8).then(|| Self {
                at,
                text: text.to_owned(),
                plain: text.to_owned(),
                number: Number::Integer {
                    magnitude,
                    is_negative: false,
                    radix,
                },
                most: Agrees::Exactly,
            })
        };
        let scaled = written.as_ref().and_then(Self::scaled);
        let others = [read(Radix::Hexadecimal, 16), read(Radix::Octal, 8), scaled];
        written
            .into_iter()
            .chain(others.into_iter().flatten())
            .collect()
    }

    /// Returns the reading of a decimal number as an integer with the same digits.
    fn scaled(&self) -> Option<Self> {
        let Number::Decimal { exponent: None, .. } = self.number else {
            return None;
        };
        let digits = self.plain.replace(['-', '.'], "");
        Some(Self {
            number: Number::Integer {
                magnitude: digits.parse().ok()?,
                is_negative: self.plain.starts_with('-'),
                radix: Radix::Written,
            },
            most: Agrees::Scaled,
            ..self.clone()
        })
    }

    /// Returns the part of a decimal number at `position` in a string. A part consists of the
    /// digits on one side of the point, which may have been printed as a separate integer. O(text).
    pub fn part_around(text: &[u8], position: usize) -> Option<Self> {
        let whole = Self::around(text, position)?;
        if !matches!(whole.number, Number::Decimal { exponent: None, .. }) {
            return None;
        }
        let point = text[whole.at.clone()].iter().position(|byte| *byte == b'.');
        let point = whole.at.start + point?;
        let at = match position > point {
            true => point + 1..whole.at.end,
            false => whole.at.start..point,
        };
        let digits = std::str::from_utf8(&text[at.clone()]).ok()?;
        Some(Self {
            at,
            text: digits.to_owned(),
            plain: digits.to_owned(),
            number: Number::Integer {
                magnitude: digits.parse().ok()?,
                is_negative: false,
                radix: Radix::Written,
            },
            most: Agrees::Scaled,
        })
    }

    /// Returns the ranges of all numbers in a string, without signs. Digits that belong to a name,
    /// as in `u32`, are not a number. O(text).
    pub fn all(text: &[u8]) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let before = at.checked_sub(1).map(|before| text[before]);
            let in_name = before.is_some_and(|byte| is_in_word(&byte) || !byte.is_ascii());
            if !text[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let end = match end_of_groups(text, at) {
                Some(end) => read(text, end - 3).0,
                None => read(text, at).0,
            };
            if !in_name {
                all.push(at..end);
            }
            at = end;
        }
        all
    }

    /// Returns the word of letters and digits at a position.
    fn word(text: &[u8], position: usize) -> Option<Range<usize>> {
        if !text.get(position).is_some_and(is_in_word) {
            return None;
        }
        let before = text[..position].iter().rev();
        let before = before.take_while(|byte| is_in_word(byte));
        let after = text[position..].iter().take_while(|byte| is_in_word(byte));
        Some(position - before.count()..position + after.count())
    }

    /// Returns the number with a digit, sign or point at `position` in a string. O(text).
    pub fn around(text: &[u8], position: usize) -> Option<Self> {
        let read = |at| {
            let (end, number) = read(text, at);
            let plain = String::from_utf8_lossy(&text[at..end]).into_owned();
            (end, number.map(|number| (plain, number)))
        };
        Self::with(text, position, read)
    }

    /// Like [`around`](Self::around), but for a number with a comma, an apostrophe or an underscore
    /// before every third digit from the right. The text may also be a list of numbers.
    pub fn grouped_around(text: &[u8], position: usize) -> Option<Self> {
        Self::with(text, position, |at| {
            let Some(end) = end_of_groups(text, at) else {
                return (read(text, at).0, None);
            };
            // A fraction may follow the last group.
            let (end, _) = read(text, end - 3);
            let is_part = |byte: &&u8| !SEPARATORS.contains(byte);
            let plain = Vec::from_iter(text[at..end].iter().filter(is_part).copied());
            let (_, number) = read(&plain, 0);
            let plain = String::from_utf8_lossy(&plain).into_owned();
            (end, number.map(|number| (plain, number)))
        })
    }

    /// Returns the number at `position` among those that `read` finds. `read` returns the end of
    /// the number that begins with a digit, and the number.
    fn with(
        text: &[u8],
        position: usize,
        read: impl Fn(usize) -> (usize, Option<(String, Number)>),
    ) -> Option<Self> {
        let mut at = 0;
        // Looks one byte further, since a sign at the position precedes its digits.
        while at < text.len() && at <= position + 1 {
            if !text[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let (end, number) = read(at);
            let is_negative = at > 0
                && text[at - 1] == b'-'
                && !at
                    .checked_sub(2)
                    .is_some_and(|at| text[at].is_ascii_alphanumeric());
            let begin = at - usize::from(is_negative);
            if (begin..end).contains(&position) {
                let written = String::from_utf8_lossy(&text[begin..end]).into_owned();
                let (plain, number) = number?;
                let plain = unfilled(&plain);
                let sign = if is_negative { "-" } else { "" };
                let number = match number {
                    Number::Integer {
                        magnitude, radix, ..
                    } => Number::Integer {
                        magnitude,
                        is_negative,
                        radix,
                    },
                    decimal => decimal,
                };
                return Some(Self {
                    at: at..end,
                    text: written,
                    plain: format!("{sign}{plain}"),
                    number,
                    most: Agrees::Exactly,
                });
            }
            at = end;
        }
        None
    }

    /// Returns how well a value agrees with the number, or `None` if it does not.
    pub(super) fn agrees(&self, ty: ValType, bits: Bits) -> Option<Agrees> {
        let agrees = self.agrees_as(ty, bits)?;
        // An integer with the same digits agrees less than the decimal number itself.
        Some(agrees.min(self.most))
    }

    fn agrees_as(&self, ty: ValType, (low, _): Bits) -> Option<Agrees> {
        let signed = match ty {
            ValType::I32 => i64::from(low as u32 as i32),
            _ => low as i64,
        };
        let float = match ty {
            ValType::F32 => f64::from(f32::from_bits(low as u32)),
            _ => f64::from_bits(low),
        };
        // A narrower floating-point type needs fewer digits.
        let shortest = || match ty {
            ValType::F32 => f32::from_bits(low as u32).to_string(),
            _ => float.to_string(),
        };
        match (&self.number, ty) {
            (_, ValType::V128 | ValType::Ref(_)) => None,
            (
                &Number::Integer {
                    magnitude,
                    is_negative,
                    ..
                },
                ValType::I32 | ValType::I64,
            ) => {
                let unsigned = u128::from(match ty {
                    ValType::I32 => low & u64::from(u32::MAX),
                    _ => low,
                });
                if is_negative {
                    let is_it = signed < 0 && u128::from(signed.unsigned_abs()) == magnitude;
                    let is_magnitude = unsigned == magnitude;
                    return match (is_it, is_magnitude) {
                        (true, _) => Some(Agrees::Exactly),
                        (_, true) => Some(Agrees::Magnitude),
                        _ => None,
                    };
                }
                (unsigned == magnitude).then_some(Agrees::Exactly)
            }
            (Number::Decimal { .. } | Number::Float(_), ValType::I32 | ValType::I64) => None,
            (Number::Float(magnitude), _) if float.abs() == *magnitude => {
                match float.is_sign_negative() == self.plain.starts_with('-') {
                    true => Some(Agrees::Exactly),
                    false => Some(Agrees::Magnitude),
                }
            }
            (Number::Float(_), _) => None,
            (Number::Integer { radix, .. }, _)
                if *radix != Radix::Written || self.most == Agrees::Scaled =>
            {
                None
            }
            (Number::Integer { .. }, _) => self.reads(format!("{float:.0}"), shortest()),
            (
                &Number::Decimal {
                    places,
                    exponent: None,
                },
                _,
            ) => self.reads(format!("{float:.places$}"), shortest()),
            (
                &Number::Decimal {
                    places,
                    exponent: Some(exponent),
                },
                _,
            ) => {
                let text = format!("{float:.places$e}");
                let (digits, own) = text.split_once('e')?;
                let significand = self.plain.split(['e', 'E']).next()?;
                let same = own.parse() == Ok(exponent);
                match same {
                    true if digits == significand => Some(Agrees::Exactly),
                    true if digits.trim_start_matches('-') == significand => {
                        Some(Agrees::Magnitude)
                    }
                    _ => None,
                }
            }
        }
    }

    /// Returns the 128-bit numbers that may have been printed, if this is an integer.
    pub(super) fn wide(&self) -> Vec<u128> {
        match self.number {
            // If the low half is small, the halves might match by chance.
            Number::Integer {
                magnitude,
                is_negative,
                ..
            } if magnitude > u64::MAX.into() && magnitude as u64 > u32::MAX.into() => {
                let negative = is_negative.then(|| magnitude.wrapping_neg());
                std::iter::once(magnitude).chain(negative).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a constant shows that the digits were made in the radix of this reading.
    pub(super) fn is_made_with(&self, constant: u64) -> bool {
        match self.number {
            Number::Integer { radix, .. } => radix.is_made_with(constant),
            Number::Decimal { .. } | Number::Float(_) => true,
        }
    }

    /// Whether the number is read as decimal, or in the radix that its prefix names.
    pub(super) fn is_as_written(&self) -> bool {
        !matches!(
            self.number,
            Number::Integer { radix, .. } if radix != Radix::Written
        )
    }

    /// Returns how well the number agrees with this text, or with the shortest text for the value.
    fn reads(&self, text: String, shortest: String) -> Option<Agrees> {
        if text == self.plain || shortest == self.plain {
            return Some(Agrees::Exactly);
        }
        let printed = self.plain.trim_start_matches('-');
        let is_magnitude = [text, shortest]
            .iter()
            .any(|text| text.trim_start_matches('-') == printed);
        is_magnitude.then_some(Agrees::Magnitude)
    }
}

/// Whether a byte belongs to a word of letters and digits.
fn is_in_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Removes the zeros before a number that only fill its width: `0004.958`.
fn unfilled(plain: &str) -> &str {
    let zeros = plain.bytes().take_while(|byte| *byte == b'0').count();
    match plain.as_bytes().get(zeros) {
        Some(byte) if byte.is_ascii_digit() => &plain[zeros..],
        // The last zero is a digit, and `0x1f` is in hexadecimal.
        _ => &plain[zeros.saturating_sub(1)..],
    }
}

/// Reads the number that begins with a digit at `at`. Returns the number's end, and its value
/// unless the value is too large.
fn read(text: &[u8], at: usize) -> (usize, Option<Number>) {
    let after = |from: usize, is_part: fn(&u8) -> bool| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|&byte| is_part(byte)).count()
    };
    let integer = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok()?;
        let magnitude = u128::from_str_radix(digits, radix).ok()?;
        Some(Number::Integer {
            magnitude,
            is_negative: false,
            radix: Radix::Written,
        })
    };
    let prefix = text.get(at + 1).filter(|_| text[at] == b'0');
    let radix = match prefix {
        Some(b'x' | b'X') => Some(16),
        Some(b'o') => Some(8),
        Some(b'b') => Some(2),
        _ => None,
    };
    if let Some(radix) = radix {
        let end = after(at + 2, u8::is_ascii_alphanumeric);
        let end = if radix == 16 {
            after(at + 2, u8::is_ascii_hexdigit)
        } else {
            end
        };
        let digits = &text[at + 2..end];
        if digits
            .iter()
            .all(|digit| char::from(*digit).is_digit(radix))
            && !digits.is_empty()
        {
            if let Some((end, number)) = hexadecimal(text, at + 2).filter(|_| radix == 16) {
                return (end, Some(Number::Float(number)));
            }
            return (end, integer(digits, radix));
        }
    }
    let whole = after(at, u8::is_ascii_digit);
    let mut end = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = after(whole + 1, u8::is_ascii_digit);
        if fraction > whole + 1 {
            end = fraction;
        }
    }
    let places = (end - whole).saturating_sub(1);
    let mut exponent = None;
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = matches!(text.get(end + 1), Some(b'+' | b'-'));
        let digits = after(end + 1 + usize::from(sign), u8::is_ascii_digit);
        let written = std::str::from_utf8(&text[end + 1..digits]).unwrap_or_default();
        if let Ok(number) = written.parse() {
            (exponent, end) = (Some(number), digits);
        }
    }
    match (end == whole, exponent) {
        (true, None) => (end, integer(&text[at..end], 10)),
        _ => (end, Some(Number::Decimal { places, exponent })),
    }
}

/// Reads a floating-point number in hexadecimal, as C's `%a` prints it, after its `0x`. Returns its
/// end and its magnitude, or `None` if the text is malformed or a double cannot represent the
/// number exactly.
fn hexadecimal(text: &[u8], at: usize) -> Option<(usize, f64)> {
    let (mut mantissa, mut exponent, mut is_fraction) = (0u64, 0i32, false);
    let mut end = at;
    loop {
        match char::from(*text.get(end)?) {
            '.' if !is_fraction => is_fraction = true,
            'p' | 'P' => break,
            digit => {
                let digit = digit.to_digit(16)?;
                mantissa = mantissa.checked_mul(16)? | u64::from(digit);
                exponent -= 4 * i32::from(is_fraction);
            }
        }
        end += 1;
    }
    let begin = end + 1;
    let sign = usize::from(matches!(text.get(begin), Some(b'+' | b'-')));
    let digits = text.get(begin + sign..)?;
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let end = begin + sign + digits.count();
    let written: i32 = std::str::from_utf8(&text[begin..end]).ok()?.parse().ok()?;
    let exponent = exponent.checked_add(written)?;
    // Scales in two steps, because the power alone may be too large or too small.
    let powers = [exponent / 2, exponent - exponent / 2].map(|power| 2f64.powi(power));
    let number = powers
        .iter()
        .fold(mantissa as f64, |all, power| all * power);
    let back = powers.iter().fold(number, |all, power| all / power);
    (back as u64 == mantissa && number.is_finite()).then_some((end, number))
}

/// The characters that may separate groups of three digits.
const SEPARATORS: [u8; 3] = *b",'_";

/// Returns the end of a number that begins with the digit at `at` and is written in groups of three
/// digits.
fn end_of_groups(text: &[u8], at: usize) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default().iter();
        rest.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let first = digits(at);
    let sign = *text.get(at + first)?;
    if !(1..=3).contains(&first) || !SEPARATORS.contains(&sign) {
        return None;
    }
    let mut end = at + first;
    while text.get(end) == Some(&sign) && digits(end + 1) > 0 {
        if digits(end + 1) != 3 {
            return None;
        }
        end += 4;
    }
    (end > at + first).then_some(end)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn around(text: &str, position: usize) -> Option<(String, Range<usize>)> {
        let found = Digits::around(text.as_bytes(), position)?;
        Some((found.text, found.at))
    }

    #[test]
    fn numbers_are_found_around_each_of_their_characters() {
        let text = "a: -41, 3.14 x7 0x1F 1.5e+10 9-8.";
        for (number, digits) in [
            ("-41", "41"),
            ("3.14", "3.14"),
            ("7", "7"),
            ("0x1F", "0x1F"),
            ("1.5e+10", "1.5e+10"),
            ("9", "9"),
            ("8", "8"),
        ] {
            let begin = text.rfind(number).unwrap();
            for position in begin..begin + number.len() {
                let (found, at) = around(text, position).unwrap();
                assert_eq!((&*found, &text[at]), (number, digits), "{position}");
            }
        }
        for position in [0, 1, 2, 6, 13, text.len() - 1] {
            assert_eq!(around(text, position), None, "{position}");
        }
        let wide = around("99999999999999999999", 3);
        assert_eq!(wide, Some(("99999999999999999999".to_owned(), 0..20)));
        let larger = "9".repeat(40);
        assert_eq!(around(&larger, 3), None);
    }

    #[test]
    fn numbers_may_have_signs_between_thousands() {
        let text = "a 1,234,567 -9'876.50 1_000 12,34 1234,567 1,2345";
        let grouped = |number: &str| {
            let begin = text.find(number).unwrap();
            let all = (begin..begin + number.len()).map(|position| {
                let found = Digits::grouped_around(text.as_bytes(), position)?;
                Some((found.text, found.plain))
            });
            let all = HashSet::<_>::from_iter(all);
            assert_eq!(all.len(), 1, "{number}: {all:?}");
            all.into_iter().next().unwrap()
        };
        let is = |text: &str, plain: &str| Some((text.to_owned(), plain.to_owned()));
        assert_eq!(grouped("1,234,567"), is("1,234,567", "1234567"));
        assert_eq!(grouped("-9'876.50"), is("-9'876.50", "-9876.50"));
        assert_eq!(grouped("1_000"), is("1_000", "1000"));
        for list in ["12,34 ", "1234,567", "1,2345"] {
            assert_eq!(grouped(list.trim()), None, "{list}");
        }
        let digits = Digits::grouped_around(b"1,234", 4).unwrap();
        assert_eq!(
            digits.agrees(ValType::I32, (1234, 0)),
            Some(Agrees::Exactly)
        );
        let digits = Digits::grouped_around(b"9,876.50", 0).unwrap();
        let value = 9876.5f64.to_bits();
        assert_eq!(
            digits.agrees(ValType::F64, (value, 0)),
            Some(Agrees::Exactly)
        );
    }

    #[test]
    fn prefixes_name_the_radix() {
        let value = |text: &str| Digits::around(text.as_bytes(), 1).map(|found| found.number);
        let integer = |magnitude| {
            Some(Number::Integer {
                magnitude,
                is_negative: false,
                radix: Radix::Written,
            })
        };
        assert_eq!(value("0x1f"), integer(31));
        assert_eq!(value("0o17"), integer(15));
        assert_eq!(value("0b101"), integer(5));
        assert_eq!(value("0b102"), None);
        assert_eq!(Digits::around(b"-0x1f", 0).unwrap().text, "-0x1f");
    }

    #[test]
    fn digits_are_also_read_in_other_radices() {
        let readings = |text: &str| {
            let all = Digits::readings(text.as_bytes(), 3).into_iter();
            let value = |one: Digits| match one.number {
                Number::Integer { magnitude, .. } => magnitude,
                Number::Decimal { .. } | Number::Float(_) => 0,
            };
            Vec::from_iter(all.map(value))
        };
        assert_eq!(readings("a: 41 b"), [41, 0x41, 0o41]);
        assert_eq!(readings("a: 49 b"), [49, 0x49]);
        assert_eq!(readings("a: beef b"), [0xbeef]);
        assert_eq!(readings("a: 0x41 b"), [0x41]);
        assert_eq!(readings("a: 7 b"), [7]);
        assert_eq!(readings("a: house"), []);
        // 1.25 may be the integer 125.
        assert_eq!(readings("a: 1.25"), [0, 125]);
        assert!(Radix::Hexadecimal.is_made_with(15) && !Radix::Hexadecimal.is_made_with(10));
    }

    #[test]
    fn values_agree_with_what_is_printed_of_them() {
        let digits = |text: &str| Digits::around(text.as_bytes(), text.len() - 1).unwrap();
        let agrees = |text: &str, ty, low| digits(text).agrees(ty, (low, 0));
        let exactly = Some(Agrees::Exactly);
        assert_eq!(agrees("41", ValType::I32, 41), exactly);
        assert_eq!(agrees("0x1f", ValType::I64, 31), exactly);
        assert_eq!(agrees("41", ValType::I32, 42), None);
        assert_eq!(agrees("4294967295", ValType::I32, 0xffff_ffff), exactly);
        assert_eq!(agrees("-1", ValType::I32, 0xffff_ffff), exactly);
        assert_eq!(agrees("-1", ValType::I32, 1), Some(Agrees::Magnitude));
        assert_eq!(agrees("-1", ValType::I64, u64::MAX), exactly);
        let float = |text: &str, value: f64| agrees(text, ValType::F64, value.to_bits());
        assert_eq!(float("3.24", 3.24159), exactly);
        assert_eq!(float("3.25", 3.24159), None);
        assert_eq!(float("-3.2", -3.24159), exactly);
        assert_eq!(float("0.1", 0.1), exactly);
        assert_eq!(float("2", 2.4), exactly);
        assert_eq!(float("1.50e+10", 1.5e10), exactly);
        let narrow = |value: f32| agrees("246913580", ValType::F32, value.to_bits().into());
        assert_eq!(narrow(246_913_584.0), exactly);
        assert_eq!(float("1.50e-07", 1.5e-7), exactly);
        assert_eq!(float("1.50e+10", 1.5e11), None);
        let single = agrees("0.25", ValType::F32, u64::from(0.25f32.to_bits()));
        assert_eq!(single, exactly);
        assert_eq!(agrees("3.14", ValType::I32, 3), None);
        // C's `%a`.
        assert_eq!(float("0x1.8p+3", 12.0), exactly);
        assert_eq!(float("-0x1.8p+3", -12.0), exactly);
        assert_eq!(float("0x1.8p+3", 24.0), None);
        assert_eq!(float("0x1p-1074", 5e-324), exactly);
        assert_eq!(float("0x1.fffffffffffffp+1023", f64::MAX), exactly);
        assert_eq!(agrees("0x1.8p+3", ValType::I32, 12), None);
        for other in ["0x1.8", "0x1p+1024", "0x1p-1075", "0x1.8p", "0xp+1x"] {
            let float = |digits: Digits| matches!(digits.number, Number::Float(_));
            assert!(
                !Digits::around(other.as_bytes(), 0).is_some_and(float),
                "{other}"
            );
        }
        // Zeros may fill the width.
        assert_eq!(float("0004.958", 4.958), exactly);
        assert_eq!(float("-004.96", -4.958), exactly);
        assert_eq!(float("0000.50", 0.5), exactly);
        assert_eq!(float("000", 0.2), exactly);
        assert_eq!(float("007", 7.0), exactly);
        assert_eq!(float("0001.5e+10", 1.5e10), exactly);
    }

    #[test]
    fn decimal_numbers_may_be_printed_as_integers() {
        let text = b"due -012.50";
        let readings = Digits::readings(text, 8);
        let agrees = |ty, value: i64| {
            let all = readings.iter();
            all.filter_map(|one| one.agrees(ty, (value as u64, 0)))
                .max()
        };
        assert_eq!(agrees(ValType::I64, -1250), Some(Agrees::Scaled));
        assert_eq!(agrees(ValType::I64, 1250), Some(Agrees::Scaled));
        assert_eq!(agrees(ValType::I64, 125), None);
        let float = |value: f64| agrees(ValType::F64, value.to_bits() as i64);
        assert_eq!(float(-12.5), Some(Agrees::Exactly));
        assert_eq!(float(-1250.0), None);
        let part = |position| {
            let part = Digits::part_around(text, position)?;
            Some((part.text, part.at))
        };
        let whole = Some(("012".to_owned(), 5..8));
        for position in 4..9 {
            assert_eq!(part(position), whole, "{position}");
        }
        assert_eq!(part(9), Some(("50".to_owned(), 9..11)));
        assert_eq!(Digits::part_around(b"41", 0), None);
        assert_eq!(Digits::part_around(b"1.5e3", 0), None);
    }

    #[test]
    fn all_numbers_of_a_line_are_found() {
        let text = "u32 x_1 é2 a: -41, 3.14 0x1F 1,234.5 12,34 5ms v1.2.3";
        let all = Digits::all(text.as_bytes()).into_iter();
        let all = Vec::from_iter(all.map(|at| &text[at]));
        let numbers = ["41", "3.14", "0x1F", "1,234.5", "12", "34", "5", "3"];
        assert_eq!(all, numbers);
    }
}
