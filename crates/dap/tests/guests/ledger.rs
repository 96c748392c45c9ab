use std::cell::Cell;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
struct Entry {
    amount: i64,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Paid,
    Refunded { after: u32 },
}

struct Account {
    name: String,
    balance: i64,
    entries: Vec<Entry>,
}

static ROUNDS: Cells = Cells(Cell::new(0));
struct Cells(Cell<u32>);
unsafe impl Sync for Cells {}

fn fee(amount: i64) -> i64 {
    if amount < 10 {
        return 1;
    }
    1 + fee(amount / 10)
}

#[inline(always)]
fn charged(balance: i64, amount: i64) -> i64 {
    let fee = fee(amount);
    balance - amount - fee
}

fn pay(account: &mut Account, amount: i64, round: u32) {
    account.balance = charged(account.balance, amount);
    let kind = match round % 3 {
        0 => Kind::Refunded { after: round },
        _ => Kind::Paid,
    };
    account.entries.push(Entry { amount, kind });
    if account.entries.len() > 8 {
        account.entries.clear();
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let rounds: u32 = args.next().map_or(20, |text| text.parse().unwrap());
    let mut all = BTreeMap::new();
    for name in ["ada", "bob", "eve"] {
        let account = Account {
            name: name.to_owned(),
            balance: 1000,
            entries: Vec::new(),
        };
        all.insert(name, account);
    }
    let mut seed = 7u64;
    for round in 0..rounds {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let amount = (seed >> 33) as i64 % 500;
        let name = ["ada", "bob", "eve"][(seed >> 40) as usize % 3];
        let account = all.get_mut(name).unwrap();
        pay(account, amount, round);
        ROUNDS.0.set(round);
    }
    let total: i64 = all.values().map(|account| account.balance).sum();
    println!("{total} after {}", ROUNDS.0.get());
    for account in all.values() {
        println!("{} {}", account.name, account.balance);
    }
    if args.next().is_some() {
        let none: Option<u32> = args.next().map(|text| text.parse().unwrap());
        unsafe { std::ptr::write_volatile(0xffff_0000 as *mut u32, none.unwrap_or(1)) };
    }
}
