//! Checks that C's rules read text between quotation marks back as the original bytes.

use afterimage_testkit::modules::SplitMix64;
use afterimage_variables::quoted;

/// Returns the value of a C11 string literal, according to sections 5.1.1.2 (trigraphs), 6.4.3 and
/// 6.4.4.4.
fn decoded(literal: &str) -> Vec<u8> {
    let mut text = literal.to_owned();
    for (trigraph, c) in [
        ("??=", "#"),
        ("??/", "\\"),
        ("??'", "^"),
        ("??(", "["),
        ("??)", "]"),
        ("??!", "|"),
        ("??<", "{"),
        ("??>", "}"),
        ("??-", "~"),
    ] {
        text = text.replace(trigraph, c);
    }
    let inside = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let mut rest = inside.unwrap().chars().peekable();
    let mut bytes = Vec::new();
    while let Some(c) = rest.next() {
        if c != '\\' {
            assert!(c != '"' && c != '\n', "{literal}");
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let kind = rest.next().unwrap();
        let mut digits = |radix, most| {
            let mut value = 0;
            for _ in 0..most {
                let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else {
                    break;
                };
                rest.next();
                value = value * radix + digit;
            }
            value
        };
        match kind {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            't' => bytes.push(9),
            'n' => bytes.push(10),
            'v' => bytes.push(11),
            'f' => bytes.push(12),
            'r' => bytes.push(13),
            '"' | '\'' | '\\' | '?' => bytes.push(kind as u8),
            // The escape takes all digits that follow.
            'x' => bytes.push(u8::try_from(digits(16, usize::MAX)).unwrap()),
            'u' | 'U' => {
                let code = digits(16, if kind == 'u' { 4 } else { 8 });
                assert!(code >= 0xa0, "{literal}: no universal character name");
                let c = char::from_u32(code).unwrap();
                bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            }
            '0'..='7' => {
                let first = kind.to_digit(8).unwrap();
                let mut value = first;
                for _ in 0..2 {
                    let Some(digit) = rest.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    rest.next();
                    value = value * 8 + digit;
                }
                bytes.push(u8::try_from(value).unwrap());
            }
            other => panic!("{literal}: \\{other}"),
        }
    }
    bytes
}

#[test]
fn quoted_bytes_are_read_back_by_the_rules_of_c() {
    const PARTS: [&[u8]; 14] = [
        b"\0",
        b"4",
        b"a",
        b"?",
        b"?",
        b"=",
        b"/",
        b"\\",
        b"\"",
        b"\n",
        b"\xff",
        "é".as_bytes(),
        "\u{85}\u{301}\u{200b}\u{e0001}".as_bytes(),
        "😀".as_bytes(),
    ];
    let mut random = SplitMix64(6);
    for round in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..random.below(24) {
            match round % 2 {
                0 => bytes.push(random.next() as u8),
                _ => bytes.extend(PARTS[random.below(PARTS.len())]),
            }
        }
        let text = quoted(&bytes);
        assert_eq!(decoded(&text), bytes, "{text}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    assert_eq!(quoted(b"key\x0042"), r#""key\00042""#);
}
