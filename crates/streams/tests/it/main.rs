//! Compares streams of many shapes with plain vectors.

mod hostile;
mod laws;
mod shapes;
mod sizes;
