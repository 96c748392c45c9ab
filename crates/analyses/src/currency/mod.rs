//! Decides currency, that is, whether a variable of an optimised run has the expected value where a
//! debugger stops.
//!
//! The programmer expects the value that the unoptimised program has (Hennessy 1982; Adl-Tabatabai
//! and Gross 1996). Here that program also ran, on the same input, so nothing has to be predicted.
//! The analysis finds the optimised run's stop in the other run and reads both values. It also
//! compares the executions of each assignment to the variable, and so finds which assignments were
//! moved or removed. Dynamic currency determination (Dhamdhere and Sankaranarayanan 1998) is a
//! similar method that uses possible executions instead of actual executions. Agrawal and Zhang
//! (2001, section 4.3) perform it on timestamped paths.
//!
//! [`moments`] finds which arrivals at a line correspond. It walks both runs in step, from one
//! common call to the next, and counts the parts of the line in between ([`align`]). [`Alignment`]
//! checks the result against the values that the parts produced. [`compare`] compares the values of
//! the variable.
//!
//! ```no_run
//! use std::error::Error;
//!
//! use afterimage_program::{Names, Program, SourceMap};
//! use afterimage_profile::Resolver;
//! use afterimage_analyses::currency::{Version, moments};
//! use afterimage_profile::location::Place;
//! use afterimage_replay::whole_path::{FileSegments, Positions, recorded_path};
//! use afterimage_trace::TraceFile;
//!
//! /// A line of a recorded run, for as long as it is looked at.
//! fn with<R>(
//!     recording: &str,
//!     line: &str,
//!     look: impl FnOnce(&Version<'_, '_, FileSegments>) -> Result<R, Box<dyn Error>>,
//! ) -> Result<R, Box<dyn Error>> {
//!     let file = TraceFile::open(recording.as_ref())?;
//!     let module = file.module()?;
//!     let program = Program::parse(&module)?;
//!     let path = recorded_path(&file, &program)?.ok_or("the recording has no path yet")?;
//!     let source = SourceMap::build(&module);
//!     let names = Names::build(&program, &module, &source);
//!     let place = Resolver::new(&program, &module, &names, &source).location(line)?.place;
//!     let Place::Line(line, operators) = place else {
//!         return Err("that is no line".into());
//!     };
//!     let mut functions: Vec<_> = operators.iter().map(|(function, _)| *function).collect();
//!     functions.dedup();
//!     let positions = Positions::new(&path, &program, &module, &names, &source, &[]);
//!     let arrivals = positions.arrivals(line, functions.iter().copied())?;
//!     look(&Version {
//!         path: &path,
//!         program: &program,
//!         module: &module,
//!         names: &names,
//!         source: &source,
//!         line,
//!         functions: &functions,
//!         arrivals: &arrivals,
//!         matched: None,
//!     })
//! }
//!
//! // Which stop of the optimised run at a line is which one of the unoptimised run?
//! with("unoptimised.aft", "sum.c:17", |a| {
//!     with("optimised.aft", "sum.c:17", |b| {
//!         let found = moments(a, b, 1_000_000, &|_| {})?;
//!         for &(stop, part) in &found.b.of_stops {
//!             let Some(counterpart) = found.pairs[part as usize] else { continue };
//!             let (own, other) = (found.b.stops[stop as usize], found.a.parts[counterpart as usize]);
//!             println!("block {} is block {} of the unoptimised run", own.time, other.time);
//!         }
//!         Ok(())
//!     })
//! })?;
//! # Ok::<(), Box<dyn Error>>(())
//! ```

mod align;
mod anchors;
mod confirm;
mod content;
mod error;
mod moments;
mod parts;
mod trail;
mod walker;

pub use align::align;
pub use anchors::Anchors;
pub use confirm::{Alignment, OperatorValue, OperatorValues, Refusal, operator_values};
pub use content::{Comparison, Symbols, compare};
pub use error::CurrencyError;
pub use moments::{Moments, Version, moments};
pub use parts::MatchedStatements;
pub use trail::{Part, Stop, Trail, Unit};
