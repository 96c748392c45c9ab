//! The cursor for parsing an expression.

/// An expression, read from left to right.
pub(crate) struct Reader<'t> {
    pub text: &'t str,
    /// The number of bytes read.
    pub at: usize,
}

impl<'t> Reader<'t> {
    /// Returns the rest of the text, without leading white space.
    pub fn rest(&mut self) -> &'t str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    /// Consumes a token if it comes next.
    pub fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }
}
