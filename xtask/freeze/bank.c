/* Accounts in a list, orders from standard input: loops, pointers, bit-fields, floats, a switch, recursion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Account {
    char name[8];
    int balance;
    unsigned open : 1;
    unsigned orders : 7;
    double rate;
    struct Account *next;
};

static struct Account *first;
static int refused;
static int history[16];

static struct Account *find(const char *name) {
    for (struct Account *a = first; a; a = a->next)
        if (!strcmp(a->name, name))
            return a;
    struct Account *a = calloc(1, sizeof *a);
    strncpy(a->name, name, sizeof a->name - 1);
    a->rate = 0.5;
    a->open = 1;
    a->next = first;
    first = a;
    return a;
}

static int fee(int amount) {
    if (amount < 10)
        return 1;
    return 1 + fee(amount / 10);
}

static void apply(struct Account *a, char order, int amount) {
    a->orders++;
    switch (order) {
    case '+':
        a->balance += amount;
        break;
    case '-':
        if (a->balance < amount) {
            refused++;
            return;
        }
        a->balance -= amount + fee(amount);
        break;
    case '%':
        a->balance += (int)(a->balance * a->rate);
        break;
    default:
        a->open = 0;
    }
}

int main(void) {
    char name[8], order;
    int amount, n = 0;
    while (scanf("%7s %c %d", name, &order, &amount) == 3) {
        struct Account *a = find(name);
        apply(a, order, amount);
        history[n++ % 16] = a->balance;
    }
    int total = 0;
    for (struct Account *a = first; a; a = a->next) {
        printf("%s %d%s\n", a->name, a->balance, a->open ? "" : " closed");
        total += a->balance;
    }
    printf("%d in %d orders, %d refused, last %d\n", total, n, refused, history[(n + 15) % 16]);
    return 0;
}
