//! A till: each line of the input is an item and a quantity. docs/PARQUET.md asks about a run.

use std::io::Read;

/// A cache line of 32 bytes contains eight prices.
const ITEMS: usize = 1024;

struct Till {
    prices: Vec<u32>,
    sold: [u32; 8],
    last: u32,
    tax: u32,
}

impl Till {
    #[inline(never)]
    fn open() -> Self {
        let prices = (0..ITEMS as u32).map(|item| 100 + item * 7 % 50);
        Self {
            prices: prices.collect(),
            sold: [0; 8],
            last: 0,
            tax: 20,
        }
    }

    #[inline(never)]
    fn price(&self, item: u32) -> u32 {
        let price = self.prices[item as usize % ITEMS];
        price + price * self.tax / 100
    }

    #[inline(never)]
    fn note(&mut self, item: u32, quantity: u32) {
        self.sold[item as usize % 8] += quantity;
        self.last = quantity;
    }
}

/// Returns one percent for each doubling of the quantity, computed in a slow way.
#[inline(never)]
fn discount(quantity: u32) -> u32 {
    let mut percent = 0;
    while 1 << percent < quantity {
        percent += 1;
    }
    percent
}

#[inline(never)]
fn number(text: &str) -> u32 {
    text.bytes().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'))
}

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let mut till = Till::open();
    let mut total = 0;
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(item), Some(quantity)) = (words.next(), words.next()) else {
            continue;
        };
        let (item, quantity) = (number(item), number(quantity));
        let amount = till.price(item) * quantity;
        total += amount - amount * discount(quantity) / 100;
        till.note(item, quantity);
    }
    println!("{total} for {} of item 0", till.sold[0]);
}
