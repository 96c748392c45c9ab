//! Tests of the trace file from outside.

mod damage;
mod fixture;
mod full_disk;
mod hostile;
mod place;
mod roundtrip;
mod sample;
mod verify;
