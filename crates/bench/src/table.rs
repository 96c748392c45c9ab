//! Makes tables in Markdown, which are also readable as text.

/// A table with a header row.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self {
            rows: vec![header.iter().map(|h| (*h).to_owned()).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn markdown(&self) -> String {
        let columns = self.rows[0].len();
        let width = |c: usize| {
            self.rows
                .iter()
                .map(|r| r.get(c).map_or(0, |t| t.chars().count()))
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for (i, row) in self.rows.iter().enumerate() {
            for (c, width) in widths.iter().enumerate() {
                let cell = row.get(c).map_or("", String::as_str);
                out.push_str(&if c == 0 {
                    format!("| {cell:<width$} ")
                } else {
                    format!("| {cell:>width$} ")
                });
            }
            out.push_str("|\n");
            if i == 0 {
                for (c, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(*width + 1);
                    out.push_str(&if c == 0 {
                        format!("|{dashes}-")
                    } else {
                        format!("|{dashes}:")
                    });
                }
                out.push_str("|\n");
            }
        }
        out
    }
}
