//! Encodes variable-length numbers, with seven bits per byte, lowest first (LEB128).

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number from the front. Returns `None` if the bytes end too early or the number needs
/// more than 64 bits.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    take_longer(bytes)
}

fn take_longer(bytes: &mut &[u8]) -> Option<u64> {
    let mut reading = Reading::default();
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if let Some(value) = reading.push(byte)? {
            return Some(value);
        }
    }
}

/// A partially read number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    value: u64,
    shift: u32,
}

impl Reading {
    /// Adds the next byte. Returns the number if it was the last byte. Fails if the number needs
    /// more than 64 bits.
    pub(super) fn push(&mut self, byte: u8) -> Option<Option<u64>> {
        let part = u64::from(byte & 0x7f);
        if self.shift > 63 || self.shift == 63 && part > 1 {
            return None;
        }
        self.value |= part << self.shift;
        self.shift += 7;
        Some((byte & 0x80 == 0).then_some(self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips() {
        for value in (0..64)
            .flat_map(|k| [1u64 << k, (1 << k) - 1])
            .chain([u64::MAX])
        {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(take(&mut &bytes[..]), Some(value));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(
            take(&mut &[0xff; 11][..]),
            None,
            "more than 64 bits are refused"
        );
        let mut too_wide = vec![0xff; 9];
        too_wide.push(2);
        assert_eq!(take(&mut &too_wide[..]), None);
    }
}
