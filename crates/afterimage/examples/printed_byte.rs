//! Finds where a printed byte came from:
//! `cargo run --example printed_byte -- app.aft 12`, or
//! `cargo run --example printed_byte -- app.aft 'total: 41'`

use afterimage::present::WhyEntry;
use afterimage::why::Byte;
use afterimage::{Session, WhyAbout, WhyQuery};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a recording")?;
    let byte: Byte = arguments.next().unwrap_or("0".to_owned()).parse()?;
    let session = Session::open(file.as_ref())?;
    let report = session.why(&WhyQuery::new(WhyAbout::Output(byte)))?;
    for entry in &report.entries {
        match entry {
            WhyEntry::Made(made) if !made.place.library => {
                println!("{} at {}", made.value, made.place.described());
            }
            WhyEntry::End(end) => println!("from {}", end.what),
            _ => {}
        }
    }
    Ok(())
}
