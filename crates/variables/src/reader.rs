//! Where the reading of an expression stands.

/// An expression, read from left to right.
pub(crate) struct Reader<'t> {
    pub text: &'t str,
    /// How many bytes were read.
    pub at: usize,
}

impl<'t> Reader<'t> {
    /// What follows, without the white space before it.
    pub fn rest(&mut self) -> &'t str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    /// Reads a token, if it is next.
    pub fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }
}
