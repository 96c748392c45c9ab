//! Implements the predictors of the paper's section 4. Each predictor is reversible, so it can add
//! a value and remove it again.

/// The base-2 logarithm of the number of entries in the tables of FCM and differential FCM.
pub const TABLE_LOG: u32 = 12;

/// A prediction method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Predicts the value that last followed the same `context` values (Sazeides and Smith 1997).
    Fcm {
        /// The number of context values, at least 1.
        context: usize,
    },
    /// Predicts the difference that last followed the same `context` differences (Goeman,
    /// Vandierendonck and De Bosschere 2001).
    DifferentialFcm {
        /// The number of context differences, at least 1.
        context: usize,
    },
    /// Predicts one of the last `n` mispredicted values (Lipasti and Shen 1996; Burtscher and Zorn
    /// 1999).
    LastN {
        /// The size of the table, a power of two.
        n: usize,
    },
    /// Predicts one of the last `n` mispredicted differences.
    LastNStride {
        /// The size of the table, a power of two.
        n: usize,
    },
}

impl Method {
    /// Returns the number of values in the window.
    pub(super) fn window(self) -> usize {
        match self {
            Self::Fcm { context } => context,
            Self::DifferentialFcm { context } => context + 1,
            Self::LastN { .. } | Self::LastNStride { .. } => 1,
        }
    }

    /// Whether the method predicts differences from the nearest value of the context.
    fn is_differential(self) -> bool {
        matches!(
            self,
            Self::DifferentialFcm { .. } | Self::LastNStride { .. }
        )
    }
}

/// The stored form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The entry at this index predicted the value. The index is always 0 except with the last n
    /// methods.
    Hit(u64),
    /// No prediction was right. This is the evicted table entry.
    Miss(u64),
}

/// The prediction table of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predictor {
    method: Method,
    /// The mask for numbers, which are taken modulo 2^width.
    mask: u64,
    table: Vec<u64>,
    /// For the last n methods, the index of the entry that the next miss evicts.
    next: usize,
}

impl Predictor {
    pub(super) fn new(method: Method, width: u32) -> Self {
        let entries = match method {
            Method::Fcm { .. } | Method::DifferentialFcm { .. } => 1 << TABLE_LOG,
            Method::LastN { n } | Method::LastNStride { n } => {
                assert!(n.is_power_of_two(), "last {n} is not a power of two");
                n
            }
        };
        Self {
            method,
            mask: u64::MAX >> (64 - width),
            table: vec![0; entries],
            next: 0,
        }
    }

    /// Returns the number of bits needed for the index of a hit.
    pub(super) fn hit_bits(&self) -> u32 {
        match self.method {
            Method::Fcm { .. } | Method::DifferentialFcm { .. } => 0,
            Method::LastN { n } | Method::LastNStride { n } => n.ilog2(),
        }
    }

    /// Adds a value next to its context, and returns the value's stored form. The context begins
    /// with the nearest value.
    pub(super) fn put(&mut self, value: u64, context: &[u64]) -> Token {
        let number = if self.method.is_differential() {
            value.wrapping_sub(context[0]) & self.mask
        } else {
            value
        };
        let place = match self.method {
            Method::Fcm { .. } | Method::DifferentialFcm { .. } => {
                let place = self.place(context);
                if self.table[place] == number {
                    return Token::Hit(0);
                }
                place
            }
            Method::LastN { n } | Method::LastNStride { n } => {
                if let Some(place) = self.table.iter().position(|&held| held == number) {
                    return Token::Hit(place as u64);
                }
                let place = self.next;
                self.next = (place + 1) % n;
                place
            }
        };
        Token::Miss(std::mem::replace(&mut self.table[place], number))
    }

    /// Undoes [`put`](Self::put) by restoring the table, and returns the value.
    pub(super) fn take(&mut self, token: Token, context: &[u64]) -> u64 {
        let place = match (self.method, token) {
            (Method::Fcm { .. } | Method::DifferentialFcm { .. }, _) => self.place(context),
            (Method::LastN { .. } | Method::LastNStride { .. }, Token::Hit(place)) => {
                place as usize
            }
            (Method::LastN { n } | Method::LastNStride { n }, Token::Miss(_)) => {
                self.next = (self.next + n - 1) % n;
                self.next
            }
        };
        let number = self.table[place];
        if let Token::Miss(evicted) = token {
            self.table[place] = evicted;
        }
        if self.method.is_differential() {
            number.wrapping_add(context[0]) & self.mask
        } else {
            number
        }
    }

    /// Returns the table index for a context.
    fn place(&self, context: &[u64]) -> usize {
        let mix = |hash: u64, number: u64| {
            (hash.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let hash = if self.method.is_differential() {
            context
                .windows(2)
                .map(|pair| pair[0].wrapping_sub(pair[1]) & self.mask)
                .fold(0, mix)
        } else {
            context.iter().copied().fold(0, mix)
        };
        (hash >> (64 - TABLE_LOG)) as usize
    }
}
