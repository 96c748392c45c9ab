// Orders whose discounts depend on a wrong total. Names are as long as those of C++ are.
#include <stdio.h>

namespace shop {

template <typename T, int Most>
struct List {
    T all[Most];
    int count = 0;
    __attribute__((noinline)) void add(T const &one) { all[count++] = one; }
};

struct Order {
    int price, amount;
};

using Orders = List<Order, 64>;

__attribute__((noinline)) int total(Orders const &orders, int from, int to) {
    int sum = 0;
    for (int k = from; k < to; k++)
        sum += orders.all[k].price * orders.all[k].amount;
    return sum;
}

__attribute__((noinline)) int discount(int sum, unsigned long long limit) {
    if (sum > (int)limit)
        return sum / 10;
    return 0;
}

} // namespace shop

int main() {
    shop::Orders orders;
    unsigned seed = 7;
    for (int k = 0; k < 60; k++) {
        seed = seed * 1103515245u + 12345u;
        orders.add({(int)(seed >> 20), (int)(seed >> 16 & 7)});
    }
    // Some lines run more than 10,000 times.
    int all = 0;
    for (int k = 0; k < 3000; k++)
        all += shop::discount(shop::total(orders, k % 56, k % 56 + 4), 20000);
    printf("%d less\n", all);
}
