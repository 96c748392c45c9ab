//! Writes tables with aligned columns for a terminal.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

pub(crate) use crate::plain::plain;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table. Columns are as wide as their widest cell. The widest column should be the last, because
/// its cells are cut first if the style has a width.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes the header, then the rows. If colours are on, the header is bold, and `paint` returns
    /// the colour of a row from its index.
    pub(crate) fn write(
        &self,
        out: &mut dyn Write,
        style: Style,
        paint: impl Fn(usize) -> Paint,
    ) -> io::Result<()> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| width(c.0)).collect();
        for row in &self.rows {
            for (cell, column) in row.iter().zip(&mut widths) {
                *column = width(cell).max(*column);
            }
        }
        let dropped = style
            .width
            .map_or(Vec::new(), |room| self.fit(&mut widths, room));
        let header: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.0.to_owned())
            .collect();
        let header = self.line(&header, &widths);
        writeln!(out, "{}", style.paint(Paint::Bold, &header))?;
        for (i, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cut = cells.map(|((cell, (name, _)), &room)| match room {
                0 => String::new(),
                // Both ends of a name are informative, but only the beginning of a source line is.
                room if *name == "text" => shortened(cell, room, 0),
                // The source line at the end of the cell is its most informative part.
                room if *name == "mostly from" => shortened(cell, room, last_word(cell, room)),
                room => shortened(cell, room, room / 2),
            });
            let row = Vec::from_iter(cut);
            writeln!(out, "{}", style.paint(paint(i), &self.line(&row, &widths)))?;
        }
        if !dropped.is_empty() {
            let names = dropped.join(", ");
            writeln!(
                out,
                "not shown, because the terminal is too narrow: {names}"
            )?;
        }
        Ok(())
    }

    /// Makes columns narrower until the table fits a terminal: first the last column, then others
    /// with text. Then drops the columns that are least useful to a reader of source, by giving
    /// them width 0, and returns their names. If the table is still too wide, its lines wrap.
    fn fit(&self, widths: &mut [usize], room: usize) -> Vec<&'static str> {
        let over = |widths: &[usize]| {
            let shown = widths.iter().filter(|column| **column > 0);
            let used: usize = shown.map(|column| column + GAP.len()).sum();
            used.saturating_sub(room + GAP.len())
        };
        let shrink = |widths: &mut [usize], at: usize| {
            let least = widths[at].min(LEAST_CELL.max(width(self.columns[at].0)));
            widths[at] -= over(widths).min(widths[at] - least);
        };
        let mut dropped = Vec::new();
        let Some(last) = widths.len().checked_sub(1) else {
            return dropped;
        };
        shrink(widths, last);
        let is_text = |at: &usize| self.columns[*at].1 == Align::Left && *at != last;
        let mut texts = Vec::from_iter((0..last).filter(is_text));
        texts.sort_by_key(|&at| std::cmp::Reverse(widths[at]));
        for at in texts {
            shrink(widths, at);
        }
        for name in DROPPED {
            let at = self.columns.iter().position(|column| column.0 == name);
            if let Some(at) = at.filter(|_| over(widths) > 0) {
                // Columns without a name belong to the column before them.
                let parts = self.columns[at + 1..].iter();
                let parts = parts.take_while(|column| column.0.is_empty()).count();
                widths[at..=at + parts].fill(0);
                dropped.push(name);
            }
        }
        dropped
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &(_, align)), &column) in cells.iter().zip(&self.columns).zip(widths) {
            if column == 0 {
                continue;
            }
            if !line.is_empty() {
                line.push_str(GAP);
            }
            let padding = " ".repeat(column.saturating_sub(width(cell)));
            match align {
                Align::Left => line.extend([cell.as_str(), &padding]),
                Align::Right => line.extend([padding.as_str(), cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The gap between columns.
const GAP: &str = "  ";

/// The columns to drop on a narrow terminal, the least useful to a reader of source first.
const DROPPED: [&str; 17] = [
    "block",
    "edge",
    "from",
    "to",
    "end",
    "kind",
    "then",
    "offset",
    "times",
    "stride",
    "by path",
    "same call",
    "executed",
    "path",
    "blocks",
    "operator",
    "values",
];

/// The minimum width of a cut cell. If there is less room, the terminal wraps lines.
const LEAST_CELL: usize = 12;

/// Returns the width of the last word of a string and the space before it, as far as it fits into
/// `room` columns with an ellipsis.
fn last_word(text: &str, room: usize) -> usize {
    let last = text.rfind(' ').map_or(room / 2, |at| width(&text[at..]));
    last.min(room - 1)
}

/// Shortens a string to `room` columns by cutting out the part before its last `tail` columns.
pub(crate) fn shortened(text: &str, room: usize, tail: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let head = fitting(text.chars(), room - tail - 1);
    let tail = fitting(text.chars().rev(), tail);
    format!("{}…{}", &text[..head], &text[text.len() - tail..])
}

/// Wraps text at word boundaries into lines of at most `columns` columns. Lines after the first are
/// indented by `indent` spaces. Without `columns`, the text is unchanged.
pub fn wrapped(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns.filter(|columns| *columns > indent + LEAST_CELL) else {
        return text.to_owned();
    };
    let mut lines = String::new();
    let mut taken = 0;
    for (i, word) in text.split(' ').enumerate() {
        let room = shown_width(word) + usize::from(i > 0);
        if i > 0 && taken + room > columns {
            lines.truncate(lines.trim_end_matches(' ').len());
            lines += &format!("\n{:indent$}", "");
            taken = indent;
        } else if i > 0 {
            lines.push(' ');
            taken += 1;
        }
        lines += word;
        taken += shown_width(word);
    }
    lines
}

/// Returns the width in columns of text that may contain colours.
fn shown_width(text: &str) -> usize {
    if !text.contains('\x1b') {
        return width(text);
    }
    let plain = COLORS
        .iter()
        .fold(text.to_owned(), |text, color| text.replace(color, ""));
    width(&plain)
}

/// Passes `report` a writer that wraps lines wider than the terminal at word boundaries. The lines
/// that follow are indented slightly more than the first. Words are never broken.
///
/// # Errors
/// Returns an error if `report` or `out` fails.
pub fn narrow<T, E: From<io::Error>>(
    out: &mut dyn Write,
    style: Style,
    report: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let Some(room) = style.width.filter(|room| *room > LEAST_CELL) else {
        return report(out);
    };
    let mut narrow = Narrow {
        out,
        room,
        line: Vec::new(),
    };
    let told = report(&mut narrow)?;
    narrow.end()?;
    Ok(told)
}

/// Wraps lines.
struct Narrow<'o> {
    out: &'o mut dyn Write,
    room: usize,
    /// The current line, up to the last byte received.
    line: Vec<u8>,
}

impl Narrow<'_> {
    fn end(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match str::from_utf8(&line) {
            Ok(text) if line.len() > self.room && shown_width(text) > self.room => {
                let indent = text.len() - text.trim_start_matches(' ').len();
                let indent = (indent + 2).min(self.room / 2);
                let lines = wrapped(text, Some(self.room), indent);
                self.out.write_all(lines.as_bytes())
            }
            _ => self.out.write_all(&line),
        }
    }
}

impl Write for Narrow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_ended) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            self.line.extend_from_slice(text);
            if is_ended {
                self.end()?;
                self.out.write_all(b"\n")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the number of bytes of these characters that fit into `room` columns.
fn fitting(chars: impl Iterator<Item = char>, mut room: usize) -> usize {
    let fits = |c: char| {
        room = room.checked_sub(columns(c))?;
        Some(c.len_utf8())
    };
    chars.map_while(fits).sum()
}

/// Returns the width of a string in columns of a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Returns the width of a character: 2 for East Asian characters, 0 for combining marks.
fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The style of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// The width of the terminal, if the output goes to one. Without a width, nothing is cut.
    pub width: Option<usize>,
}

/// The only control sequences in reports: the end of a colour, and the beginning of each colour.
pub const COLORS: [&str; 5] = ["\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m"];

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Bold,
    /// At least a tenth of the run's instructions were executed here.
    Hot,
    /// At least a hundredth of the run's instructions were executed here.
    Warm,
    /// The code was never executed.
    Dead,
}

