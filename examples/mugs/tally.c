/* Counts how often each byte occurs in standard input. */
#include <stdio.h>

struct text {
    int length;
    unsigned char bytes[4096];
};

__attribute__((noinline)) void tally(const struct text *text, int *count) {
    for (int i = 0; i < text->length; i++)
        count[text->bytes[i]]++;
}

int main(void) {
    static struct text text;
    static int count[256];
    text.length = fread(text.bytes, 1, sizeof text.bytes, stdin);
    tally(&text, count);
    printf("%d blanks, %d line ends\n", count[' '], count['\n']);
}
