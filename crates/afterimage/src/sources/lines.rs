//! Reads lines of a source file, for reports that need only a few lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{LARGEST_SOURCE, may_be_source};

/// A source file. A file on disk may be very long, so it is read only up to the last requested
/// line, and only the offsets of some lines are kept. It is open only while it is read, because a
/// program may have more source files than a process may have open files.
pub struct SourceLines {
    text: Text,
    /// The offset of every [`EVERY`]th line that has been reached.
    marks: Vec<u64>,
}

enum Text {
    OnDisk {
        path: PathBuf,
        /// The file's length and modification time. If they change, the known offsets are invalid.
        written: (u64, Option<SystemTime>),
    },
    InMemory(Vec<u8>),
}

/// The maximum number of lines to skip again to find a line.
const EVERY: usize = 256;

impl SourceLines {
    /// Opens the file, if it exists and may be source text.
    pub fn open(path: &Path) -> Option<Self> {
        let text = Text::OnDisk {
            written: written(path)?,
            path: path.to_owned(),
        };
        text.reader()?;
        let marks = vec![0];
        Some(Self { text, marks })
    }

    /// Reads lines of a text in memory.
    pub fn of(text: Vec<u8>) -> Self {
        Self {
            text: Text::InMemory(text),
            marks: vec![0],
        }
    }

    /// Returns a line by its number from 1. Returns `None` if there is no such line, or if it can
    /// no longer be read. O(line number) for the first request, O(1) later.
    pub fn line(&mut self, number: u32) -> Option<String> {
        let index = (number as usize).checked_sub(1)?;
        let mark = index / EVERY;
        let mut file = self.text.reader()?;
        let nearest = mark.min(self.marks.len() - 1);
        let start = self.marks[nearest];
        file.seek(SeekFrom::Start(start)).ok()?;
        while self.marks.len() <= mark {
            let skipped = skip(&mut *file, EVERY)?;
            let last = *self.marks.last()?;
            self.marks.push(last + skipped);
        }
        skip(&mut *file, index % EVERY)?;
        let mut line = Vec::new();
        let read = file.take(LARGEST_SOURCE).read_until(b'\n', &mut line);
        (read.ok()? > 0).then(|| String::from_utf8_lossy(&line).into_owned())
    }
}

impl Text {
    /// Opens the text. Opens a file only if it has not changed.
    fn reader(&self) -> Option<Box<dyn Reader + '_>> {
        let (path, before) = match self {
            Self::InMemory(text) => return Some(Box::new(Cursor::new(text))),
            Self::OnDisk { path, written } => (path, written),
        };
        let same = written(path)? == *before;
        let file = same.then(|| File::open(path))?;
        Some(Box::new(BufReader::with_capacity(1 << 14, file.ok()?)))
    }
}

trait Reader: BufRead + Seek {}

impl<R: BufRead + Seek> Reader for R {}

/// Skips lines and returns their length in bytes. Returns `None` if there are fewer lines.
fn skip(file: &mut dyn Reader, lines: usize) -> Option<u64> {
    let mut bytes = 0;
    for _ in 0..lines {
        let skipped = file.skip_until(b'\n').ok()?;
        if skipped == 0 {
            return None;
        }
        bytes += skipped as u64;
    }
    Some(bytes)
}

/// Returns a file's length and modification time, if it may be source text.
fn written(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let data = may_be_source(path)?;
    Some((data.len(), data.modified().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        let mut lines = SourceLines::open(file.path()).unwrap();
        let all = Vec::from_iter(text.split_inclusive('\n').map(str::to_owned));
        let far = [all.len() + 1, all.len() + EVERY, 5 * EVERY];
        let orders = (1..=all.len()).rev().chain(1..=all.len()).chain(far);
        for number in orders {
            let expected = all.get(number - 1).cloned();
            assert_eq!(lines.line(number as u32), expected, "{number}");
        }
        assert_eq!(lines.line(0), None);
        let mut embedded = SourceLines::of(text.into_bytes());
        for number in 0..=lines.marks.len() * EVERY {
            assert_eq!(embedded.line(number as u32), lines.line(number as u32));
        }
    }

    #[test]
    fn a_folder_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SourceLines::open(folder.path()).is_none());
        assert!(SourceLines::open(Path::new("")).is_none());
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe.c");
        let made = afterimage_testkit::tools::command("mkfifo")
            .arg(&path)
            .status();
        assert!(made.unwrap().success());
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(SourceLines::open(&path).is_none()));
        let told = receive.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!(told, Ok(true), "it is still being opened");
    }

    #[test]
    fn files_are_open_only_while_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let open = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let mut all = Vec::new();
        let before = open();
        for number in 0..600 {
            let path = folder.path().join(format!("{number}.c"));
            fs::write(&path, format!("first\nof {number}\n")).unwrap();
            all.push(SourceLines::open(&path).unwrap());
        }
        for (number, lines) in all.iter_mut().enumerate() {
            assert_eq!(lines.line(2), Some(format!("of {number}\n")));
        }
        // Other tests open a few files, too.
        assert!(open() < before + 300);
    }

    #[test]
    fn of_a_file_that_was_written_anew_no_line_is_told() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\ntwo\n").unwrap();
        let mut lines = SourceLines::open(file.path()).unwrap();
        assert_eq!(lines.line(2).as_deref(), Some("two\n"));
        file.write_all(b"three\n").unwrap();
        assert_eq!(lines.line(2), None);
    }
}
