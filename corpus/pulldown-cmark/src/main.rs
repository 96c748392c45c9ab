//! `pulldown-cmark ROUNDS < FILE.md`: renders Markdown to HTML, ROUNDS times.

use pulldown_cmark::{Options, Parser, html};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: u32 = std::env::args()
        .nth(1)
        .ok_or("usage: pulldown-cmark ROUNDS")?
        .parse()?;
    let text = std::io::read_to_string(std::io::stdin())?;
    let mut page = String::new();
    for _ in 0..rounds {
        page.clear();
        html::push_html(&mut page, Parser::new_ext(&text, Options::all()));
    }
    let sum = guest_summary::fnv1a(page.as_bytes());
    println!(
        "{} bytes of Markdown, {} of HTML, checksum {sum:016x}",
        text.len(),
        page.len()
    );
    Ok(())
}
