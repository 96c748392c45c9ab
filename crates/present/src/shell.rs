//! Quotes words of commands for pasting into a shell.

use crate::table::plain;

/// Quotes a word for a shell, if it needs quotation marks.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%#".contains(c);
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", plain(word).replace('\'', "'\\''"))
}

/// Quotes the name of a file for a shell, in a form that no command mistakes for an option.
pub fn shell_name(file: &str) -> String {
    if file.starts_with('-') {
        shell_word(&format!("./{file}"))
    } else {
        shell_word(file)
    }
}

#[cfg(test)]
mod tests {
    use super::{shell_name, shell_word};

    #[test]
    fn words_are_quoted_only_where_a_shell_would_split_them() {
        assert_eq!(shell_word("a/b-c.txt"), "a/b-c.txt");
        assert_eq!(shell_word("@0x1f3#7"), "@0x1f3#7");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("\x1b[2J"), "'\\u{1b}[2J'");
    }

    #[test]
    fn no_name_of_a_file_is_an_option() {
        assert_eq!(shell_name("-o.aft"), "./-o.aft");
        assert_eq!(shell_name("a b.aft"), "'a b.aft'");
    }
}
