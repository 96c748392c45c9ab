//! The ring between the guest and the consumer: two halves of the probes' memory.
//!
//! The guest writes one half while the consumer reads the other in place. A half belongs to exactly one of them at a
//! time: it goes to the consumer as a [`FullHalf`], and comes back when that is dropped. A guest that is faster
//! waits. It does not ask whether its half is full: the other half's beginning is read-only, so that its first store there faults,
//! and the fault's handler exchanges the halves ([`Producer::fault`]).

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afterimage_ids::FuncId;

use super::guard::Ring;
use crate::snapshots::{Captured, Lines};

/// The guest waits at a cut while the consumer has this many cuts left to read.
const MOST_CUTS: usize = 256;
/// It waits at a snapshot, whose copies take memory, while this many are left.
const MOST_SNAPSHOTS: usize = 8;
/// How long is waited until one is looked at again.
const PAUSE: Duration = Duration::from_millis(1);

/// What the consumer is told, in the order in which it happened.
pub(crate) enum Message {
    /// The host called a function.
    HostCall(FuncId),
    /// Words were written.
    Words(FullHalf),
    /// The last word, which was not full.
    Last(u64),
    /// The path is cut: the words since the last message, of which the last may be incomplete, and the state of the engine.
    Cut(Vec<u64>, Box<Captured>),
    /// The run has ended: the lines of memory written since the last cut.
    Written(Vec<Lines>),
}

/// Which halves are being read.
#[derive(Default)]
struct Reading {
    halves: Mutex<[bool; 2]>,
    changed: Condvar,
}

impl Reading {
    fn wait(&self, until: impl Fn(&[bool; 2]) -> bool) -> MutexGuard<'_, [bool; 2]> {
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed
            .wait_while(halves, |halves| !until(halves))
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, half: usize, reading: bool) {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)[half] = reading;
        self.changed.notify_all();
    }
}

/// A half that the consumer owns.
pub(crate) struct FullHalf {
    start: *const u64,
    words: usize,
    half: usize,
    reading: Arc<Reading>,
}

// SAFETY: the half is written by nobody until it is dropped, and the memory outlives it: see `Producer::place`.
#[allow(unsafe_code)]
unsafe impl Send for FullHalf {}

impl FullHalf {
    /// The words, in the order in which they were written.
    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: the range lies in the guest's memory, which exists until this half is dropped; it is aligned, because
        // the ring begins at a page of memory; nobody writes to it meanwhile.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start, self.words)
        }
    }
}

impl Drop for FullHalf {
    fn drop(&mut self) {
        self.reading.set(self.half, false);
    }
}

/// The guest's side. Clones are of the same guest.
#[derive(Clone)]
pub(crate) struct Producer(Arc<Shared>);

struct Shared {
    messages: Sender<Message>,
    reading: Arc<Reading>,
    /// How many words a half has.
    half_words: usize,
    /// Held by each captured state that nobody has read.
    waiting: Arc<()>,
    state: Mutex<State>,
}

/// What changes on the guest's side. Only the guest's thread, in the guest or in the host, uses it.
#[derive(Default)]
struct State {
    /// Set when the memory is there.
    ring: Option<Ring>,
    /// Which half the guest writes to.
    current: usize,
    /// How many words of it were handed over already.
    cut: usize,
    /// Why the halves could not be exchanged.
    failed: Option<HandOverError>,
}

/// Waits, when it is dropped, until no half is being read any more. It must be dropped before the memory is.
pub(crate) struct Quiet(Producer);

impl Drop for Quiet {
    fn drop(&mut self) {
        drop(self.0.0.reading.wait(|halves| *halves == [false, false]));
        self.0.state().ring = None;
    }
}

/// Why the guest cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The consumer is gone: it has failed, and says why itself.
    #[error("the recorder of the path has stopped")]
    ConsumerGone,
    /// The system does not let us protect memory.
    #[error("the memory between the program and the recorder of its path cannot be protected: {0}")]
    Protect(#[from] std::io::Error),
}

