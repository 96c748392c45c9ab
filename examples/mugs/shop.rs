//! The till of a shop that sells mugs. Each line of standard input is one order:
//! a customer, how many mugs, and for some customers a discount in percent.

use std::io;

const PRICE: u32 = 12;
const SHIPPING: u32 = 5;

#[derive(Default)]
struct Order {
    customer: String,
    mugs: u32,
    percent: u32,
}

impl Order {
    /// Reads an order from a line, over the one before.
    fn read(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        self.customer = words.next().unwrap_or("nobody").to_string();
        self.mugs = number(words.next().unwrap_or("0"));
        if let Some(word) = words.next() {
            self.percent = number(word);
        }
    }

    fn discount(&self) -> u32 {
        self.mugs * PRICE * self.percent / 100
    }

    fn shipping(&self) -> u32 {
        if self.percent == 0 && self.mugs >= 10 {
            return 0;
        }
        SHIPPING
    }
}

fn number(word: &str) -> u32 {
    word.parse().unwrap_or(0)
}

fn main() {
    let mut order = Order::default();
    for line in io::stdin().lines().map_while(Result::ok) {
        order.read(&line);
        let discount = order.discount();
        let pays = order.mugs * PRICE - discount + order.shipping();
        println!("{:6} discount {discount:3}  pays {pays:4}", order.customer);
    }
}
