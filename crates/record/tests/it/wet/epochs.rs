//! Builds whole execution traces in memory.

#[path = "../../../../../fuzz/bodies/values/epochs.rs"]
mod given;

use std::convert::Infallible;
use std::ops::RangeInclusive;

use afterimage_machine::stopped_before;
use afterimage_wet::{Epoch, HostCalls, LeftOut, Run};

pub use given::InEpochs;

use crate::harness::Recording;
use crate::stored::Stored;

impl InEpochs {
    /// Builds windows, with epochs of about `epoch` numbers.
    pub fn build(
        recording: &Recording,
        stored: &Stored,
        windows: &[RangeInclusive<u64>],
        epoch: usize,
    ) -> Self {
        Self::without(recording, stored, windows, epoch, LeftOut::NOTHING)
    }

    /// Builds windows that leave out some functions.
    pub fn without(
        recording: &Recording,
        stored: &Stored,
        windows: &[RangeInclusive<u64>],
        epoch: usize,
        left_out: LeftOut,
    ) -> Self {
        let log = || recording.file.log().expect("a log");
        let mut all = Self {
            before: Vec::new(),
            end: 0,
            epochs: Vec::new(),
            host: HostCalls::read(log()).expect("a sound log"),
            left_out,
        };
        for window in windows {
            let run = Run {
                program: &recording.program,
                bytes: &recording.bytes,
                path: &stored.path,
                continuations: &stored.directory.continuations,
                window: window.clone(),
                left_out: &all.left_out,
                stopped: stopped_before(
                    &recording.program,
                    &recording.bytes,
                    &recording.recorded.end,
                ),
                epoch,
            };
            let (before, epochs) = (&mut all.before, &mut all.epochs);
            let built = run.build::<Infallible>(
                log(),
                |time, bytes| {
                    before.push(time);
                    epochs.push(Epoch::open(bytes).expect("a sound epoch").into());
                    Ok(())
                },
                |_| (),
            );
            let built = built.unwrap_or_else(|error| panic!("{error}, {}", recording.ending()));
            all.end = built.length;
        }
        all
    }

    /// Returns the number of epochs.
    pub fn count(&self) -> usize {
        self.epochs.len()
    }
}
