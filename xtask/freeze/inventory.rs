//! Ends in a panic: an index that is one too large.

struct Item {
    name: &'static str,
    count: u32,
    price: Option<u32>,
}

struct Inventory {
    items: Vec<Item>,
}

impl Inventory {
    fn value(&self, from: usize, to: usize) -> u32 {
        let mut sum = 0;
        for i in from..to {
            let item = &self.items[i];
            sum += item.count * item.price.unwrap_or(1);
        }
        sum
    }
}

fn main() {
    let items = vec![
        Item { name: "nails", count: 100, price: Some(2) },
        Item { name: "hammer", count: 3, price: Some(900) },
        Item { name: "string", count: 7, price: None },
    ];
    let inventory = Inventory { items };
    for item in &inventory.items {
        println!("{} {}", item.name, item.count);
    }
    println!("{}", inventory.value(0, 2));
    println!("{}", inventory.value(1, 4));
}
