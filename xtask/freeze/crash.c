/* Ends with a load through a pointer that another function spoiled. */
#include <stdio.h>
#include <stdlib.h>

struct Node {
    int key;
    struct Node *next;
};

static struct Node *list(int n) {
    struct Node *head = 0;
    for (int i = 0; i < n; i++) {
        struct Node *node = malloc(sizeof *node);
        node->key = i * i;
        node->next = head;
        head = node;
    }
    return head;
}

static void spoil(struct Node *node, int steps) {
    while (steps--)
        node = node->next;
    node->next = (struct Node *)0xfffffff0u;
}

static int sum(const struct Node *node) {
    int total = 0;
    for (; node; node = node->next)
        total += node->key;
    return total;
}

int main(void) {
    struct Node *head = list(6);
    printf("%d\n", sum(head));
    fflush(stdout);
    spoil(head, 3);
    printf("%d\n", sum(head));
    return 0;
}
