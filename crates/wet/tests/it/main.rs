//! Integration tests of whole execution traces.

mod hostile;
