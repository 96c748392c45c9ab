/* A shop's till: reads orders, takes them from the stock and prints a bill. */
#include <stdio.h>
#include <string.h>

struct Item {
    char name[12];
    int price;
    int stock;
};

static struct Item items[] = {
    {"apple", 30, 10},
    {"bread", 250, 4},
    {"cheese", 480, 3},
    {"tea", 395, 6},
};

enum { ITEMS = sizeof items / sizeof items[0] };

static int total;
static int pieces;
static int unknown;

static struct Item *find(const char *name) {
    for (int i = 0; i < ITEMS; i++)
        if (strcmp(items[i].name, name) == 0)
            return &items[i];
    return NULL;
}

/* How many pieces the customer gets: never more than there are. */
static int take(struct Item *item, int wanted) {
    int left = item->stock - wanted;
    if (wanted > 10)
        left = 0;
    int taken = item->stock - left;
    item->stock = left;
    return taken;
}

/* In percent. */
static int discount(int total) {
    if (total > 2000)
        return 10;
    if (total > 1000)
        return 5;
    return 0;
}

static void order(const char *name, int wanted) {
    struct Item *item = find(name);
    if (!item) {
        unknown++;
        return;
    }
    int taken = take(item, wanted);
    int price = taken * item->price;
    total += price;
    pieces += taken;
    printf("%-8s %3d %6d\n", item->name, taken, price);
}

int main(void) {
    char name[12];
    int wanted;
    while (scanf("%11s %d", name, &wanted) == 2)
        order(name, wanted);
    int off = total * discount(total) / 100;
    printf("discount     %6d\n", -off);
    printf("to pay       %6d\n", total - off);
    printf("mean price   %6d\n", total / pieces);
    if (unknown)
        printf("%d unknown\n", unknown);
    return 0;
}
