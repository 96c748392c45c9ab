//! Reads and writes messages. The head of a message gives the number of bytes that follow.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;

/// The maximum length of a message in bytes.
const LARGEST: usize = 1 << 24;
/// The maximum length of a line of the head in bytes.
const LONGEST_LINE: u64 = 1 << 12;

/// An incoming message.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The bytes of a message.
    Message(Vec<u8>),
    /// The rest of the input cannot be read. The text describes the fault.
    Broken(String),
    /// The client has left.
    End,
}

/// Reads a message.
pub(crate) fn read(from: &mut impl BufRead) -> Incoming {
    match read_message(from) {
        Ok(Some(message)) => Incoming::Message(message),
        Ok(None) => Incoming::End,
        Err(Wrong::Input(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Incoming::Broken("the input ends in the middle of a message".to_owned())
        }
        Err(Wrong::Input(error)) => Incoming::Broken(format!("the input cannot be read: {error}")),
        Err(Wrong::Head(why)) => Incoming::Broken(why),
    }
}

enum Wrong {
    Input(io::Error),
    Head(String),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self::Input(error)
    }
}

fn read_message(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, Wrong> {
    let mut length = None;
    let mut begun = false;
    loop {
        let mut line = Vec::new();
        from.by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() && !begun {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            return Err(if line.len() as u64 == LONGEST_LINE {
                Wrong::Head("a line of the message's head is too long".to_owned())
            } else {
                Wrong::Input(io::ErrorKind::UnexpectedEof.into())
            });
        }
        begun = true;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(Wrong::Head(format!(
                "a message must begin with Content-Length: and a number, not with {:?}",
                shortened(line)
            )));
        };
        if name.trim().eq_ignore_ascii_case("Content-Length") {
            let number = value.trim().parse::<usize>().ok();
            let number = number.filter(|number| *number <= LARGEST);
            let wrong = || {
                let value = shortened(value.trim());
                Wrong::Head(format!(
                    "Content-Length {value:?} is not a number of bytes up to {LARGEST}"
                ))
            };
            length = Some(number.ok_or_else(wrong)?);
        }
    }
    let length =
        length.ok_or_else(|| Wrong::Head("a message without Content-Length".to_owned()))?;
    let mut message = vec![0; length];
    from.read_exact(&mut message)?;
    Ok(Some(message))
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Writes a message.
pub(crate) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    write!(to, "Content-Length: {}\r\n\r\n", bytes.len())?;
    to.write_all(&bytes)?;
    to.flush()
}
