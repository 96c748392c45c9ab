//! Tests of the trace file from outside.

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
