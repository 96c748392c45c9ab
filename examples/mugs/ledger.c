/* Adds up the deposits of a savings club: each line of standard input is a name and an amount in cents. */
#include <stdio.h>

static int balance;

static void deposit(int cents) {
    balance += cents;
}

int main(void) {
    char name[16];
    int cents;
    while (scanf("%15s %d", name, &cents) == 2)
        deposit(cents);
    printf("balance %d cents\n", balance);
}
