//! Implements one side of the window, which is FR or BL of the paper's section 4.1.

use super::bit_stack::BitStack;
use super::predictor::{Method, Predictor, Token};

/// The bits of a side, and the table needed to decode them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    bits: BitStack,
    predictor: Predictor,
    width: u32,
}

impl Side {
    pub(super) fn new(method: Method, width: u32) -> Self {
        Self {
            bits: BitStack::default(),
            predictor: Predictor::new(method, width),
            width,
        }
    }

    /// Returns the number of bits.
    pub(super) fn bits(&self) -> u64 {
        self.bits.len()
    }

    /// Compresses a value like FORWARD_COMPRESS and BACKWARD_COMPRESS of Figure 9, with the
    /// correction. The context begins with the nearest value.
    pub(super) fn compress(&mut self, value: u64, context: &[u64]) {
        // The hit bit goes last, because decoding needs it first.
        match self.predictor.put(value, context) {
            Token::Hit(place) => {
                self.bits.push(place, self.predictor.hit_bits());
                self.bits.push(1, 1);
            }
            Token::Miss(evicted) => {
                self.bits.push(evicted, self.width);
                self.bits.push(0, 1);
            }
        }
    }

    /// Decompresses a value like FORWARD_UNCOMPRESS and BACKWARD_UNCOMPRESS of Figure 9, with the
    /// correction. Returns `None` if the side is empty.
    pub(super) fn uncompress(&mut self, context: &[u64]) -> Option<u64> {
        let token = match self.bits.pop(1)? {
            1 => Token::Hit(self.bits.pop(self.predictor.hit_bits())?),
            _ => Token::Miss(self.bits.pop(self.width)?),
        };
        Some(self.predictor.take(token, context))
    }
}
