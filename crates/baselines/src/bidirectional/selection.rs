//! Selects the method for a stream (the paper's section 4.4).

use super::predictor::Method;
use super::walk::Bidirectional;

/// The candidate methods, each kind in three sizes.
pub const METHODS: [Method; 12] = [
    Method::Fcm { context: 1 },
    Method::Fcm { context: 2 },
    Method::Fcm { context: 3 },
    Method::DifferentialFcm { context: 1 },
    Method::DifferentialFcm { context: 2 },
    Method::DifferentialFcm { context: 3 },
    Method::LastN { n: 2 },
    Method::LastN { n: 4 },
    Method::LastN { n: 8 },
    Method::LastNStride { n: 2 },
    Method::LastNStride { n: 4 },
    Method::LastNStride { n: 8 },
];

/// The number of values on which methods are compared.
pub const TRIAL: usize = 10_000;

/// Compresses a stream with the method under which its first [`TRIAL`] values are smallest.
pub fn select(values: &[u64]) -> (Method, Bidirectional) {
    let trial = &values[..values.len().min(TRIAL)];
    let best = METHODS
        .into_iter()
        .min_by_key(|&method| Bidirectional::new(trial, method).allocated_bits());
    let method = best.unwrap_or(METHODS[0]);
    (method, Bidirectional::new(values, method))
}
