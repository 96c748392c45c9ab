//! Tests of whole execution traces from outside.

mod hostile;
