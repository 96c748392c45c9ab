//! Integration tests of the trace file.

mod concurrent;
mod damage;
mod fixture;
mod full_disk;
mod fuzz;
mod hostile;
mod place;
mod roundtrip;
mod sample;
mod sources;
mod verify;
