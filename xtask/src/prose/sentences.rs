//! Splits text into its sentences, and counts the words of each. Numbers are not words: a row of
//! figures reads as fast as a table.

/// One sentence.
pub struct Sentence {
    pub file: String,
    /// The line on which its paragraph begins.
    pub line: usize,
    pub words: usize,
    /// Its first words.
    pub beginning: String,
}

/// The sentences of a page in Markdown.
pub fn of_page(file: &str, text: &str) -> Vec<Sentence> {
    let mut paragraphs = Paragraphs::new(file);
    text.lines()
        .enumerate()
        .for_each(|(i, line)| paragraphs.line(i + 1, line));
    paragraphs.end();
    paragraphs.sentences
}

/// The sentences of a source's doc comments.
pub fn of_comments(file: &str, text: &str) -> Vec<Sentence> {
    let mut paragraphs = Paragraphs::new(file);
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_start();
        match line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
        {
            Some(comment) => paragraphs.line(i + 1, comment.strip_prefix(' ').unwrap_or(comment)),
            None => {
                paragraphs.end();
                paragraphs.fenced = false;
            }
        }
    }
    paragraphs.end();
    paragraphs.sentences
}

/// Gathers lines into paragraphs, and cuts these into sentences.
struct Paragraphs<'a> {
    file: &'a str,
    fenced: bool,
    begun: usize,
    text: String,
    sentences: Vec<Sentence>,
}

impl<'a> Paragraphs<'a> {
    fn new(file: &'a str) -> Self {
        Self {
            file,
            fenced: false,
            begun: 0,
            text: String::new(),
            sentences: Vec::new(),
        }
    }

    fn line(&mut self, number: usize, line: &str) {
        if line.trim_start().starts_with("```") {
            self.end();
            self.fenced = !self.fenced;
            return;
        }
        let trimmed = line.trim();
        let code = self.fenced || (line.starts_with("    ") && self.text.is_empty());
        if code || trimmed.is_empty() || trimmed.starts_with(['|', '#', '<']) {
            self.end();
            return;
        }
        let numbered = trimmed.split_once(". ").is_some_and(|(number, _)| {
            !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
        });
        if numbered || trimmed.starts_with("- ") || trimmed.starts_with("* ") {
            self.end();
        }
        if self.text.is_empty() {
            self.begun = number;
        }
        self.text.push_str(trimmed);
        self.text.push(' ');
    }

    fn end(&mut self) {
        let text = plain(&self.text);
        for sentence in split(&text) {
            let words = sentence
                .split_whitespace()
                .filter(|word| word.contains(char::is_alphabetic));
            let words = words.count();
            if words > 0 {
                let beginning = sentence
                    .split_whitespace()
                    .take(9)
                    .collect::<Vec<_>>()
                    .join(" ");
                self.sentences.push(Sentence {
                    file: self.file.to_owned(),
                    line: self.begun,
                    words,
                    beginning,
                });
            }
        }
        self.text.clear();
    }
}

/// Returns the text with each piece of code as one word, and links as their text.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        if i % 2 == 1 {
            out.push_str("CODE");
        } else {
            out.push_str(piece);
        }
    }
    let mut shown = String::new();
    let mut rest = out.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    shown.replace(['[', ']', '*', '_'], "")
}

/// Splits a paragraph into sentences: they end in a period, a question mark or an exclamation mark,
/// before a blank and anything except a small letter.
fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut from = 0;
    for (at, mark) in text.char_indices() {
        if !matches!(mark, '.' | '?' | '!') {
            continue;
        }
        let after = &text[at + 1..];
        let closed = after.trim_start_matches([')', '"', '”']);
        let mut following = closed.chars();
        if following.next() == Some(' ') && !following.next().is_some_and(char::is_lowercase) {
            let end = text.len() - closed.len();
            sentences.push(&text[from..end]);
            from = end;
        }
    }
    sentences.push(&text[from..]);
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(sentences: &[Sentence]) -> Vec<(usize, usize)> {
        sentences
            .iter()
            .map(|sentence| (sentence.line, sentence.words))
            .collect()
    }

    #[test]
    fn code_and_tables_have_no_sentences() {
        let page = "# Title\n\nOne two `three four`. Five\nsix (e.g. seven)!\n\n| a | b |\n```sh\nx y\n```\n- A [b c](d.md).\n- E.\n";
        assert_eq!(
            lengths(&of_page("", page)),
            [(3, 3), (3, 4), (10, 3), (11, 1)]
        );
    }

    #[test]
    fn comments_of_different_items_are_apart() {
        let source = "//! A b.\n\n/// C d\n/// e.\nfn f() {} // g h\n    /// I\n";
        assert_eq!(lengths(&of_comments("", source)), [(1, 2), (3, 3), (6, 1)]);
    }
}
