//! Splits text into sentences, and counts the words of each. Numbers do not count as words.

/// Replaces a space within a piece of code, so that the code counts as one word.
const BLANK: char = '\u{2423}';

/// A sentence of a page, a comment or a message.
pub struct Sentence {
    pub file: String,
    /// The line on which the sentence's paragraph begins.
    pub line: usize,
    pub words: usize,
    /// The sentence without the marks for emphasis and the targets of links.
    pub text: String,
}

impl Sentence {
    /// Returns the sentence's first words.
    pub fn beginning(&self) -> String {
        let words: Vec<&str> = self.text.split(' ').take(9).collect();
        words.join(" ")
    }
}

/// Returns the sentences of a page in Markdown.
pub fn of_page(file: &str, text: &str) -> Vec<Sentence> {
    let mut paragraphs = Paragraphs::new(file);
    text.lines()
        .enumerate()
        .for_each(|(i, line)| paragraphs.line(i + 1, line));
    paragraphs.end();
    paragraphs.sentences
}

/// Returns the sentences of a source's doc comments.
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

/// Returns the sentences of at least four words in a source's string literals, such as help,
/// messages and headings.
pub fn of_messages(file: &str, text: &str) -> Vec<Sentence> {
    let mut paragraphs = Paragraphs::new(file);
    for (line, literal) in literals(text) {
        if words(&literal) >= 4 && !literal.contains('\u{1b}') {
            for (i, part) in literal.lines().enumerate() {
                // Examples in help are indented commands.
                let example = part.starts_with("  afterimage");
                paragraphs.line(line + i, if example { "" } else { part });
            }
            paragraphs.end();
            paragraphs.fenced = false;
        }
    }
    paragraphs.sentences
}

/// Returns the string literals of a source with their lines, without comments.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, literal) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), None)
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            let end = raw.find("\"#").unwrap_or(raw.len());
            (3 + end, Some(raw[..end].to_owned()))
        } else if let Some(inside) = rest.strip_prefix('"') {
            let (end, literal) = unescaped(inside);
            (1 + end, Some(literal))
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            (3, None)
        } else {
            (first.len_utf8(), None)
        };
        found.extend(literal.map(|literal| (line, literal)));
        let length = length.min(rest.len());
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// Unescapes a literal up to its closing quote. Returns the length of its source with the quote,
/// and its meaning.
fn unescaped(inside: &str) -> (usize, String) {
    let mut literal = String::new();
    let mut chars = inside.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (c, c == '\\') {
            ('"', _) => return (at + 1, literal),
            (_, false) => literal.push(c),
            _ => match chars.next() {
                Some((_, 'n')) => literal.push('\n'),
                Some((_, '\n')) => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some((_, other)) => literal.push(other),
                None => break,
            },
        }
    }
    (inside.len(), literal)
}

/// A builder that gathers lines into paragraphs and splits these into sentences.
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
            let words = words(sentence);
            if words > 0 {
                let text: Vec<&str> = sentence.split_whitespace().collect();
                self.sentences.push(Sentence {
                    file: self.file.to_owned(),
                    line: self.begun,
                    words,
                    text: text.join(" ").replace(BLANK, " "),
                });
            }
        }
        self.text.clear();
    }
}

/// Counts the words of a sentence. A piece of code counts as one word, and a number as none.
fn words(sentence: &str) -> usize {
    sentence
        .split_whitespace()
        .filter(|word| word.contains(|c: char| c.is_alphabetic() || c == '`'))
        .count()
}

/// Returns the text with each piece of code as one word, and links as their text.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        if i % 2 == 1 {
            out.push('`');
            out.push_str(&piece.replace(' ', &BLANK.to_string()));
            out.push('`');
            continue;
        }
        let mut rest = piece;
        while let Some((before, after)) = rest.split_once("](") {
            out.push_str(&before.replace(MARKS, ""));
            rest = after.split_once(')').map_or("", |(_, after)| after);
        }
        out.push_str(&rest.replace(MARKS, ""));
    }
    out
}

/// The characters that mark links and emphasis.
const MARKS: [char; 4] = ['[', ']', '*', '_'];

/// Splits a paragraph into sentences. A sentence ends with a period, a question mark or an
/// exclamation mark, before a blank that no lower-case letter follows.
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
    fn a_sentence_keeps_its_code_and_the_text_of_its_links() {
        let page = "See [the *page*](a.md) of `a b_c. D`. So.\n";
        let texts: Vec<String> = of_page("", page).into_iter().map(|s| s.text).collect();
        assert_eq!(texts, ["See the page of `a b_c. D`.", "So."]);
    }

    #[test]
    fn messages_are_literals_with_four_words() {
        let source = r##"f("one two three"); // "one two three four"
g('"', "no such \"file\" \
    at all\nTry again.", r#"raw has four words"#);"##;
        let found = of_messages("", source);
        let texts: Vec<(usize, &str)> = found.iter().map(|s| (s.line, &*s.text)).collect();
        assert_eq!(
            texts,
            [
                (2, "no such \"file\" at all Try again."),
                (3, "raw has four words")
            ]
        );
    }

    #[test]
    fn comments_of_different_items_are_apart() {
        let source = "//! A b.\n\n/// C d\n/// e.\nfn f() {} // g h\n    /// I\n";
        assert_eq!(lengths(&of_comments("", source)), [(1, 2), (3, 3), (6, 1)]);
    }
}
