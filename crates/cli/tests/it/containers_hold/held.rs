//! The less usual containers of Rust's standard library, printed as `state` shows them, each time
//! before it calls `stop`.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BinaryHeap, LinkedList};
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::num::{NonZeroU32, Wrapping};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

trait Animal {
    fn legs(&self) -> i32;
}

struct Dog {
    age: i32,
}

struct Bird(u8);

impl Animal for Dog {
    fn legs(&self) -> i32 {
        self.age + 4
    }
}

impl Animal for Bird {
    fn legs(&self) -> i32 {
        i32::from(self.0)
    }
}

fn all<T: Debug>(shown: impl Iterator<Item = T>, count: usize) -> String {
    let found: Vec<String> = shown.take(32).map(|one| format!("{one:?}")).collect();
    match count {
        0 => "{}".into(),
        33.. => format!("{{ {}, … {} more }}", found.join(", "), count - 32),
        _ => format!("{{ {} }}", found.join(", ")),
    }
}

#[inline(never)]
fn stop() {}

fn double(number: i32) -> i32 {
    number * 2
}

fn main() {
    let cell = Cell::new(0);
    let ref_cell = RefCell::new(String::new());
    let mutex = Mutex::new(0u8);
    let rw_lock = RwLock::new(0i64);
    let once: OnceCell<i32> = OnceCell::new();
    let lock: OnceLock<String> = OnceLock::new();
    let mut list: LinkedList<i32> = LinkedList::new();
    let mut heap: BinaryHeap<u16> = BinaryHeap::new();
    let atomic = AtomicI64::new(0);
    let truth = AtomicBool::new(false);
    for round in 0..9i32 {
        for i in 0..round * 2 {
            let n = (i * 37 + round * 11) % 1009;
            list.push_back(n);
            heap.push(n as u16);
            if i % 5 == 0 {
                list.pop_front();
                heap.pop();
            }
        }
        cell.set(round);
        ref_cell.borrow_mut().push('r');
        *mutex.lock().unwrap() += 3;
        *rw_lock.write().unwrap() -= 1;
        atomic.store(round.into(), std::sync::atomic::Ordering::Relaxed);
        truth.store(round % 2 == 1, std::sync::atomic::Ordering::Relaxed);
        if round == 4 {
            once.set(round).unwrap();
            lock.set("set".into()).unwrap();
        }
        let text = "t".repeat(round as usize);
        let owner = Rc::new(round);
        let weak = match round {
            0 => Weak::new(),
            _ => Rc::downgrade(&owner),
        };
        let owner = (round % 3 != 1).then_some(owner);
        let shared_text: Rc<str> = text.as_str().into();
        let shared_slice: Arc<[i32]> = (0..round).collect();
        let boxed_slice: Box<[i32]> = (0..round * 5).collect();
        let boxed_text: Box<str> = text.as_str().into();
        let cow: Cow<str> = match round % 2 {
            0 => Cow::Borrowed("borrowed"),
            _ => Cow::Owned(text.clone()),
        };
        let os_string = OsString::from(&text);
        let os_str: &OsStr = &os_string;
        let path_buf = PathBuf::from(format!("/tmp/{text}"));
        let path: &Path = &path_buf;
        let duration = Duration::from_micros(round as u64 * 12_345);
        let non_zero = NonZeroU32::new(round as u32 + 1).unwrap();
        let maybe_zero = NonZeroU32::new(round as u32 % 2);
        let wrapping = Wrapping(round as u8);
        let range = round..9;
        let inclusive = 1..=round;
        let from = round..;
        let letters = ..=('a' as u8 + round as u8) as char;
        let reference = (round % 2 == 0).then_some(&round);
        let dog = Dog { age: round };
        let object: &dyn Animal = &dog;
        let boxed: Box<dyn Animal> = match round % 2 {
            0 => Box::new(Dog { age: 2 * round }),
            _ => Box::new(Bird(round as u8)),
        };
        let shared: Rc<dyn Animal> = Rc::new(Bird(9 - round as u8));
        let large = u128::MAX - round as u128;
        let negative = i128::MIN + i128::from(round);
        let letter = char::from_u32('é' as u32 + round as u32).unwrap();
        let borrow = (round % 3 == 1).then(|| ref_cell.borrow());
        let borrow_mut = (round % 3 == 2).then(|| ref_cell.borrow_mut());
        let guard = (round % 2 == 1).then(|| mutex.lock().unwrap());
        let readers = (round % 2 == 0).then(|| rw_lock.read().unwrap());
        println!("round");
        println!("cell: {round}");
        let r = format!("{:?}", "r".repeat(round as usize + 1));
        match round % 3 {
            0 => println!("ref_cell: {r}"),
            1 => println!("ref_cell: {{ value = {r}, state = borrowed }}"),
            _ => println!("ref_cell: {{ value = {r}, state = borrowed mutably }}"),
        }
        let counted = (round + 1) * 3;
        match guard.is_some() {
            true => println!("mutex: {{ value = {counted}, state = locked }}"),
            false => println!("mutex: {counted}"),
        }
        match readers.is_some() {
            true => println!("rw_lock: {{ value = {}, state = locked for reading }}", -round - 1),
            false => println!("rw_lock: {}", -round - 1),
        }
        println!("once: {}", once.get().map_or("unset".into(), i32::to_string));
        println!("lock: {}", lock.get().map_or("unset".into(), |text| format!("{text:?}")));
        println!("list: {}", all(list.iter(), list.len()));
        println!("heap: {}", all(heap.iter(), heap.len()));
        println!("atomic: {round}");
        println!("truth: {}", round % 2 == 1);
        match (round, &owner) {
            (0, _) => println!("weak: dangling"),
            (_, None) => println!("weak: dropped"),
            (_, Some(owner)) => println!("weak: 0x{:x} -> {round}", Rc::as_ptr(owner) as usize),
        }
        println!("shared_text: {text:?}");
        println!("shared_slice: {}", all(shared_slice.iter(), shared_slice.len()));
        println!("boxed_slice: {}", all(boxed_slice.iter(), boxed_slice.len()));
        println!("boxed_text: {text:?}");
        match round % 2 {
            0 => println!("cow: Borrowed({cow:?})"),
            _ => println!("cow: Owned({cow:?})"),
        }
        println!("os_string: {os_string:?}");
        println!("os_str: {os_str:?}");
        println!("path_buf: {path_buf:?}");
        println!("path: {path:?}");
        println!("duration: {duration:?}");
        println!("non_zero: {non_zero}");
        println!("maybe_zero: {maybe_zero:?}");
        println!("wrapping: {wrapping}");
        println!("range: {range:?}");
        println!("inclusive: {inclusive:?}");
        println!("from: {from:?}");
        println!("letters: {letters:?}");
        match reference {
            Some(at) => println!("reference: Some({at:p} -> {at})"),
            None => println!("reference: None"),
        }
        println!("object: {:p} <run::Dog> -> {{ age = {} }}", &dog, object.legs() - 4);
        let address: *const dyn Animal = &*boxed;
        match round % 2 {
            0 => println!("boxed: {:p} <run::Dog> -> {{ age = {} }}", address as *const (), boxed.legs() - 4),
            _ => println!("boxed: {:p} <run::Bird> -> ({})", address as *const (), boxed.legs()),
        }
        println!("shared: {:p} <run::Bird> -> ({})", Rc::as_ptr(&shared) as *const (), shared.legs());
        println!("large: {large}");
        println!("negative: {negative}");
        println!("letter: {letter:?}");
        stop(); // here
        drop((borrow, borrow_mut, guard, readers));
    }
    let endless: LinkedList<i32> = [1, 2].into();
    let unowned = Rc::new(1);
    let odd = Duration::from_secs(1);
    let neither = AtomicBool::new(false);
    let mapped = [1, 2].into_iter().map(double);
    let lost: &[i32];
    let headless: &dyn Animal;
    // SAFETY: nobody uses these as what they are.
    unsafe {
        let node = (endless.front().unwrap() as *const i32).byte_sub(8) as *mut usize;
        *node = node as usize;
        *(Rc::as_ptr(&unowned) as *mut usize).sub(2) = 0;
        *(&raw const odd as *mut u32).add(2) = 2_000_000_000;
        *(neither.as_ptr() as *mut u8) = 7;
        lost = std::mem::transmute::<(usize, usize), &[i32]>((0xffff_fff0, 9));
        headless = std::mem::transmute::<(usize, usize), &dyn Animal>((16, 16));
    }
    stop(); // there
    std::hint::black_box((&mapped, &raw const *lost, &raw const *headless, &odd));
    std::process::exit(0);
}
