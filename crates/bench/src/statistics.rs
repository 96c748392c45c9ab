//! Represents numbers with their uncertainty.

use serde::Serialize;

/// Several measurements of the same quantity.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Sample {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub runs: usize,
}

impl Sample {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        if n == 0 {
            return Self::default();
        }
        let median = if n % 2 == 1 {
            values[n / 2]
        } else {
            (values[n / 2 - 1] + values[n / 2]) / 2.0
        };
        Self {
            median,
            min: values[0],
            max: values[n - 1],
            runs: n,
        }
    }

    /// Computes the ratios of paired measurements. Both measurements of a pair were taken in the
    /// same round.
    pub(crate) fn ratios(values: &[f64], base: &[f64]) -> Self {
        Self::of(values.iter().zip(base).map(|(v, b)| v / b).collect())
    }
}

/// Returns the geometric mean.
pub(crate) fn geometric(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(s, n), v| (s + v.ln(), n + 1));
    if count == 0 {
        f64::NAN
    } else {
        (sum / count as f64).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, geometric};

    #[test]
    fn median_and_mean() {
        let s = Sample::of(vec![3.0, 1.0, 2.0, 10.0]);
        assert_eq!((s.median, s.min, s.max, s.runs), (2.5, 1.0, 10.0, 4));
        assert!((geometric([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-12);
        assert_eq!(Sample::ratios(&[2.0, 6.0], &[1.0, 2.0]).median, 2.5);
    }
}
