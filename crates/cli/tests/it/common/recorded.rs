//! Opens a recording with its path.

use std::ops::Deref;

use afterimage_replay::Recording;
use afterimage_replay::steps::{FileCheckpoints, Run};
use afterimage_replay::whole_path::FileSegments;

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
