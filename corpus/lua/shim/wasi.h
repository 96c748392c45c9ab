/* What Lua asks of a system and WASI does not have. Included before every Lua source file. */

/* Without longjmp an error ends the program: the benchmark raises none. */
#define LUAI_TRY(L, c, a) { a }
#define LUAI_THROW(L, c) __builtin_trap()
#define luai_jmpbuf int

/* The seed of string hashes is made of the clock and of addresses: pin it, so that runs can be compared. */
#define luai_makeseed(L) 0x5eedu

/* No shell and no temporary files. The headers declare tmpfile only to warn: let them, then replace it. */
#include <stdio.h>
#define tmpfile() ((FILE *)0)
#define l_system(command) ((command) == 0 ? 0 : -1)
