//! Predictors and caches against slow, obvious ones, and what holds of all of them.

mod branches;
mod caches;
mod histories;
mod hostile;
mod naive_tage;
mod random;
