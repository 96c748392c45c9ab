//! Compares predictors and caches with slow, obvious versions, and checks properties of all of
//! them.

mod branches;
mod caches;
mod histories;
mod hostile;
mod naive_tage;
mod random;
