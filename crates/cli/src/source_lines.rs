//! Lines of a source file, of which few are asked for.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use crate::output::LARGEST_SOURCE;

/// A source file. No more of it is read than up to the last line that was asked for, and nothing is kept but where some lines begin: a file may be a whole library.
pub(crate) struct SourceLines {
    file: BufReader<File>,
    /// Where each [`EVERY`]th line begins, as far as that is known.
    marks: Vec<u64>,
}

/// To find a line, at most so many are passed over again.
const EVERY: usize = 256;

impl SourceLines {
    /// The file, if it is at hand and may be source text.
    pub(crate) fn open(path: &str) -> Option<Self> {
        let file = File::open(path).ok()?;
        let data = file.metadata().ok()?;
        (data.is_file() && data.len() <= LARGEST_SOURCE).then(|| Self {
            file: BufReader::with_capacity(1 << 16, file),
            marks: vec![0],
        })
    }

    /// A line, by its number from 1; `None` if there is none, or it cannot be read any more. O(its number) the first time, O(1) later.
    pub(crate) fn line(&mut self, number: u32) -> Option<String> {
        let index = (number as usize).checked_sub(1)?;
        let mark = index / EVERY;
        while self.marks.len() <= mark {
            let next = self.skip(*self.marks.last()?, EVERY)?;
            self.marks.push(next);
        }
        let start = self.skip(self.marks[mark], index % EVERY)?;
        self.file.seek(SeekFrom::Start(start)).ok()?;
        let mut line = Vec::new();
        let mut rest = (&mut self.file).take(LARGEST_SOURCE);
        let read = rest.read_until(b'\n', &mut line).ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
    }

    /// Where the line begins that is so many behind another; `None` if there are not so many.
    fn skip(&mut self, start: u64, lines: usize) -> Option<u64> {
        let at = self.file.stream_position().ok()?;
        if at != start {
            self.file.seek(SeekFrom::Start(start)).ok()?;
        }
        let mut at = start;
        for _ in 0..lines {
            let skipped = self.file.skip_until(b'\n').ok()?;
            if skipped == 0 {
                return None;
            }
            at += skipped as u64;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_those_of_the_text_in_any_order() {
        let mut text = String::new();
        for number in 0..3 * EVERY + 7 {
            text += &"x".repeat(number * 7 % 300);
            text += ["\n", " a\n", "\r\n"][number % 3];
        }
        text += "no end";
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut lines = SourceLines::open(file.path().to_str().unwrap()).unwrap();
        let all = Vec::from_iter(text.split_inclusive('\n'));
        let far = [all.len() + 1, all.len() + EVERY, 5 * EVERY];
        let orders = (1..=all.len()).rev().chain(1..=all.len()).chain(far);
        for number in orders {
            let expected = all.get(number - 1).map(|line| (*line).to_owned());
            assert_eq!(lines.line(number as u32), expected, "{number}");
        }
        assert_eq!(lines.line(0), None);
    }

    #[test]
    fn a_folder_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SourceLines::open(folder.path().to_str().unwrap()).is_none());
        assert!(SourceLines::open("").is_none());
    }
}