impl Paint {
    /// Returns the colour for a share of all instructions: hot from a tenth on, warm from a
    /// hundredth on.
    pub(crate) fn of_share(part: u64, whole: u64) -> Self {
        let (part, whole) = (u128::from(part), u128::from(whole));
        match part {
            0 => Paint::Plain,
            _ if part * 10 >= whole => Paint::Hot,
            _ if part * 100 >= whole => Paint::Warm,
            _ => Paint::Plain,
        }
    }
}

impl Style {
    /// Shortens a line that is wider than the terminal.
    pub(crate) fn cut(self, line: &str) -> std::borrow::Cow<'_, str> {
        match self.width {
            Some(room) if room > LEAST_CELL && width(line) > room => {
                shortened(line, room, 0).into()
            }
            _ => line.into(),
        }
    }

    /// Formats a heading: wraps it, and makes it bold if colours are on.
    pub fn heading(self, text: &str, indent: usize) -> String {
        self.paint(Paint::Bold, &wrapped(text, self.width, indent))
    }

    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let [end, bold, hot, warm, dead] = COLORS;
        let begin = match paint {
            _ if !self.color => return text.to_owned(),
            Paint::Plain => return text.to_owned(),
            Paint::Bold => bold,
            Paint::Hot => hot,
            Paint::Warm => warm,
            Paint::Dead => dead,
        };
        format!("{begin}{text}{end}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_blanks() {
        let mut table = Table::new(&[
            ("n", Align::Right),
            ("name", Align::Left),
            ("x", Align::Left),
        ]);
        table.row(["1,000".into(), "é".into(), "last".into()]);
        table.row(["7".into(), "longer".into(), String::new()]);
        let mut out = Vec::new();
        table
            .write(&mut out, Style::default(), |_| Paint::Hot)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "    n  name    x\n1,000  é       last\n    7  longer\n"
        );
    }

    #[test]
    fn only_the_last_column_is_cut_and_only_for_a_terminal() {
        let name = "<alloc::vec::Vec<T, A> as core::ops::drop::Drop>::drop";
        let mut table = Table::new(&[("count", Align::Right), ("function", Align::Left)]);
        table.row(["1,234,567".into(), name.into()]);
        let written = |terminal| {
            let mut out = Vec::new();
            let style = Style {
                color: false,
                width: terminal,
            };
            table.write(&mut out, style, |_| Paint::Plain).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(written(None).contains(name));
        assert!(written(Some(200)).contains(name));
        let cut = written(Some(40));
        let row = cut.lines().nth(1).unwrap();
        assert_eq!(width(row), 40, "{row}");
        assert!(
            row.starts_with("1,234,567  <alloc::") && row.ends_with("Drop>::drop"),
            "{row}"
        );
        assert!(
            written(Some(1)).contains("1,234,567"),
            "narrow terminals wrap"
        );
    }

    #[test]
    fn the_source_of_an_access_is_cut_last() {
        let of = |cell: &str, room| shortened(cell, room, last_word(cell, room));
        assert_eq!(of("@0x6b7 i32.store stock.c:13", 12), "… stock.c:13");
        assert_eq!(of("@0x6b7 i32.store stock.c:13", 16), "@0x6… stock.c:13");
        assert_eq!(of("@0x6b7 i32.store vfscanf.c:29", 12), "…fscanf.c:29");
        assert_eq!(of("@0x6b7 i32.store", 16), "@0x6b7 i32.store");
    }

    /// The widths are those of Unicode's East Asian Width (UAX 11) and of combining marks.
    #[test]
    fn characters_take_the_columns_that_a_terminal_gives_them() {
        let mut table = Table::new(&[("name", Align::Left), ("text", Align::Left)]);
        table.row(["計算".into(), "1".into()]);
        table.row(["cafe\u{301}".into(), "計算する関数".into()]);
        let mut out = Vec::new();
        let style = Style {
            color: false,
            width: Some(18),
        };
        table.write(&mut out, style, |_| Paint::Plain).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "name  text\n計算  1\ncafe\u{301}  計算する関数\n");
        assert_eq!(shortened("計算する関数", 11, 5), "計算…関数");
        assert_eq!(shortened("計算する関数", 10, 0), "計算する…");
    }

    #[test]
    fn lines_are_as_wide_as_the_terminal() {
        let told = |text: &str| {
            let mut out = Vec::new();
            let style = Style {
                color: true,
                width: Some(20),
            };
            narrow(&mut out, style, |out| out.write_all(text.as_bytes())).unwrap();
            String::from_utf8(out).unwrap()
        };
        let line = "  one two three four five\nshort";
        assert_eq!(told(line), "  one two three four\n    five\nshort");
        let colored = "\x1b[1mone two three four\x1b[0m\n";
        assert_eq!(told(colored), colored);
        let word = "a/path/that/nothing/can/break\n";
        assert_eq!(told(word), word);
    }

    #[test]
    fn colors_only_when_on() {
        assert_eq!(Style::default().paint(Paint::Hot, "x"), "x");
        let style = Style {
            color: true,
            width: None,
        };
        assert_eq!(style.paint(Paint::Hot, "x"), "\x1b[1;31mx\x1b[0m");
    }
}
