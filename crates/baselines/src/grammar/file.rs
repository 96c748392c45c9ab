//! Reads and writes a grammar as a plain file of little-endian 32-bit words.
//!
//! A terminal is stored as itself, and a use of rule n as 2³¹ + n. The word 2³² − 1 ends a rule.
//! Rules are in the order of their numbers.

use super::{Grammar, Symbol};
use crate::MAX_TERMINAL;
use std::io::{self, Read, Write};

const USE: u32 = MAX_TERMINAL + 1;
const RULE_END: u32 = u32::MAX;

impl Grammar {
    /// Writes the grammar in [`GrammarSize::word_bytes`](crate::GrammarSize::word_bytes) bytes. A
    /// sink that is not memory should be buffered.
    ///
    /// # Errors
    /// Returns an error if the sink fails.
    pub fn write_to(&self, mut sink: impl Write) -> io::Result<()> {
        for rule in 0..self.rules() {
            for &symbol in &self.symbols[self.range(rule)] {
                let word = match symbol {
                    Symbol::Terminal(terminal) => terminal,
                    Symbol::Rule(rule) => USE + rule,
                };
                sink.write_all(&word.to_le_bytes())?;
            }
            sink.write_all(&RULE_END.to_le_bytes())?;
        }
        sink.flush()
    }

    /// Reads the output of [`Self::write_to`], up to the end of the source.
    ///
    /// # Errors
    /// Returns an error if the source fails. Returns `InvalidData` if the source does not contain a
    /// grammar whose rules name only rules with larger numbers.
    pub fn read_from(mut source: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes)?;
        let (words, rest) = bytes.as_chunks::<4>();
        let (mut symbols, mut ends) = (Vec::new(), Vec::new());
        let mut largest = 0;
        for &word in words {
            match u32::from_le_bytes(word) {
                RULE_END => ends.push(symbols.len()),
                terminal @ ..USE => symbols.push(Symbol::Terminal(terminal)),
                used => {
                    let rule = used - USE;
                    if rule as usize <= ends.len() {
                        return Err(invalid("a rule refers to itself or to an earlier rule"));
                    }
                    largest = largest.max(rule as usize);
                    symbols.push(Symbol::Rule(rule));
                }
            }
        }
        if !rest.is_empty() || ends.last() != Some(&symbols.len()) {
            return Err(invalid("the last rule has no end"));
        }
        if largest >= ends.len() {
            return Err(invalid("a rule refers to a rule that does not exist"));
        }
        Ok(Self::new(symbols, ends))
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sequitur;
    use proptest::prelude::*;

    fn read(words: &[u32]) -> io::Result<Grammar> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Grammar::read_from(&bytes[..])
    }

    #[test]
    fn what_is_no_grammar_is_refused() {
        assert!(read(&[RULE_END]).is_ok());
        assert!(read(&[USE + 1, RULE_END, 5, RULE_END]).is_ok());
        for bad in [
            &[][..],
            &[5],
            &[RULE_END, 5],
            &[USE, RULE_END],
            &[USE + 1, RULE_END],
            &[USE + 1, RULE_END, USE + 1, RULE_END],
            &[USE + 1, RULE_END, USE, RULE_END],
        ] {
            let error = read(bad).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bad:?}");
        }
        assert!(Grammar::read_from(&[0xff; 7][..]).is_err());
    }

    proptest! {
        #[test]
        fn reading_undoes_writing(string in prop::collection::vec(prop_oneof![9 => 0u32..4, 1 => Just(MAX_TERMINAL)], 0..200)) {
            let mut sequitur = Sequitur::new();
            for symbol in string {
                sequitur.push(symbol).unwrap();
            }
            let grammar = sequitur.grammar();
            let mut bytes = Vec::new();
            grammar.write_to(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len() as u64, grammar.size().word_bytes());
            prop_assert_eq!(Grammar::read_from(&bytes[..]).unwrap(), grammar);
        }
    }
}
