//! Runs a command in a terminal of a given width, and returns the terminal's contents at the end.
//!
//! The terminal supports everything that our reports and progress bars use: line ends, returns to
//! the beginning of a line, and erasing a line. Colours are off. A line longer than the terminal
//! continues in the next row, as on a screen.

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};

/// The displayed output.
pub struct Shown {
    /// The lines, without trailing blanks.
    pub lines: Vec<String>,
    pub status: ExitStatus,
}

/// Runs `command` in a terminal with `width` columns. Each line is first passed through `settle`.
///
/// # Errors
/// Returns an error if there is no terminal, or the command cannot be run.
pub fn run(command: &mut Command, width: u16, settle: impl Fn(&str) -> String) -> Result<Shown> {
    let (main, sub) = pair(width).context("cannot open a terminal")?;
    let duplicate = || sub.try_clone().context("cannot open a terminal");
    command
        .env_remove("COLUMNS")
        .env("NO_COLOR", "1")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(duplicate()?)
        .stderr(duplicate()?);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    // Reading ends when the other side is closed everywhere.
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    drop(sub);
    let written = all(main)?;
    let status = child.wait().context("cannot wait for a command")?;
    let lines = lines(&String::from_utf8_lossy(&written))
        .iter()
        .map(|line| settle(line).trim_end().to_owned())
        .collect();
    Ok(Shown { lines, status })
}

impl Shown {
    /// Returns the rows of a terminal of this width, and the number of lines longer than a row.
    pub fn rows(&self, width: u16) -> (Vec<String>, usize) {
        let mut rows = Vec::new();
        let mut wrapped = 0;
        for line in &self.lines {
            let characters: Vec<char> = line.chars().collect();
            wrapped += usize::from(characters.len() > usize::from(width));
            let mut cut = characters.chunks(width.into());
            rows.push(cut.next().unwrap_or_default().iter().collect());
            rows.extend(cut.map(|row| row.iter().collect()));
        }
        (rows, wrapped)
    }
}

/// Returns everything written to the terminal. Linux reports EIO at the end.
fn all(main: OwnedFd) -> Result<Vec<u8>> {
    let mut written = Vec::new();
    match File::from(main).read_to_end(&mut written) {
        Err(error) if error.raw_os_error() != Some(Errno::IO.raw_os_error()) => {
            Err(error).context("cannot read from a terminal")
        }
        _ => Ok(written),
    }
}

/// Returns the lines that the terminal shows after `written`.
fn lines(written: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line: Vec<char> = Vec::new();
    let mut column = 0;
    let mut rest = written.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\n' => {
                lines.push(line.drain(..).collect());
                column = 0;
            }
            '\r' => column = 0,
            '\t' => {
                column = column / 8 * 8 + 8;
                line.resize(line.len().max(column), ' ');
            }
            '\u{1b}' => {
                let sequence: String =
                    std::iter::from_fn(|| rest.next_if(|c| !c.is_ascii_alphabetic())).collect();
                if let (Some('K'), "[2" | "[" | "[0") = (rest.next(), sequence.as_str()) {
                    line.truncate(if sequence == "[2" { 0 } else { column });
                }
            }
            character => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = character;
                column += 1;
            }
        }
    }
    if !line.is_empty() {
        lines.push(line.into_iter().collect());
    }
    lines
}

/// Opens a terminal. Returns the reader's side and the writer's side.
fn pair(columns: u16) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    const UNLOCK: Opcode = opcode::write::<i32>(b'T', 0x31);
    const NUMBER: Opcode = opcode::read::<u32>(b'T', 0x30);
    const SIZE: Opcode = 0x5414;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let main = open("/dev/ptmx", flags, Mode::empty())?;
    // Rows, columns, and two unused pixel counts.
    let size = [50, columns, 0, 0];
    #[expect(
        unsafe_code,
        reason = "rustix has no safe calls for these without a feature that builds the engine again"
    )]
    // SAFETY: tty_ioctl(4) and pts(4) specify these types for the three calls. The kernel only
    // reads what the setters pass.
    let number = unsafe {
        ioctl(&main, Setter::<UNLOCK, i32>::new(0))?;
        ioctl(&main, Setter::<SIZE, [u16; 4]>::new(size))?;
        ioctl(&main, Getter::<NUMBER, u32>::new())?
    };
    let sub = open(format!("/dev/pts/{number}"), flags, Mode::empty())?;
    Ok((main, sub))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_progress_bar_leaves_nothing() {
        assert_eq!(lines("a\r\n- counting\r\u{1b}[2Kb\r\n"), ["a", "b"]);
        assert_eq!(lines("abc\rx\u{1b}[K\n\u{1b}[1mc\u{1b}[0m"), ["x", "c"]);
    }
}
