//! Implements the consumer, which regenerates the paths on another thread while the guest
//! continues.

use std::sync::mpsc::Receiver;

use afterimage_paths::{PathPlan, Regenerator, Sink};
use afterimage_program::Program;

use super::Message;
use crate::RecordError;

/// The state of the consumer after it has read all words, before it determines the end of the path.
pub(crate) struct Consumed<'a, S> {
    pub regenerator: Regenerator<'a>,
    pub sink: S,
    /// The number of bits that the run wrote.
    pub bits: u64,
}

/// Regenerates the path until the producer is done.
pub(crate) fn consume<'a, S: Sink>(
    program: &'a Program,
    plan: &'a PathPlan,
    messages: Receiver<Message>,
    mut sink: S,
) -> Result<Consumed<'a, S>, RecordError> {
    let mut regenerator = Regenerator::new(program, plan);
    let mut bits = 0;
    for message in messages {
        match message {
            Message::HostCall(function) => regenerator.host_call(function),
            Message::Words(half) => {
                bits += 64 * half.words().len() as u64;
                regenerator.feed(half.words(), &mut sink)?;
            }
            Message::Cut(words, _) => {
                bits += 64 * words.len() as u64;
                regenerator.feed(&words, &mut sink)?;
            }
            Message::Written(_) => {}
            Message::Last(word) => {
                bits += 64 - u64::from(word.leading_zeros());
                regenerator.feed(&[word], &mut sink)?;
            }
        }
    }
    Ok(Consumed {
        regenerator,
        sink,
        bits,
    })
}
