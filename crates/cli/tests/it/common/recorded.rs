//! Opens a recording with its path.

use std::ops::Deref;

use afterimage_replay::steps::{FileCheckpoints, Run};
use afterimage_replay::whole_path::FileSegments;
use afterimage_replay::{Recording, RecordingError};

use crate::common::Sandbox;

/// A recording that has its path.
pub struct Recorded(Recording);

impl Deref for Recorded {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        &self.0
    }
}

impl Recorded {
    /// Opens `run.aft` in a sandbox.
    pub fn open(sandbox: &Sandbox) -> Self {
        let recording = Recording::open(&sandbox.path("run.aft")).unwrap();
        recording.path().expect("a path");
        Self(recording)
    }

    /// Opens `run.aft` in a sandbox, if it has values and between one and `most` blocks.
    pub fn short(sandbox: &Sandbox, most: u64) -> Option<Self> {
        let recording = Recording::open(&sandbox.path("run.aft")).unwrap();
        let length = match recording.path() {
            Err(RecordingError::NoPath) => return None,
            path => path.unwrap().length(),
        };
        match recording.epochs() {
            Err(RecordingError::NoValues) => return None,
            epochs => epochs.unwrap(),
        };
        (1..=most).contains(&length).then_some(Self(recording))
    }

    /// Returns its run, to be followed from its beginning or from these checkpoints.
    pub fn run_from<'a>(
        &'a self,
        checkpoints: Option<&'a FileCheckpoints>,
    ) -> Run<'a, FileSegments> {
        Run {
            checkpoints,
            snapshots: None,
            ..self.run().unwrap()
        }
    }
}
