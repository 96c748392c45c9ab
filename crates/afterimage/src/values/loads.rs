//! Reports the values that a program's loads read.

use afterimage_present::{
    load_values_json, load_values_text, loaded_binary, loaded_json, loaded_text,
};
use afterimage_replay::steps::{LoadedStretches, load_values};
use anyhow::Result;

use crate::Session;
use crate::named::with_names;
use crate::rows::{Form, MORE, Rows, next_of};
use crate::steps::follow;

/// Writes a summary of the values that each load read. The path must exist.
///
/// # Errors
/// Returns an error if the run cannot be followed, or the rows cannot be written.
pub fn write_load_values(session: &Session, to: &Rows<'_>) -> Result<()> {
    let loads = follow(session, |run, log| Ok(load_values(run, log)?))?;
    with_names(session, |program| {
        let scene = program.own_scene(to.style);
        to.write(MORE, |out| match to.form {
            Form::Text => load_values_text(out, &scene, &loads, to.limit),
            Form::Json | Form::Bin => load_values_json(out, &scene, &loads).map(|()| false),
        })
    })
}

/// Writes every value that loads read. The path must exist.
///
/// # Errors
/// Returns the same errors as [`write_load_values`].
pub fn write_loaded(session: &Session, to: &Rows<'_>) -> Result<()> {
    with_names(session, |program| {
        let scene = program.scene(to.style);
        follow(session, |run, log| {
            let mut stretches = LoadedStretches::new(run, log)?;
            let mut next = || next_of(stretches.next());
            to.write(MORE, |out| match to.form {
                Form::Text => loaded_text(out, &scene, &mut next, to.limit),
                Form::Json => loaded_json(out, &scene, &mut next, to.limit).map(|()| false),
                Form::Bin => loaded_binary(out, &scene, &mut next, to.limit).map(|()| false),
            })
        })
    })
}
