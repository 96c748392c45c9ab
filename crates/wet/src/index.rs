//! What is known of a whole execution trace at once.

use crate::epoch::Sizes;
use crate::epoch::wire::{put, take};

/// What a whole execution trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// How many blocks were executed.
    pub length: u64,
    /// How many instructions were executed.
    pub statements: u64,
    /// What takes how much.
    pub sizes: Sizes,
}

impl Index {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Sizes {
            labels,
            far,
            values,
            copies,
            directory,
        } = self.sizes;
        let mut out = vec![VERSION];
        for value in [self.length, self.statements, directory] {
            put(&mut out, value);
        }
        for (bytes, numbers) in [labels, far, values, copies] {
            put(&mut out, bytes);
            put(&mut out, numbers);
        }
        out
    }

    /// What bytes say. `None` if they are not those of an index.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, mut input) = bytes.split_first()?;
        if version != VERSION {
            return None;
        }
        let mut next = || take(&mut input);
        let (length, statements, directory) = (next()?, next()?, next()?);
        let mut pair = || Some((next()?, next()?));
        let sizes = Sizes {
            labels: pair()?,
            far: pair()?,
            values: pair()?,
            copies: pair()?,
            directory,
        };
        input.is_empty().then_some(Self {
            length,
            statements,
            sizes,
        })
    }
}

/// The form of an index.
const VERSION: u8 = 1;
