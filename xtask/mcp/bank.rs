//! Accounts that are charged, with a loop, a struct and a function that is never called.

struct Account {
    balance: i32,
    fees: i32,
}

#[inline(never)]
fn charge(account: &mut Account, amount: i32, times: i32) -> i32 {
    let mut fee = 0;
    for time in 0..times {
        if amount > 10 {
            fee += time;
        } else {
            fee += 1;
        }
    }
    account.fees += fee;
    account.balance -= amount + fee;
    account.balance
}

#[inline(never)]
fn refund(account: &mut Account, amount: i32) {
    account.balance += amount;
}

fn main() {
    let mut account = Account {
        balance: 100,
        fees: 0,
    };
    for round in 1..6 {
        let left = charge(&mut account, round * 4, round + 1);
        println!("round {round}: {left} left");
    }
    if account.balance > 1000 {
        refund(&mut account, 1);
    }
    println!("fees: {}", account.fees);
}
