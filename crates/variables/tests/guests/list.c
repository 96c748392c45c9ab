// A guest for tests/it/compilers.rs, which reads these variables and finds places by the words in comments.
struct node {
    int key;
    char name[8];
    const struct node *next;
    unsigned flag : 3;
    unsigned mode : 5;
    int balance : 7;
};
enum color { RED, GREEN = 5 };
typedef int (*combine)(int, int);

struct node table[3] = {
    {10, "ten", &table[1], 5, 17, -2},
    {20, "twenty", &table[2], 1, 2, 3},
    {30, "thirty", 0, 0, 0, 0},
};
int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
const char *greeting = "hello";
double ratio = 0.25;
enum color paint = GREEN;
static long long steps = 1LL << 40;

static inline int twice(int x) {
    int doubled = x * 2;
    return doubled + (int)steps;
}

__attribute__((noinline)) int add(int a, int b) { return a + b; }

__attribute__((noinline, export_name("sum"))) int sum(const struct node *p, int n, double weight) {
    int total = 0;
    static int calls = 3;
    calls++;
    combine f = add;
    for (int i = 0; i < n; i++) {
        int key = p->key;
        total = f(total, twice(key));
        p = p->next;
    }
    {
        double total = weight * 2;
        ratio = total;
    }
    return total;
}
