//! Integration tests of the machine.

mod before;
mod compile;
mod forms;
mod hostile;
