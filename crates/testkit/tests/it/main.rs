//! Tests of the testkit from outside.

mod environment;
