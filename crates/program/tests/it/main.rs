//! Integration tests of the program.

mod at_once;
mod cfg;
mod cfg_oracle;
mod guest;
mod guests;
mod hostile;
mod machine;
mod names;
mod oracle;
mod ssa;
