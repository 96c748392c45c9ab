//! Variable-length integers and bounds-checked reading of decoded bytes.

/// The reason why bytes are meaningless, and the place of the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The offset in the bytes that were being read.
    pub at: usize,
    pub what: &'static str,
}

/// Appends `value` as unsigned LEB128, in 1 to 10 bytes.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and that many bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a signed integer so that small magnitudes are short (zigzag).
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i32) {
    put_varint(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

/// A cursor over decoded bytes. Lengths are checked against the remaining bytes before anything is
/// allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Bytes { data, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault { at: self.at, what })
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        match self.data[self.at..].get(..length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.fault("fewer bytes than announced"),
        }
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, Fault> {
        match self.data.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => self.fault("ends too early"),
        }
    }

    pub fn flag(&mut self) -> Result<bool, Fault> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.fault("a flag that is neither 0 nor 1"),
        }
    }

    pub fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.fault("an integer of more than 64 bits")
    }

    pub fn varint32(&mut self) -> Result<u32, Fault> {
        let start = *self;
        u32::try_from(self.varint()?).or_else(|_| start.fault("an integer of more than 32 bits"))
    }

    pub fn signed(&mut self) -> Result<i32, Fault> {
        let value = self.varint32()?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    /// Reads a list of at most `limit` items with at least `least` bytes each. Reserves memory only
    /// after checking the stated number of items against the limit and the remaining bytes.
    pub fn list<T>(
        &mut self,
        least: usize,
        limit: u64,
        mut item: impl FnMut(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let start = *self;
        let count = self.varint()?;
        if count > limit {
            return start.fault("a list that exceeds the format's limit");
        }
        if count > ((self.data.len() - self.at) / least) as u64 {
            return start.fault("fewer bytes than announced items");
        }
        let mut items = Vec::with_capacity(count as usize);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let start = *self;
        match usize::try_from(self.varint()?) {
            Ok(length) => self.take(length),
            Err(_) => start.fault("fewer bytes than announced"),
        }
    }

    pub fn text(&mut self) -> Result<String, Fault> {
        let start = *self;
        match std::str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => start.fault("text that is not UTF-8"),
        }
    }

    pub fn end(&self) -> Result<(), Fault> {
        if self.at == self.data.len() {
            Ok(())
        } else {
            self.fault("bytes after the end")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_every_length() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, !0 >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(
                    out.len(),
                    (64 - value.leading_zeros()).div_ceil(7).max(1) as usize
                );
                assert_eq!(Bytes::new(&out).varint(), Ok(value));
                assert!(Bytes::new(&out[..out.len() - 1]).varint().is_err());
            }
        }
    }

    #[test]
    fn a_varint_of_more_than_64_bits_is_a_fault() {
        let mut bytes = [0xff; 10];
        bytes[9] = 1;
        assert_eq!(Bytes::new(&bytes).varint(), Ok(u64::MAX));
        for last in [2, 0x7f, 0x80, 0x81] {
            bytes[9] = last;
            assert!(Bytes::new(&bytes).varint().is_err());
        }
        let mut out = Vec::new();
        put_varint(&mut out, 1 << 32);
        assert_eq!(
            Bytes::new(&out).varint32().map_err(|fault| fault.at),
            Err(0)
        );
    }

    #[test]
    fn signed_integers_of_small_magnitude_are_short() {
        for (value, length) in [
            (0, 1),
            (-1, 1),
            (1, 1),
            (-64, 1),
            (64, 2),
            (i32::MIN, 5),
            (i32::MAX, 5),
        ] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            assert_eq!((out.len(), Bytes::new(&out).signed()), (length, Ok(value)));
        }
    }

    #[test]
    fn a_list_is_held_against_its_limit_and_its_bytes_before_it_is_read() {
        let list = |bytes: &[u8], least, limit| Bytes::new(bytes).list(least, limit, Bytes::byte);
        assert_eq!(list(&[2, 7, 8], 1, 2), Ok(vec![7, 8]));
        let announced = "fewer bytes than announced items";
        assert_eq!(
            list(&[3, 7, 8], 1, 9),
            Err(Fault {
                at: 0,
                what: announced
            })
        );
        assert_eq!(
            list(&[2, 7, 8, 9], 2, 9),
            Err(Fault {
                at: 0,
                what: announced
            })
        );
        let limit = "a list that exceeds the format's limit";
        assert_eq!(list(&[2, 7, 8], 1, 1), Err(Fault { at: 0, what: limit }));
    }

    #[test]
    fn faults_name_the_byte() {
        let mut bytes = Bytes::new(&[1, 2, 3]);
        assert_eq!(bytes.flag(), Ok(true));
        assert_eq!(bytes.flag().map_err(|fault| fault.at), Err(2));
        assert_eq!(bytes.end().map_err(|fault| fault.at), Err(2));
        assert_eq!(bytes.take(2).map_err(|fault| fault.at), Err(2));
        assert_eq!(bytes.byte(), Ok(3));
        assert_eq!(bytes.end(), Ok(()));
        assert!(Bytes::new(&[1, 0xff]).text().is_err());
    }
}
