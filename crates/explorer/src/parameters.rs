//! Parses the options of a question: the options of the command, as parameters of an address.

use std::fmt;
use std::str::FromStr;

use afterimage::present::{shell_name, shell_word};
use anyhow::{Result, anyhow};

/// The reason why a request is not a question. A question that has no answer is not malformed.
#[derive(Debug)]
pub(crate) struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// Returns the error of a request that is not a question.
pub(crate) fn malformed(why: impl Into<String>) -> anyhow::Error {
    anyhow!(Malformed(why.into()))
}

/// Options, in the order of the address. An option without a value is a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(String, String)>);

/// Decodes `%` with two hexadecimal digits, and `+`. Returns `None` if the result is not UTF-8, or
/// if a `%` lacks digits.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let high = rest.next().and_then(digit)?;
                let low = rest.next().and_then(digit)?;
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

impl Parameters {
    /// Reads the query string, the part after `?`.
    ///
    /// # Errors
    /// Returns an error if it is not a query string, or an option occurs twice.
    pub fn read(query: &str) -> Result<Self> {
        let mut all: Vec<(String, String)> = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
                return Err(malformed(
                    "the address is not encoded correctly; write NAME=VALUE&…",
                ));
            };
            if all.iter().any(|(known, _)| *known == name) {
                return Err(malformed(format!("{name} is given twice")));
            }
            all.push((name, value));
        }
        Ok(Self(all))
    }

    /// Creates parameters from these options.
    pub fn of(all: &[(&str, &str)]) -> Self {
        let all = all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self(all.collect())
    }

    /// Returns the parameters except one.
    pub fn without(&self, name: &str) -> Self {
        let others = self.0.iter().filter(|(known, _)| known != name);
        Self(others.cloned().collect())
    }

    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Whether the number of wanted rows is limited to `most`.
    pub fn has_limit(&self, most: u64) -> bool {
        let limit = self.0.iter().find(|(known, _)| known == "limit");
        limit.is_some_and(|(_, value)| value.parse::<u64>().is_ok_and(|limit| limit <= most))
    }

    /// Removes a parameter if it is given, and returns its value.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Removes a required parameter, and returns its value.
    pub fn needed(&mut self, name: &str) -> Result<String> {
        self.text(name)
            .ok_or_else(|| malformed(format!("{name} is missing")))
    }

    /// Removes a flag. Returns whether it was given.
    pub fn flag(&mut self, name: &str) -> Result<bool> {
        match self.text(name) {
            None => Ok(false),
            Some(text) if text.is_empty() => Ok(true),
            Some(text) => Err(malformed(format!("{name} is a flag: leave {text:?} out"))),
        }
    }

    /// Removes and parses a parameter, if it is given.
    pub fn parsed<T: FromStr>(&mut self, name: &str, what: &str) -> Result<Option<T>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let parsed = text.parse();
        parsed
            .map(Some)
            .map_err(|_| malformed(format!("{name} {text}: give {what}")))
    }

    /// Removes a parameter that is a positive number, if it is given.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>> {
        match self.parsed(name, "a number from 1 on")? {
            Some(0) => Err(malformed(format!("{name} 0: give a number from 1 on"))),
            number => Ok(number),
        }
    }

    /// Removes a parameter that is one of several words, if it is given.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let words = Vec::from_iter(words.iter().map(|(word, _)| *word));
                let words = words.join(" or ");
                Err(malformed(format!("{name} {text}: give {words}")))
            }
        }
    }

    /// Refuses unused parameters.
    ///
    /// # Errors
    /// Returns an error if any option was not used.
    pub fn finish(&self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(malformed(format!("{name} has no meaning here"))),
        }
    }

    /// Returns the command that asks the same question.
    pub fn command(&self, command: &str, file: &str) -> String {
        let mut text = format!("afterimage {command}");
        for (name, value) in &self.0 {
            text.push_str(&format!(" --{}", shell_word(name)));
            if !value.is_empty() {
                // The command must not read a value that begins with - as an option.
                text.push(if value.starts_with('-') { '=' } else { ' ' });
                text.push_str(&shell_word(value));
            }
        }
        format!("{text} {}", shell_name(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_a_command_line_does() {
        let mut all = Parameters::read("at=a%20b.c%3A4%237&reverse&limit=3").unwrap();
        assert_eq!(
            all.command("trace", "run.aft"),
            "afterimage trace --at 'a b.c:4#7' --reverse --limit 3 run.aft"
        );
        assert_eq!(all.needed("at").unwrap(), "a b.c:4#7");
        assert!(all.flag("reverse").unwrap());
        assert_eq!(all.number("limit").unwrap(), Some(3));
        all.finish().unwrap();
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for bad in ["a=%", "a=%f", "a=%ff", "a=1&a=2"] {
            assert!(Parameters::read(bad).is_err(), "{bad}");
        }
        let mut all = Parameters::read("limit=0&reverse=1&x=2").unwrap();
        assert!(all.number("limit").is_err());
        assert!(all.flag("reverse").is_err());
        assert_eq!(
            all.finish().unwrap_err().to_string(),
            "x has no meaning here"
        );
    }
}
