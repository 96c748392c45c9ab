/* Exits from deep inside, with another code for each depth; qsort calls back. */
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void descend(int depth, const int *values) {
    if (values[depth] > 40)
        exit(depth);
    descend(depth + 1, values);
}

int main(void) {
    int values[12];
    unsigned seed = 7;
    for (int i = 0; i < 12; i++) {
        seed = seed * 1103515245u + 12345u;
        values[i] = seed >> 16 & 63;
    }
    qsort(values, 12, sizeof *values, compare);
    for (int i = 0; i < 12; i++)
        printf("%d ", values[i]);
    puts("");
    descend(0, values);
    return 0;
}
