//! Epochs of a whole execution trace in memory instead of a file.

use std::convert::Infallible;
use std::sync::Arc;

use afterimage_wet::{Epoch, Epochs, HostCalls, LeftOut};

/// The epochs of one or several consecutive traces.
#[derive(Default)]
pub struct InEpochs {
    /// The number of blocks executed before each epoch.
    pub before: Vec<u64>,
    /// The number of blocks executed until the end of the last epoch.
    pub end: u64,
    /// The epochs.
    pub epochs: Vec<Arc<Epoch>>,
    /// The positions of host calls in the log.
    pub host: HostCalls,
    /// The functions that were left out.
    pub left_out: LeftOut,
}

impl Epochs for InEpochs {
    type Error = Infallible;

    fn before(&self) -> &[u64] {
        &self.before
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn left_out(&self, _: u64) -> Option<&LeftOut> {
        (!self.left_out.is_nothing()).then_some(&self.left_out)
    }

    fn load(&self, position: usize) -> Result<Arc<Epoch>, Infallible> {
        Ok(Arc::clone(&self.epochs[position]))
    }

    fn has(&self, _: usize) -> bool {
        true
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn host(&self) -> Result<&HostCalls, Infallible> {
        Ok(&self.host)
    }
}
