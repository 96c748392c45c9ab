// A guest whose variables are asked about by tests/compilers.rs.
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
int *pointer = &both.high;
int &reference = both.low;
__attribute__((noinline, export_name("area"))) double area(geo::Box<double, 2> &b, geo::Kind k) {
    double product = b.v[0] * b.v[1];
    return k == geo::Kind::A ? product : -product;
}
