//! A bank whose fees are wrong for large amounts. Its names and output contain markup.

struct Account {
    owner: &'static str,
    balance: i64,
    transfers: u32,
}

const NAMES: [&str; 4] = ["Ada", "Grace", "<img src=x onerror=alert(1)>", "Tony\u{202e}ynoT"];

#[inline(never)]
fn fee_of(amount: i64) -> i64 {
    if amount < 100 {
        return 1;
    }
    if amount > 5000 {
        return amount / 200 - 30;
    }
    amount / 100
}

#[inline(never)]
fn transfer(accounts: &mut [Account], from: usize, to: usize, amount: i64) -> bool {
    let fee = fee_of(amount);
    if accounts[from].balance < amount + fee {
        return false;
    }
    if amount < 0 {
        println!("never");
    }
    accounts[from].balance -= amount + fee;
    accounts[to].balance += amount;
    accounts[from].transfers += 1;
    true
}

fn main() {
    let mut accounts: Vec<Account> = NAMES
        .iter()
        .map(|owner| Account { owner, balance: 9000, transfers: 0 })
        .collect();
    let mut seed = 42u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        seed >> 16
    };
    let mut done = 0;
    for _ in 0..400 {
        let (from, to) = (next() as usize % 4, next() as usize % 4);
        let amount = i64::from(next() % 8000);
        if transfer(&mut accounts, from, to, amount) {
            done += 1;
        }
    }
    println!("<script>document.title = 'no'</script> {done} done");
    for Account { owner, balance, transfers } in &accounts {
        println!("{owner}: {balance} after {transfers}");
    }
    let total: i64 = accounts.iter().map(|account| account.balance).sum();
    println!("total: {total}");
    assert!(total > 33_000, "money was lost: {total}");
}
