//! `minijinja TEMPLATE TIMES TEXT`: renders a template about the lines of a text, several times.

use minijinja::{Environment, Value, context};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let [Some(template), Some(times), Some(text)] = [(); 3].map(|()| arguments.next()) else {
        return Err("usage: minijinja TEMPLATE TIMES TEXT".into());
    };
    let (template, times) = (std::fs::read_to_string(template)?, times.parse::<u32>()?);
    let text = std::fs::read_to_string(text)?;
    let rows = text.lines().enumerate().map(|(number, line)| {
        let words = line.split_whitespace().map(Value::from);
        context! { number => number, words => words.collect::<Vec<_>>(), text => line }
    });
    let rows = Value::from(rows.collect::<Vec<_>>());
    let mut environment = Environment::new();
    environment.add_template("page.html", &template)?;
    let page = environment.get_template("page.html")?;
    for time in 0..times {
        let rendered = page.render(context! { rows => rows.clone(), time => time })?;
        println!(
            "{} bytes, checksum {:016x}",
            rendered.len(),
            guest_summary::fnv1a(rendered.as_bytes())
        );
    }
    Ok(())
}
