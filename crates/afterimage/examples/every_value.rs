//! Every value that a variable had at a line:
//! `cargo run --example every_value -- app.aft app.c:42 total`

use afterimage::present::values::{VariableRows, VariableValue};
use afterimage::{Session, VariableQuery};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Vec::from_iter(std::env::args().skip(1));
    let [file, place, name] = arguments.as_slice() else {
        return Err("name a recording, a place and a variable".into());
    };
    let mut query = VariableQuery::new(name, place);
    query.values.limit = u64::MAX;
    let report = Session::open(file.as_ref())?.variable_values(&query)?;
    if let VariableRows::Instances { instances, .. } = report.rows {
        for one in instances {
            match one.value {
                VariableValue::Known { value, .. } => println!("{:>12}  {value}", one.t),
                VariableValue::Unavailable { unavailable } => {
                    println!("{:>12}  ({unavailable})", one.t);
                }
            }
        }
    }
    Ok(())
}
