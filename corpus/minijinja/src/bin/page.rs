//! `page TEMPLATE TEXT`: renders a template about the lines of a text and prints it.

use minijinja::{Environment, Value, context};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let [Some(template), Some(text)] = [(); 2].map(|()| arguments.next()) else {
        return Err("usage: page TEMPLATE TEXT".into());
    };
    let template = std::fs::read_to_string(template)?;
    let text = std::fs::read_to_string(text)?;
    let rows = text.lines().enumerate().map(|(number, line)| {
        let words = line.split_whitespace().map(Value::from);
        context! { number => number, words => words.collect::<Vec<_>>(), text => line }
    });
    let rows = Value::from(rows.collect::<Vec<_>>());
    let mut environment = Environment::new();
    environment.add_template("page.html", &template)?;
    let page = environment.get_template("page.html")?;
    print!("{}", page.render(context! { rows => rows, time => 1 })?);
    Ok(())
}
