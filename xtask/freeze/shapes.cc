// Virtual calls, templates, references, a member that is inlined, an array of pointers.
#include <cstdio>

struct Shape {
    virtual ~Shape() {}
    virtual double area() const = 0;
    const char *name;
    explicit Shape(const char *name) : name(name) {}
};

struct Square : Shape {
    double side;
    explicit Square(double side) : Shape("square"), side(side) {}
    double area() const override { return side * side; }
};

struct Circle : Shape {
    double radius;
    explicit Circle(double radius) : Shape("circle"), radius(radius) {}
    double area() const override { return 3.0 * radius * radius; }
};

template <typename T> T largest(const T *values, int n) {
    T best = values[0];
    for (int i = 1; i < n; i++)
        if (best < values[i])
            best = values[i];
    return best;
}

static void grow(double &value, int by) {
    while (by-- > 0)
        value *= 1.5;
}

int main() {
    Square square(2);
    Circle circle(1);
    grow(circle.radius, 2);
    const Shape *shapes[] = {&square, &circle, &square};
    double areas[3];
    int whole[3];
    for (int i = 0; i < 3; i++) {
        areas[i] = shapes[i]->area();
        whole[i] = static_cast<int>(areas[i]);
        std::printf("%s %.2f\n", shapes[i]->name, areas[i]);
    }
    std::printf("%.2f %d\n", largest(areas, 3), largest(whole, 3));
}
