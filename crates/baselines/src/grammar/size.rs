//! Computes the size of a grammar as a file.

use super::{Grammar, Symbol};
use crate::branch_trace::ceil_log2;

/// The numbers that determine a grammar's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrammarSize {
    /// The number of rules, including the start rule.
    pub rules: u64,
    /// The number of symbols on the right-hand sides of all rules.
    pub symbols: u64,
    /// The number of distinct terminals.
    pub alphabet: u64,
}

impl Grammar {
    /// Computes the numbers that determine the grammar's size. Time is linear in the grammar, apart
    /// from sorting the alphabet.
    pub fn size(&self) -> GrammarSize {
        let mut terminals: Vec<u32> = Vec::new();
        for &symbol in &self.symbols {
            if let Symbol::Terminal(terminal) = symbol {
                terminals.push(terminal);
            }
        }
        terminals.sort_unstable();
        terminals.dedup();
        GrammarSize {
            rules: self.ends.len() as u64,
            symbols: self.symbols.len() as u64,
            alphabet: terminals.len() as u64,
        }
    }
}

impl GrammarSize {
    /// Returns the size in bytes of the grammar as a plain file: 4 for each symbol, and 4 for the
    /// end of each rule.
    pub fn word_bytes(&self) -> u64 {
        4 * (self.symbols + self.rules)
    }

    /// Returns the number of bits needed to distinguish all terminals and rules. No right-hand side
    /// names the start rule, so its code marks the end of a rule.
    pub fn symbol_bits(&self) -> u32 {
        let codes = self.alphabet + self.rules;
        // Each count fits in 32 bits, but their sum may not.
        u32::try_from(codes).map_or(33, ceil_log2)
    }

    /// Returns the size in bytes of the grammar if each symbol and each end of a rule takes
    /// [`symbol_bits`](Self::symbol_bits). The table that maps codes to terminals is not counted,
    /// which favours the baseline.
    pub fn packed_bytes(&self) -> u64 {
        ((self.symbols + self.rules) * u64::from(self.symbol_bits())).div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_by_hand() {
        // The grammar is S → A A b, A → a c.
        use Symbol::{Rule, Terminal};
        let symbols = vec![Rule(1), Rule(1), Terminal(9), Terminal(7), Terminal(1)];
        let grammar = Grammar::new(symbols, vec![3, 5]);
        assert_eq!(grammar.expand().collect::<Vec<_>>(), [7, 1, 7, 1, 9]);
        let size = grammar.size();
        assert_eq!((size.rules, size.symbols, size.alphabet), (2, 5, 3));
        assert_eq!(size.word_bytes(), 28);
        // Five codes need 3 bits each, so seven symbols take 21 bits.
        assert_eq!((size.symbol_bits(), size.packed_bytes()), (3, 3));
    }
}
