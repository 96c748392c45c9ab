// A guest for tests/it/compilers.rs, which reads these variables.
namespace geo {
int scale = 2;
struct Base {
    int id;
};
struct Other {
    char tag[3];
    static int count;
};
int Other::count = 9;
template <class T, int N> struct Box : Base, Other {
    T v[N];
    bool on;
};
enum class Kind : unsigned char { A, B = 7 };
Box<double, 2> box;
Kind kind = Kind::B;
} // namespace geo
union Both {
    struct {
        int low, high;
    };
    long long all;
};
Both both;
enum Level { LOW = -100, HIGH = 1000 };
enum class Tint : signed char { Red = -2, Green };
struct Flags {
    unsigned a : 3;
    int b : 5;
    bool c : 1;
    unsigned long long wide : 40;
    Tint tint : 4;
};
template <class C> struct Text {
    union {
        struct {
            C *data;
            unsigned size;
        } far;
        C near[8];
    };
    bool is_far;
};
Level level = LOW;
Flags flags = {5, -3, true, 0xfedcba9876, Tint::Red};
Text<char> near = {.near = "near", .is_far = false};
unsigned char magic[16] = {0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0xff};
signed char temperatures[4] = {-1, -2, 3, 4};
char buffer[8] = {'o', 'k', 0, 1, 'x'};
char marks[4] = {'\'', '"', '\\', 27};
decltype(nullptr) nothing = nullptr;
int &&gone = static_cast<int &&>(both.high);
bool yes = true;
namespace {
int hidden = 11;
}
int *seen = &hidden;
int *pointer = &both.high;
int &reference = both.low;
__attribute__((noinline, export_name("area"))) double area(geo::Box<double, 2> &b, geo::Kind k) {
    double product = b.v[0] * b.v[1];
    return k == geo::Kind::A ? product : -product;
}
