//! `syn FILE.rs…`: parses Rust source into syntax trees and counts their nodes.

use syn::visit::{self, Visit};

#[derive(Default, Debug)]
struct Counts {
    items: u64,
    blocks: u64,
    expressions: u64,
    patterns: u64,
    types: u64,
    names: u64,
}

impl<'ast> Visit<'ast> for Counts {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.items += 1;
        visit::visit_item(self, item);
    }
    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.blocks += 1;
        visit::visit_block(self, block);
    }
    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        self.expressions += 1;
        visit::visit_expr(self, expression);
    }
    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        self.patterns += 1;
        visit::visit_pat(self, pattern);
    }
    fn visit_type(&mut self, ty: &'ast syn::Type) {
        self.types += 1;
        visit::visit_type(self, ty);
    }
    fn visit_ident(&mut self, _: &'ast syn::Ident) {
        self.names += 1;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let mut counts = Counts::default();
        counts.visit_file(&syn::parse_file(&text)?);
        println!("{path}: {counts:?}");
    }
    Ok(())
}
