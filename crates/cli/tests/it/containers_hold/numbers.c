// Numbers of types that few programs have, printed as `state` shows them, each time before it calls `stop`.
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef float f4 __attribute__((vector_size(16)));
typedef signed char c8 __attribute__((vector_size(8)));
enum flags { NONE, READ = 1, WRITE = 2, EXEC = 4, RW = 3 };
enum color { RED, GREEN, BLUE, BLACK };

__attribute__((noinline)) static void stop(void) { __asm__ volatile(""); }

// The fewest digits that are this number again.
static const char *shortest(long double number)
{
    static char text[64];
    for (int digits = 1; digits < 40; digits++) {
        snprintf(text, sizeof text, "%.*Lg", digits, number);
        if (strtold(text, NULL) == number)
            break;
    }
    return strcat(text, strpbrk(text, ".e") ? "" : ".0");
}

int main(void)
{
    const char *flags[] = {"NONE", "READ", "WRITE", "RW", "EXEC", "READ | EXEC", "WRITE | EXEC", "READ | WRITE | EXEC", "8", "READ | 0x8"};
    const char *colors[] = {"RED", "GREEN", "BLUE", "BLACK"};
    long double sum = 0;
    for (int round = 0; round < 10; round++) {
        long double third = round / 3.0L, big = 1e4000L / (round + 3);
        sum += third * third;
        __fp16 half = round * 0.375;
        float _Complex pair = round + (1 - round) * 0.5f * I;
        long double _Complex long_pair = third + sum * I;
        __int128 wide = -((__int128)round << 64);
        unsigned __int128 unsigned_wide = (unsigned __int128)round << 65;
        f4 floats = {round, 0.5f, -round - 1, 1};
        c8 bytes = {round, 'a', -1};
        enum flags flag = (enum flags)round;
        enum color color = (enum color)round;
        printf("round\n");
        printf("third: %s\n", shortest(third));
        printf("sum: %s\n", shortest(sum));
        printf("half: %s\n", shortest(half));
        printf("pair: %d.0 %c %s", round, round > 1 ? '-' : '+', shortest(abs(1 - round) * 0.5L));
        printf("i\nlong_pair: %s", shortest(third));
        printf(" + %s", shortest(sum));
        printf("i\nwide: %.0Lf\n", round ? round * -0x1p64L : 0);
        printf("unsigned_wide: %.0Lf\n", round * 0x1p65L);
        printf("floats: { %d.0, 0.5, -%d.0, 1.0 }\n", round, round + 1);
        printf("bytes: { %d, 97, -1, 0, 0, 0, 0, 0 }\n", round);
        printf("flag: %s\n", flags[round]);
        if (round < 4)
            printf("color: %s\n", colors[round]);
        else
            printf("color: %d\n", round);
        stop(); // here
        if (big == 1)
            return 1;
    }
    return 0;
}
