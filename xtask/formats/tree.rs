//! Sorts numbers with a tree, and ends with a failed assertion deep in a recursion.
use std::cell::Cell;

struct Node {
    key: u32,
    seen: u32,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

fn insert(node: &mut Option<Box<Node>>, key: u32) {
    match node {
        None => *node = Some(Box::new(Node { key, seen: 1, left: None, right: None })),
        Some(node) if key == node.key => node.seen += 1,
        Some(node) => insert(if key < node.key { &mut node.left } else { &mut node.right }, key),
    }
}

fn sum(node: &Option<Box<Node>>) -> u32 {
    node.as_ref().map_or(0, |node| node.key * node.seen + sum(&node.left) + sum(&node.right))
}

/// Numbers that look random.
fn next(state: &Cell<u32>) -> u32 {
    let mixed = mix(state.get());
    state.set(mixed);
    mixed >> 26
}

#[inline]
fn mix(x: u32) -> u32 {
    let x = x ^ (x << 13);
    let x = x ^ (x >> 17);
    x ^ (x << 5)
}

#[inline(never)]
fn even(n: u32) -> bool {
    n == 0 || odd(n - 1)
}

#[inline(never)]
fn odd(n: u32) -> bool {
    assert!(n < 60, "too deep");
    n != 0 && even(n - 1)
}

fn main() {
    let state = Cell::new(2463534242);
    let mut tree = None;
    for _ in 0..300 {
        insert(&mut tree, next(&state));
    }
    println!("{}", sum(&tree));
    for n in (0..100).step_by(7) {
        println!("{n} {}", even(n));
    }
}
