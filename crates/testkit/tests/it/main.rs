//! Integration tests of the testkit.

mod environment;
