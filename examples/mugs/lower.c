/* Writes standard input in small letters. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void lower(char *text) {
    for (size_t i = 0; i < strlen(text); i++)
        text[i] = tolower(text[i]);
}

int main(void) {
    static char text[1 << 16];
    fread(text, 1, sizeof text - 1, stdin);
    lower(text);
    printf("%zu bytes\n", strlen(text));
}
