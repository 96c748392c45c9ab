//! Tests of the machine from outside.

mod before;
mod compile;
mod forms;
mod hostile;
