//! `quickjs FILE.js`: runs a script in QuickJS-ng and prints its last value.

use rquickjs_sys::{
    JS_EVAL_TYPE_GLOBAL, JS_Eval, JS_GetException, JS_IsException, JS_NewContext, JS_NewRuntime,
    JS_ToCStringLen,
};
use std::ffi::{CStr, CString, c_int, c_void};

/// Replaces the C library's clock: QuickJS seeds hash tables with the time, so runs would differ.
#[unsafe(no_mangle)]
extern "C" fn gettimeofday(time: *mut [i64; 2], _zone: *const c_void) -> c_int {
    // SAFETY: the caller passes room for a `timeval`, which is two 64-bit words: seconds and microseconds.
    unsafe { *time = [1_000_000_000, 0] };
    0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: quickjs FILE.js")?;
    let script = CString::new(std::fs::read(path)?)?;
    // SAFETY: the strings are terminated, and runtime and context live until the process ends.
    unsafe {
        let context = JS_NewContext(JS_NewRuntime());
        let length = script.as_bytes().len();
        let value = JS_Eval(
            context,
            script.as_ptr(),
            length as _,
            c"script".as_ptr(),
            JS_EVAL_TYPE_GLOBAL as _,
        );
        let failed = JS_IsException(value);
        let shown = if failed {
            JS_GetException(context)
        } else {
            value
        };
        let text = JS_ToCStringLen(context, std::ptr::null_mut(), shown);
        if text.is_null() {
            return Err("the value has no text".into());
        }
        let text = CStr::from_ptr(text).to_string_lossy();
        if failed {
            return Err(text.into());
        }
        println!("{text}");
    }
    Ok(())
}
