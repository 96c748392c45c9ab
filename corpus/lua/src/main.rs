//! `lua FILE.lua`: runs a script in Lua 5.4.

use std::ffi::{CStr, c_char, c_int, c_void};

// The library is only linked; lua-src declares none of its functions.
use lua_src as _;

#[repr(C)]
struct State(c_void);

unsafe extern "C" {
    fn luaL_newstate() -> *mut State;
    fn luaL_openlibs(state: *mut State);
    fn luaL_loadbufferx(
        state: *mut State,
        text: *const c_char,
        size: usize,
        name: *const c_char,
        mode: *const c_char,
    ) -> c_int;
    fn lua_pcallk(
        state: *mut State,
        arguments: c_int,
        results: c_int,
        handler: c_int,
        context: isize,
        continuation: *const c_void,
    ) -> c_int;
    fn lua_tolstring(state: *mut State, index: c_int, size: *mut usize) -> *const c_char;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: lua FILE.lua")?;
    let script = std::fs::read(path)?;
    // SAFETY: the declarations are those of lua.h and lauxlib.h 5.4, and the state is used by this thread only.
    unsafe {
        let state = luaL_newstate();
        luaL_openlibs(state);
        if luaL_loadbufferx(
            state,
            script.as_ptr().cast(),
            script.len(),
            c"=script".as_ptr(),
            c"t".as_ptr(),
        ) != 0
            || lua_pcallk(state, 0, 0, 0, 0, std::ptr::null()) != 0
        {
            let message = lua_tolstring(state, -1, std::ptr::null_mut());
            return Err(CStr::from_ptr(message).to_string_lossy().into());
        }
    }
    Ok(())
}
