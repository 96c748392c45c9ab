//! Welch's compression (LZW; Welch, "A Technique for High-Performance Data Compression", 1984),
//! which the paper applies to the dynamic call graph.
//!
//! Codes grow from 9 to 16 bits with the dictionary. When 2^16 codes are in use, the encoder writes
//! the code 256 and resets its dictionary. Codes are packed from the lowest bit. The compressed
//! bytes do not contain the length of the plain bytes.

use rustc_hash::FxHashMap;

/// The code that empties the dictionary.
const CLEAR: u32 = 256;
/// The maximum number of codes.
const LIMIT: u32 = 1 << 16;

/// The reason why bytes are not an encoder's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LzwError {
    /// The bytes end before the expected number of plain bytes was decoded.
    #[error("the compressed bytes end early")]
    EndsEarly,
    /// A code has no meaning yet.
    #[error("the compressed bytes contain the unknown code {0}")]
    UnknownCode(u32),
}

/// Returns the width of a code, in bits, when `codes` codes are in use.
fn width(codes: u32) -> u32 {
    (32 - (codes - 1).leading_zeros()).max(9)
}

/// Compresses a stream of bytes.
#[derive(Clone, Debug)]
pub struct LzwEncoder {
    /// The code of each sequence that consists of a prefix, given by its code, and a byte.
    longer: FxHashMap<u32, u32>,
    codes: u32,
    prefix: Option<u32>,
    bits: u64,
    bit_count: u32,
    bytes: Vec<u8>,
}

impl Default for LzwEncoder {
    fn default() -> Self {
        Self {
            longer: FxHashMap::default(),
            codes: CLEAR + 1,
            prefix: None,
            bits: 0,
            bit_count: 0,
            bytes: Vec::new(),
        }
    }
}

impl LzwEncoder {
    /// Adds plain bytes. Time: O(1) for each byte.
    pub fn push(&mut self, plain: &[u8]) {
        for &byte in plain {
            let Some(prefix) = self.prefix else {
                self.prefix = Some(u32::from(byte));
                continue;
            };
            let key = prefix << 8 | u32::from(byte);
            if let Some(&code) = self.longer.get(&key) {
                self.prefix = Some(code);
                continue;
            }
            self.put(prefix);
            self.longer.insert(key, self.codes);
            self.codes += 1;
            if self.codes == LIMIT {
                self.put(CLEAR);
                self.longer.clear();
                self.codes = CLEAR + 1;
            }
            self.prefix = Some(u32::from(byte));
        }
    }

    /// Returns the compressed bytes.
    pub fn finish(mut self) -> Vec<u8> {
        if let Some(prefix) = self.prefix {
            self.put(prefix);
        }
        if self.bit_count > 0 {
            self.bytes.push(self.bits as u8);
        }
        self.bytes
    }

    fn put(&mut self, code: u32) {
        self.bits |= u64::from(code) << self.bit_count;
        self.bit_count += width(self.codes);
        while self.bit_count >= 8 {
            self.bytes.push(self.bits as u8);
            self.bits >>= 8;
            self.bit_count -= 8;
        }
    }
}

/// Decodes compressed bytes in constant memory. The encoder does not mark the end, so the reader
/// must know the number of plain bytes.
#[derive(Clone, Debug)]
pub struct LzwDecoder<'a> {
    rest: &'a [u8],
    bits: u64,
    bit_count: u32,
    /// The number of codes that the encoder had when it wrote the next code.
    codes: u32,
    /// The meaning of each code from 257 on, as an earlier code and the byte that follows it.
    longer: Vec<(u16, u8)>,
    /// The previous code, unless the dictionary is new.
    before: Option<u32>,
    /// Decoded bytes that have not been returned yet, the next byte last.
    ready: Vec<u8>,
}

impl<'a> LzwDecoder<'a> {
    /// Creates a decoder for compressed bytes.
    pub fn new(compressed: &'a [u8]) -> Self {
        Self {
            rest: compressed,
            bits: 0,
            bit_count: 0,
            codes: CLEAR + 1,
            longer: Vec::new(),
            before: None,
            ready: Vec::new(),
        }
    }

