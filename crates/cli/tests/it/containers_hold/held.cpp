// What libc++ has besides the usual containers, printed as `state` shows it, each time before it calls `stop`.
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <forward_list>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <stack>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

struct Point { int x, y; };

static std::string text(bool b) { return b ? "true" : "false"; }
static std::string text(int n) { return std::to_string(n); }
static std::string text(double d)
{
    char at[32];
    snprintf(at, sizeof at, "%g", d);
    std::string found = at;
    return found.find('.') == std::string::npos ? found + ".0" : found;
}
static std::string text(const std::string &s) { return '"' + s + '"'; }
static std::string text(const Point &p) { return "{ x = " + text(p.x) + ", y = " + text(p.y) + " }"; }
static std::string text(const void *p)
{
    char at[32];
    snprintf(at, sizeof at, "0x%lx", (unsigned long)p);
    return at;
}

template <class C> static std::string all(const C &c)
{
    std::string found;
    size_t shown = 0, count = 0;
    for (auto i = c.begin(); i != c.end(); ++i)
        count++;
    for (auto i = c.begin(); i != c.end() && shown < 32; ++i)
        found += (shown++ ? ", " : "") + text(*i);
    if (count > shown)
        found += ", … " + std::to_string(count - shown) + " more";
    return shown ? "{ " + found + " }" : "{}";
}

// The container of an adapter.
template <class Q> static const auto &under(const Q &q)
{
    struct Open : Q {
        static const auto &get(const Q &q) { return q.*&Open::c; }
    };
    return Open::get(q);
}

static void say(const char *name, const std::string &text) { printf("%s: %s\n", name, text.c_str()); }
__attribute__((noinline)) static void stop() { asm volatile(""); }
static int twice(int x) { return 2 * x; }

int main()
{
    std::vector<bool> flags;
    std::bitset<70> bits;
    std::forward_list<int> chain;
    std::wstring wide;
    std::u16string wide16;
    std::u32string wide32;
    std::stack<int> stack;
    std::queue<int> queue;
    std::priority_queue<int> heap;
    std::string plain;
    std::vector<int> numbers;
    for (int round = 0; round < 9; round++) {
        for (int i = 0; i < round * 2; i++) {
            int n = (i * 37 + round * 11) % 101;
            flags.push_back(n % 3 == 0);
            bits.flip(n % 70);
            chain.push_front(n);
            wide.push_back(L'a' + n % 26);
            wide16.push_back(u'a' + n % 26);
            wide32.push_back(U'a' + n % 26);
            plain.push_back('a' + n % 26);
            stack.push(n);
            queue.push(n);
            heap.push(n);
            numbers.push_back(n);
            if (i % 4 == 0)
                queue.pop();
        }
        std::string accent = plain;
        if (round % 2) {
            wide += L"\u00e9\U0001F600";
            wide16 += u"\u00e9\U0001F600";
            wide32 += U"\u00e9\U0001F600";
            plain += "\u00e9\U0001F600";
        }
        std::variant<int, std::string, Point> one;
        std::string held = "[0] " + text(round);
        switch (round % 3) {
        case 0: one = round; break;
        case 1: one = std::string(round, 'v'), held = "[1] " + text(std::string(round, 'v')); break;
        case 2: one = Point{round, -round}, held = "[2] " + text(Point{round, -round}); break;
        }
        std::tuple<int, std::string, std::pair<bool, double>> tuple{round, std::string(round, 't'), {round % 2, round / 2.0}};
        std::pair<int, Point> pair{round, {1, round}};
        auto owner = std::make_shared<Point>(Point{round, 7});
        std::weak_ptr<Point> weak = owner;
        if (round % 3 == 1)
            owner.reset();
        std::function<int(int)> function;
        if (round % 2)
            function = twice;
        std::complex<double> complex(round + 0.5, 1 - round);
        std::chrono::milliseconds span_of_time(round * 100);
        std::chrono::duration<int, std::ratio<60>> minutes(round);
        std::chrono::duration<int, std::ratio<1, 30>> frames(round);
        std::atomic<int> atomic{round};
        std::span<const int> span = std::span<const int>(numbers).subspan(numbers.size() / 2);
        int raw[3] = {round, 1, 2};
        std::span<int, 3> fixed{raw};
        std::reference_wrapper<int> reference = raw[1];
        wchar_t letter = L'a' + round;
        char16_t array[16] = u"array";
        const char32_t *pointed = U"pointed";
        printf("round\n");
        say("flags", all(flags));
        say("bits", "0b" + bits.to_string());
        say("chain", all(chain));
        say("wide", wide.size() > 128 ? "" : text(plain));
        say("wide16", wide16.size() > 128 ? "" : text(plain));
        say("wide32", wide32.size() > 128 ? "" : text(plain));
        say("stack", all(under(stack)));
        say("queue", all(under(queue)));
        say("heap", all(under(heap)));
        say("one", held);
        say("tuple", "{ " + text(round) + ", " + text(std::string(round, 't')) + ", { " + text(round % 2 == 1) + ", " + text(round / 2.0) + " } }");
        say("pair", "{ " + text(round) + ", " + text(pair.second) + " }");
        say("weak", owner ? text((const void *)owner.get()) + " -> " + text(*owner) : "expired");
        if (!function)
            say("function", "empty");
        say("complex", text(round + 0.5) + (round > 1 ? " - " : " + ") + text(double(abs(1 - round))) + "i");
        say("span_of_time", text(round * 100) + " ms");
        say("minutes", text(round) + " min");
        say("frames", text(round) + " × 1/30 s");
        say("atomic", text(round));
        say("span", all(span));
        say("fixed", all(fixed));
        say("reference", text((const void *)&raw[1]) + " -> 1");
        say("letter", text('a' + round) + " '" + char('a' + round) + "'");
        say("array", "\"array\"");
        say("pointed", text((const void *)pointed) + " \"pointed\"");
        stop(); // here
    }
    std::vector<bool> lost_bits{true};
    reinterpret_cast<unsigned *>(&lost_bits)[0] = 0xfffffff0;
    std::variant<int, double> no_alternative{1}, valueless{2};
    reinterpret_cast<unsigned *>(&no_alternative)[2] = 9;
    reinterpret_cast<unsigned *>(&valueless)[2] = -1;
    std::forward_list<int> round{1, 2}, cut{3, 4};
    void **node = *reinterpret_cast<void ***>(&round);
    *node = node;
    **reinterpret_cast<void ***>(&cut) = reinterpret_cast<void *>(0xfffffff0);
    std::wstring lost_text(40, L'x');
    *reinterpret_cast<unsigned *>(&lost_text) = 0xfffffff0;
    auto owner = std::make_shared<int>(1);
    std::weak_ptr<int> lost_owner = owner;
    reinterpret_cast<unsigned *>(&lost_owner)[1] = 0xfffffff0;
    std::function<int(int)> lost_function = twice;
    unsigned policy[] = {0, 0, 7, 0};
    reinterpret_cast<void **>(&lost_function)[3] = policy;
    std::span<int> lost_span(reinterpret_cast<int *>(0xfffffff0), 9);
    stop(); // there
    fflush(stdout);
    // Nobody may free these.
    _Exit(0);
}
