//! `sqlite < SCRIPT.sql`: runs a script on a database in memory and prints every row.

use libsqlite3_sys::{SQLITE_OK, sqlite3, sqlite3_errmsg, sqlite3_exec, sqlite3_open};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Prints a row's columns with bars between them, as the `sqlite3` shell does.
unsafe extern "C" fn print_row(
    _: *mut c_void,
    count: c_int,
    values: *mut *mut c_char,
    _: *mut *mut c_char,
) -> c_int {
    let columns: Vec<_> = (0..count as usize)
        .map(|column| {
            // SAFETY: SQLite passes `count` pointers, each null or to a terminated string.
            let value = unsafe { *values.add(column) };
            if value.is_null() {
                "NULL".into()
            } else {
                unsafe { CStr::from_ptr(value) }.to_string_lossy()
            }
        })
        .collect();
    println!("{}", columns.join("|"));
    0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = CString::new(std::io::read_to_string(std::io::stdin())?)?;
    let mut database: *mut sqlite3 = std::ptr::null_mut();
    // SAFETY: the strings are terminated, the connection is used by this thread only, and `print_row` keeps nothing.
    unsafe {
        let opened = sqlite3_open(c":memory:".as_ptr(), &mut database);
        if opened != SQLITE_OK
            || sqlite3_exec(
                database,
                script.as_ptr(),
                Some(print_row),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            ) != SQLITE_OK
        {
            return Err(CStr::from_ptr(sqlite3_errmsg(database))
                .to_string_lossy()
                .into());
        }
    }
    Ok(())
}