    /// Decodes the next code into `ready`.
    fn refill(&mut self) -> Result<(), LzwError> {
        let mut code = self.code()?;
        if code == CLEAR {
            self.longer.clear();
            self.codes = CLEAR + 1;
            self.before = None;
            code = self.code()?;
        }
        if self.codes == LIMIT {
            // An encoder resets its dictionary here.
            return Err(LzwError::UnknownCode(code));
        }
        // The encoder has only just defined this code. It means the bytes of the previous code,
        // followed by the first of these bytes.
        let next = CLEAR + 1 + self.longer.len() as u32;
        let newest = self.before.filter(|_| code == next);
        if code == CLEAR || code >= next && newest.is_none() {
            return Err(LzwError::UnknownCode(code));
        }
        let mut part = newest.unwrap_or(code);
        while let Some(k) = part.checked_sub(CLEAR + 1) {
            let (prefix, byte) = self.longer[k as usize];
            self.ready.push(byte);
            part = u32::from(prefix);
        }
        let first = part as u8;
        self.ready.push(first);
        if newest.is_some() {
            self.ready.insert(0, first);
        }
        if let Some(before) = self.before {
            self.longer.push((before as u16, first));
        }
        self.before = Some(code);
        self.codes += 1;
        Ok(())
    }

    fn code(&mut self) -> Result<u32, LzwError> {
        let width = width(self.codes);
        while self.bit_count < width {
            let (&byte, rest) = self.rest.split_first().ok_or(LzwError::EndsEarly)?;
            self.rest = rest;
            self.bits |= u64::from(byte) << self.bit_count;
            self.bit_count += 8;
        }
        let code = self.bits as u32 & ((1 << width) - 1);
        self.bits >>= width;
        self.bit_count -= width;
        Ok(code)
    }
}

impl Iterator for LzwDecoder<'_> {
    type Item = Result<u8, LzwError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && let Err(error) = self.refill()
        {
            return Some(Err(error));
        }
        self.ready.pop().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(plain: &[u8]) -> usize {
        let mut encoder = LzwEncoder::default();
        plain.chunks(7).for_each(|chunk| encoder.push(chunk));
        let compressed = encoder.finish();
        let decoded: Result<Vec<u8>, _> = LzwDecoder::new(&compressed).take(plain.len()).collect();
        assert!(decoded.as_deref() == Ok(plain));
        compressed.len()
    }

    /// The example in the literature of a code that is used as soon as it is defined.
    #[test]
    fn a_code_may_be_used_as_soon_as_it_is_named() {
        assert_eq!(
            round_trip(b"aaaaaaa"),
            5,
            "a, aa, aaa, a: four codes of nine bits"
        );
    }

    /// No pair of neighbours occurs twice, so each byte takes one code. The 257th code may be one
    /// of 513, so it takes ten bits.
    #[test]
    fn codes_are_no_wider_than_they_must_be() {
        let plain: Vec<u8> = (0..=255).chain((0..88).step_by(2)).collect();
        assert_eq!(plain.len(), 300);
        assert_eq!(round_trip(&plain), (256 * 9 + 44 * 10_usize).div_ceil(8));
    }

    #[test]
    fn the_dictionary_starts_anew_when_it_is_full() {
        let mut state = 1u32;
        let noise = (0..400_000).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        round_trip(&noise.collect::<Vec<_>>());
        let regular = round_trip(&[1, 2, 3, 4].repeat(1_000_000));
        assert!(
            regular < 10_000,
            "four million regular bytes take {regular}"
        );
    }

    #[test]
    fn an_unknown_code_is_an_error() {
        // The first code is 257, which has no meaning at this point.
        let mut decoder = LzwDecoder::new(&[1, 1]);
        assert_eq!(decoder.next(), Some(Err(LzwError::UnknownCode(257))));
        assert_eq!(LzwDecoder::new(&[]).next(), Some(Err(LzwError::EndsEarly)));
    }

    /// Code 0 always has a meaning, but no encoder continues without a reset.
    #[test]
    fn a_dictionary_that_outgrows_its_limit_is_an_error() {
        let error = LzwDecoder::new(&[0; 1 << 18]).find_map(Result::err);
        assert_eq!(error, Some(LzwError::UnknownCode(0)));
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(plain in prop::collection::vec(0u8..4, 0..3000)) {
            round_trip(&plain);
        }

        #[test]
        fn any_bytes_decode_to_something_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = LzwDecoder::new(&bytes).take(100_000).take_while(Result::is_ok).count();
        }
    }
}
