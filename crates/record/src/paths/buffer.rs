//! The buffer between the guest and the consumer: two halves of the probes' memory.
//!
//! The guest writes one half while the consumer reads the other in place. A half belongs to exactly one of them at a
//! time: it goes to the consumer as a [`FullHalf`], and comes back when that is dropped. A guest that is faster
//! waits.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use afterimage_ids::FuncId;

/// What the consumer is told, in the order in which it happened.
pub(crate) enum Message {
    /// The host called a function.
    HostCall(FuncId),
    /// Words were written.
    Words(FullHalf),
    /// The last word, which was not full.
    Last(u64),
}

/// Which halves are being read.
#[derive(Default)]
struct Reading {
    halves: Mutex<[bool; 2]>,
    changed: Condvar,
}

impl Reading {
    fn wait(&self, until: impl Fn(&[bool; 2]) -> bool) -> std::sync::MutexGuard<'_, [bool; 2]> {
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed
            .wait_while(halves, |halves| !until(halves))
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A half that the consumer owns.
pub(crate) struct FullHalf {
    start: *const u64,
    words: usize,
    half: usize,
    reading: Arc<Reading>,
}

// SAFETY: the half is written by nobody until it is dropped, and the memory outlives it: see `Producer::new`.
#[allow(unsafe_code)]
unsafe impl Send for FullHalf {}

impl FullHalf {
    /// The words, in the order in which they were written.
    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: the range lies in the guest's memory, which exists until this half is dropped; it is aligned, because
        // the buffer begins at a page of memory; nobody writes to it meanwhile.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start, self.words)
        }
    }
}

impl Drop for FullHalf {
    fn drop(&mut self) {
        let mut halves = self
            .reading
            .halves
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        halves[self.half] = false;
        self.reading.changed.notify_all();
    }
}

/// The guest's side.
pub(crate) struct Producer {
    messages: Sender<Message>,
    reading: Arc<Reading>,
    /// The first half's address in this process, set when the memory is there.
    buffer: *const u64,
    /// How many words a half has.
    half_words: usize,
    /// Which half the guest writes to.
    current: usize,
}

// SAFETY: the pointer is used by `FullHalf` alone, whose rules do not depend on the thread.
#[allow(unsafe_code)]
unsafe impl Send for Producer {}

/// Waits, when it is dropped, until no half is being read any more. It must be dropped before the memory is.
pub(crate) struct Quiet(Arc<Reading>);

impl Drop for Quiet {
    fn drop(&mut self) {
        drop(self.0.wait(|halves| *halves == [false, false]));
    }
}

/// The consumer is gone: it has failed, and says why itself.
#[derive(Debug, thiserror::Error)]
#[error("the recorder of the path has stopped")]
pub struct ConsumerGone;

impl Producer {
    /// A producer and what it sends. The buffer's place is told later, by [`Producer::place`].
    pub(crate) fn new(half_words: u32) -> (Self, Receiver<Message>) {
        let (messages, receiver) = channel();
        let producer = Self {
            messages,
            reading: Arc::default(),
            buffer: std::ptr::null(),
            half_words: half_words as usize,
            current: 0,
        };
        (producer, receiver)
    }

    /// The buffer begins here, and has two halves. The memory must not be freed or moved before the guard is dropped.
    pub(crate) fn place(&mut self, buffer: *const u64) -> Quiet {
        self.buffer = buffer;
        Quiet(self.reading.clone())
    }

    /// Tells of a call by the host.
    pub(crate) fn host_call(&self, function: FuncId) -> Result<(), ConsumerGone> {
        self.messages
            .send(Message::HostCall(function))
            .map_err(|_| ConsumerGone)
    }

    /// The half that the guest writes to has so many words: hands it over and waits for the other one. The answer is which
    /// half the guest may write to now.
    pub(crate) fn swap(&mut self, words: usize) -> Result<usize, ConsumerGone> {
        self.hand_over(words)?;
        let other = 1 - self.current;
        drop(self.reading.wait(|halves| !halves[other]));
        self.current = other;
        Ok(other)
    }

    /// The run has ended.
    pub(crate) fn finish(&mut self, words: usize, last: u64) -> Result<(), ConsumerGone> {
        self.hand_over(words)?;
        self.messages
            .send(Message::Last(last))
            .map_err(|_| ConsumerGone)
    }

    fn hand_over(&mut self, words: usize) -> Result<(), ConsumerGone> {
        debug_assert!(words <= self.half_words);
        self.reading.wait(|_| true)[self.current] = true;
        let half = FullHalf {
            start: self.buffer.wrapping_add(self.current * self.half_words),
            words: words.min(self.half_words),
            half: self.current,
            reading: self.reading.clone(),
        };
        self.messages
            .send(Message::Words(half))
            .map_err(|_| ConsumerGone)
    }
}
