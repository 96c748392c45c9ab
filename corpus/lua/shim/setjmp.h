/* WASI's C library has no setjmp.h. Lua includes one; wasi.h replaces every use of it. */
