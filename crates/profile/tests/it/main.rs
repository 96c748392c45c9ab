//! Tests of profiles from outside.

mod locations;
mod oracle;
mod report;
