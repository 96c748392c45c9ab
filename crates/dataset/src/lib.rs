//! Exports a recorded run as a data set: tables in Parquet files, for SQL and data frames.
//!
//! The input is a recording. The output is a folder with tables about the whole run and, for each
//! window of the run, tables of the window's events in chronological order. `docs/PARQUET.md`
//! describes the tables. Windows do not depend on each other, so several processes can write one
//! data set.
//!
//! ```no_run
//! use afterimage::Session;
//! use afterimage_dataset::DatasetQuery;
//!
//! let session = Session::open("app.aft".as_ref())?;
//! let report = DatasetQuery::default().write(&session, "app".as_ref())?;
//! println!("{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dependences;
mod depends;
mod dynamic;
mod estimate;
mod export;
mod file;
mod folder;
mod ids;
mod plan;
mod report;
mod schema;
mod shadow;
mod views;
mod whole;
mod windows;

pub use export::DatasetQuery;
pub use report::{DatasetReport, TableSize};
pub use schema::{Coding, Column, DYNAMIC, Table, Type, VERSION, WHOLE};
pub use windows::{Selected, Windows};
