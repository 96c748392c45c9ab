//! Passes path words from the guest to the consumer through a ring, which consists of two halves of
//! the probes' memory.
//!
//! The guest writes one half while the consumer reads the other in place. Each half belongs to
//! exactly one of them at a time. A full half goes to the consumer as a [`FullHalf`] and returns to
//! the guest when the consumer drops it. If the guest is faster than the consumer, the guest waits.
//! In a guarded ring, the guest never tests whether its half is full. Instead, the beginning of the
//! other half is read-only. The first store there faults, and the fault handler exchanges the
//! halves ([`Producer::fault`]). With an unguarded ring, the guest calls the host when its half is
//! full ([`Producer::full`]).

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afterimage_ids::FuncId;

use super::guard::Ring;
use crate::snapshots::{Captured, Lines};

/// The maximum number of cuts that the consumer has not read yet. At a further cut, the guest
/// waits.
const MOST_CUTS: usize = 256;
/// The same limit for a cut with a snapshot. It is lower, because the copies in snapshots take
/// memory.
const MOST_SNAPSHOTS: usize = 8;
/// The interval at which the waiting guest checks whether it can continue.
const PAUSE: Duration = Duration::from_millis(1);

/// A message to the consumer. Messages are in order of occurrence.
pub(crate) enum Message {
    /// The host called a function.
    HostCall(FuncId),
    /// Words were written.
    Words(FullHalf),
    /// The last word, which was not full.
    Last(u64),
    /// A cut of the path, with the words since the last message and the state of the engine. The
    /// last word may be incomplete.
    Cut(Vec<u64>, Box<Captured>),
    /// The end of the run, with the lines of memory written since the last cut.
    Written(Vec<Lines>),
}

/// The halves that are being read.
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

// SAFETY: nobody writes to the half until it is dropped, and the memory outlives it; see
// `Producer::place`.
#[allow(unsafe_code)]
unsafe impl Send for FullHalf {}

impl FullHalf {
    /// Returns the words, in the order of writing.
    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: the range lies in the guest's memory, which exists until this half is dropped. It
        // is aligned, because the ring begins at a page boundary, and nobody writes to it
        // meanwhile.
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

/// The guest's side of the ring. Clones refer to the same guest.
#[derive(Clone)]
pub(crate) struct Producer(Arc<Shared>);

struct Shared {
    messages: Sender<Message>,
    reading: Arc<Reading>,
    /// The number of words in a half.
    half_words: usize,
    /// Counts the captured states that the consumer has not read, because each of them holds a
    /// clone.
    waiting: Arc<()>,
    state: Mutex<State>,
}

/// The mutable state of the guest's side. Only the guest's thread uses it, in the guest or in the
/// host.
#[derive(Default)]
struct State {
    /// The ring, once its memory exists.
    ring: Option<Ring>,
    /// The half to which the guest writes.
    current: usize,
    /// The number of words of the current half that were already handed over.
    cut: usize,
    /// The reason why the halves could not be exchanged.
    failed: Option<HandOverError>,
}

/// Waits on drop until no half is being read. It must be dropped before the memory.
pub(crate) struct Quiet(Producer);

impl Drop for Quiet {
    fn drop(&mut self) {
        drop(self.0.0.reading.wait(|halves| *halves == [false, false]));
        self.0.state().ring = None;
    }
}

/// The reason why the guest cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The consumer failed. Its own error says why.
    #[error("the recorder of the path has stopped")]
    ConsumerGone,
    /// The system does not allow us to protect memory.
    #[error("the memory between the program and the recorder of its path cannot be protected: {0}")]
    Protect(#[from] std::io::Error),
}

impl Producer {
    /// Creates a producer and the receiver of its messages. [`Producer::place`] later sets the
    /// ring.
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

    /// Sets the ring. Until the returned guard is dropped, its memory must not be freed, moved, or
    /// accessed by anything but the guest.
    pub(crate) fn place(&self, ring: Ring) -> Result<Quiet, HandOverError> {
        ring.exchange(1, 0)?;
        self.state().ring = Some(ring);
        Ok(Quiet(self.clone()))
    }

    /// Reports a call by the host.
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

    /// Handles a fault of a store to this address. If the guest's half is full, exchanges the
    /// halves, so that the guest can retry the store. Otherwise, or if the exchange fails, returns
    /// `false`.
    ///
    /// A signal handler calls this on the guest's thread. This function allocates and takes locks,
    /// which a handler must not do if it interrupts code that does the same. But if the address is
    /// in the ring, the handler has interrupted guest code, which does neither. For other
    /// addresses, the handler never blocks, because it only tries a lock that no other thread
    /// takes.
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
            // The guest traps, and the error is reported at its end.
            Err(error) => {
                state.failed = Some(error);
                false
            }
        }
    }

    /// Writes a word for the host. If the word is the first of the other half, exchanges the halves
    /// first.
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

    /// Hands over everything written so far, and the captured state. `word` is the next word to
    /// write, and `pending` contains the bits not yet in a word.
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
        let most = if captured.is_snapshot() {
            MOST_SNAPSHOTS
        } else {
            MOST_CUTS
        };
        while Arc::strong_count(&self.0.waiting) > most {
            std::thread::sleep(PAUSE);
        }
        captured.waits(&self.0.waiting);
        // `pending` is 1 if it contains no bits.
        if pending != 1 {
            words.push(pending);
        }
        self.0
            .messages
            .send(Message::Cut(words, captured))
            .map_err(|_| HandOverError::ConsumerGone)
    }

    /// Returns the number of words written in the guest's half if `word` is next.
    fn end(&self, state: &State, word: usize) -> usize {
        if word / self.0.half_words == state.current {
            word % self.0.half_words
        } else {
            self.0.half_words
        }
    }

    /// Ends the run. `word` is the next word to write, and `last` contains the bits not yet in a
    /// word.
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

    /// Exchanges the halves when the guest reports that its half is full.
    pub(crate) fn full(&self) -> Result<(), HandOverError> {
        self.exchange(&mut self.state())
    }

    /// Hands over the guest's half and waits for the other half.
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
