//! The first difference between two runs of a program:
//! `cargo run --example first_difference -- good.aft bad.aft`

use afterimage::Session;
use afterimage::analyses::diff::{Side, first_difference};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = std::env::args_os().skip(1);
    let mut open = || Session::open(files.next().unwrap_or_default().as_ref());
    let sessions = [open()?, open()?];
    for session in &sessions {
        session.ensure_whole_path()?;
    }
    let logs = sessions.each_ref().map(|session| || session.log());
    let side = |i: usize| -> Result<Side<'_, _>, afterimage::RecordingError> {
        Ok(Side {
            run: sessions[i].run_from_checkpoints()?,
            log: &logs[i],
        })
    };
    match first_difference(side(0)?, side(1)?, &[])? {
        None => println!("the runs are the same"),
        Some(found) => println!("{found:#?}"),
    }
    Ok(())
}
