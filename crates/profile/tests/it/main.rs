//! Integration tests of profiles.

mod locations;
mod oracle;
mod report;
