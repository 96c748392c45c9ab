//! Reads bytes as a coded stream in every way. The bytes may be refused, but nothing may panic or
//! take disproportionate memory, and all ways must agree.

use afterimage_streams::Stream;

/// Longer streams are opened and sampled, but not decoded completely.
const WHOLE: u64 = 1 << 16;

/// Reads a stream of `len` values.
pub fn read_everything(bytes: &[u8], len: u64) {
    let Ok(stream) = Stream::open(bytes, len) else {
        return;
    };
    assert!(stream.coded_len() <= bytes.len());
    let mut cursor = stream.cursor();
    for place in [0, len / 3, len / 2, len] {
        cursor.seek(place).expect("it lies within");
        let _ = (cursor.previous(), cursor.next());
    }
    if len > WHOLE {
        return;
    }
    let mut values = Vec::new();
    let whole = stream.decode_all(&mut values);
    assert_eq!(values.len() as u64, if whole.is_ok() { len } else { 0 });
    cursor.seek(len).expect("it lies within");
    let mut expected = values.iter().rev();
    loop {
        match cursor.previous() {
            Ok(None) => break,
            Ok(Some(value)) if whole.is_ok() => assert_eq!(Some(&value), expected.next()),
            Ok(Some(_)) => {}
            // An unreadable block makes the whole stream unreadable.
            Err(_) => return assert!(whole.is_err()),
        }
    }
}