impl Producer {
    /// A producer and what it sends. The ring's place is told later, by [`Producer::place`].
    pub(crate) fn new(half_words: u32) -> (Self, Receiver<Message>) {
        let (messages, receiver) = channel();
        let shared = Shared {
            messages,
            reading: Arc::default(),
            half_words: half_words as usize,
            waiting: Arc::default(),
            state: Mutex::default(),
        };
        (Self(Arc::new(shared)), receiver)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ring is here. Its memory must not be freed, moved, or accessed otherwise than by the guest before the answer is
    /// dropped.
    pub(crate) fn place(&self, ring: Ring) -> Result<Quiet, HandOverError> {
        ring.exchange(1, 0)?;
        self.state().ring = Some(ring);
        Ok(Quiet(self.clone()))
    }

    /// Tells of a call by the host.
    pub(crate) fn host_call(&self, function: FuncId) -> Result<(), HandOverError> {
        self.0
            .messages
            .send(Message::HostCall(function))
            .map_err(|_| HandOverError::ConsumerGone)
    }

    /// Sends the lines of memory written since the last cut, at the end of the run.
    pub(crate) fn wrote(&self, lines: Vec<Lines>) -> Result<(), HandOverError> {
        self.0
            .messages
            .send(Message::Written(lines))
            .map_err(|_| HandOverError::ConsumerGone)
    }

    /// A store to this address faults. If that is because the guest's half is full, exchanges the halves, so that the guest may
    /// do the store again. Otherwise, or if they cannot be exchanged, the answer is `false`.
    ///
    /// This is called by the handler of a signal, on the guest's thread. It allocates and takes locks all the same, which a handler may
    /// not do if it interrupts a thread that does so, too: it is only the code of the guest, which does neither,
    /// that it interrupts if the address is the ring's. Other addresses are answered without waiting for anybody: the lock is
    /// tried, and it is held by this thread or by none.
    pub(crate) fn fault(&self, address: usize) -> bool {
        let Ok(mut state) = self.0.state.try_lock() else {
            return false;
        };
        let is_end = state
            .ring
            .as_ref()
            .is_some_and(|ring| ring.begins(1 - state.current, address));
        if !is_end {
            return false;
        }
        match self.exchange(&mut state) {
            Ok(()) => true,
            // The guest traps; whoever asks at its end learns why.
            Err(error) => {
                state.failed = Some(error);
                false
            }
        }
    }

    /// Writes a word for the host; exchanges the halves first if it is the other half's first.
    pub(crate) fn write(&self, word: usize, value: u64) -> Result<(), HandOverError> {
        let mut state = self.state();
        debug_assert!(word < 2 * self.0.half_words);
        if word / self.0.half_words != state.current {
            self.exchange(&mut state)?;
        }
        if let Some(ring) = &state.ring {
            ring.write(word, value);
        }
        Ok(())
    }

    /// Hands over what was written up to now, with this word to be written next and these bits in none, and how the machine stands here.
    pub(crate) fn cut(
        &self,
        word: usize,
        pending: u64,
        mut captured: Box<Captured>,
    ) -> Result<(), HandOverError> {
        let mut state = self.state();
        let end = self.end(&state, word);
        let mut words = match &state.ring {
            Some(ring) => ring.read(state.current, state.cut..end),
            None => Vec::new(),
        };
        state.cut = end;
        // The consumer may be slower than the guest.
        let most = match captured.is_snapshot() {
            true => MOST_SNAPSHOTS,
            false => MOST_CUTS,
        };
        while Arc::strong_count(&self.0.waiting) > most {
            std::thread::sleep(PAUSE);
        }
        captured.waits(&self.0.waiting);
        // Without bits it is 1.
        if pending != 1 {
            words.push(pending);
        }
        self.0
            .messages
            .send(Message::Cut(words, captured))
            .map_err(|_| HandOverError::ConsumerGone)
    }

    /// How many words of the guest's half were written, with this word to be written next.
    fn end(&self, state: &State, word: usize) -> usize {
        if word / self.0.half_words == state.current {
            word % self.0.half_words
        } else {
            self.0.half_words
        }
    }

    /// The run has ended with this word to be written next, and these bits in none.
    pub(crate) fn finish(&self, word: usize, last: u64) -> Result<(), HandOverError> {
        let mut state = self.state();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let words = self.end(&state, word);
        self.hand_over(&state, words)?;
        self.0
            .messages
            .send(Message::Last(last))
            .map_err(|_| HandOverError::ConsumerGone)
    }

    /// The guest's half is full.
    pub(crate) fn full(&self) -> Result<(), HandOverError> {
        self.exchange(&mut self.state())
    }

    /// Hands the guest's half over, and waits for the other one.
    fn exchange(&self, state: &mut State) -> Result<(), HandOverError> {
        self.hand_over(state, self.0.half_words)?;
        let other = 1 - state.current;
        drop(self.0.reading.wait(|halves| !halves[other]));
        if let Some(ring) = &state.ring {
            ring.exchange(state.current, other)?;
        }
        (state.current, state.cut) = (other, 0);
        Ok(())
    }

    fn hand_over(&self, state: &State, words: usize) -> Result<(), HandOverError> {
        let Some(ring) = &state.ring else {
            return Ok(());
        };
        self.0.reading.set(state.current, true);
        let half = FullHalf {
            start: ring.half(state.current).wrapping_add(state.cut),
            words: words - state.cut,
            half: state.current,
            reading: self.0.reading.clone(),
        };
        self.0
            .messages
            .send(Message::Words(half))
            .map_err(|_| HandOverError::ConsumerGone)
    }
}
