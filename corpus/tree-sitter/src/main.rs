//! `tree-sitter FILE.c`: parses C and counts the nodes of the tree, by kind.

use std::collections::BTreeMap;
use tree_sitter::Parser;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: tree-sitter FILE.c")?;
    let text = std::fs::read(path)?;
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_c::LANGUAGE.into())?;
    let tree = parser.parse(&text, None).ok_or("no tree")?;
    let mut kinds = BTreeMap::<&str, u32>::new();
    let mut cursor = tree.walk();
    let mut down = true;
    loop {
        if down {
            *kinds.entry(cursor.node().kind()).or_default() += 1;
        }
        if down && cursor.goto_first_child() {
            continue;
        }
        down = cursor.goto_next_sibling();
        if !down && !cursor.goto_parent() {
            break;
        }
    }
    let shape = tree.root_node().to_sexp();
    println!(
        "{} bytes, checksum of the tree {:016x}",
        text.len(),
        guest_summary::fnv1a(shape.as_bytes())
    );
    for (kind, count) in kinds {
        println!("{count:8} {kind}");
    }
    Ok(())
}
