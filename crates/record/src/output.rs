//! Writes the guest's output in a way that can be interrupted.
//!
//! An unread pipe is full after 64 KiB, and a terminal can be paused. wasmtime-wasi then blocks the
//! whole thread until there is room again, and no stop request gets through. This module writes a
//! piece only once there is room for it, and waits for room in a future. wasmtime-wasi writes
//! pieces of at most 4,096 bytes, which a pipe with any room accepts whole.

use std::io::{self, Stderr, Stdout};
use std::mem;
use std::os::fd::AsFd;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The time to wait for room before checking for a stop request.
const ASK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// One of our own streams, to which the guest may write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

impl Output {
    /// Waits briefly for room, and returns whether to write now. An error ends the wait with
    /// `true`, and the write then reports the error.
    fn has_room(self) -> bool {
        let (stdout, stderr): (Stdout, Stderr);
        let stream = match self {
            Self::Stdout => {
                stdout = io::stdout();
                stdout.as_fd()
            }
            Self::Stderr => {
                stderr = io::stderr();
                stderr.as_fd()
            }
        };
        let mut streams = [PollFd::from_borrowed_fd(stream, PollFlags::OUT)];
        !matches!(poll(&mut streams, Some(&ASK)), Ok(0) | Err(Errno::INTR))
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout => io::IsTerminal::is_terminal(&io::stdout()),
            Self::Stderr => io::IsTerminal::is_terminal(&io::stderr()),
        }
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        match self {
            Self::Stdout => io::stdout().async_stream(),
            Self::Stderr => io::stderr().async_stream(),
        }
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        let inner = match self {
            Self::Stdout => io::stdout().p2_stream(),
            Self::Stderr => io::stderr().p2_stream(),
        };
        Box::new(Patient {
            inner,
            output: *self,
            is_flushed: false,
        })
    }
}

/// A stream that is ready only when it has room.
struct Patient {
    inner: Box<dyn OutputStream>,
    output: Output,
    /// Whether the stream was just flushed. The next wait for readiness then returns at once,
    /// because there may be no other piece to write.
    is_flushed: bool,
}

impl OutputStream for Patient {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.is_flushed = true;
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }
}

#[async_trait]
impl Pollable for Patient {
    async fn ready(&mut self) {
        if mem::take(&mut self.is_flushed) {
            return;
        }
        while !self.output.has_room() {
            tokio::task::yield_now().await;
        }
    }
}
