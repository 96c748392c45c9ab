//! Integration tests of variables.

mod common;
mod compilers;
mod escapes;
mod guests;
mod hostile;
mod locations;
mod scopes;
mod values;
