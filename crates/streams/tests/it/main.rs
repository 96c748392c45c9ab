//! Streams of many shapes, against plain vectors.

mod hostile;
mod laws;
mod shapes;
mod sizes;
