//! `markdown < FILE.md`: renders Markdown to HTML and prints it.

use pulldown_cmark::{Options, Parser, html};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::io::read_to_string(std::io::stdin())?;
    let mut page = String::new();
    html::push_html(&mut page, Parser::new_ext(&text, Options::all()));
    print!("{page}");
    Ok(())
}
