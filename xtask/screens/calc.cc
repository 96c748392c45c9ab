// A calculator in Polish notation: reads lines such as `1 2 + 3 *`, prints a result for each.
#include <cassert>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

class Stack {
    std::vector<int> values;

public:
    void push(int value) { values.push_back(value); }

    int pop() {
        assert(!values.empty());
        int value = values.back();
        values.pop_back();
        return value;
    }

    int depth() const { return static_cast<int>(values.size()); }
};

class Calculator {
    Stack stack;
    std::map<std::string, int> variables;
    int balance = 0;

    int apply(char op) {
        int left = stack.pop();
        int right = stack.pop();
        switch (op) {
        case '+':
            return left + right;
        case '-':
            return left - right;
        case '*':
            return left * right;
        default:
            std::cerr << "no operator: " << op << '\n';
            return 0;
        }
    }

    void token(const std::string &word) {
        if (word.size() == 1 && !std::isalnum(static_cast<unsigned char>(word[0]))) {
            stack.push(apply(word[0]));
            balance--;
        } else if (word.size() > 2 && word[0] == '=') {
            variables[word.substr(1)] = stack.pop();
            balance--;
        } else if (variables.count(word)) {
            stack.push(variables[word]);
            balance++;
        } else {
            stack.push(std::atoi(word.c_str()));
            balance++;
        }
    }

public:
    void line(const std::string &text) {
        std::string word;
        for (char c : text + ' ') {
            if (c != ' ')
                word += c;
            else if (!word.empty()) {
                token(word);
                word.clear();
            }
        }
        std::cout << text;
        if (stack.depth() > 0)
            std::cout << " is " << stack.pop();
        std::cout << '\n';
        balance--;
    }
};

int main() {
    Calculator calculator;
    std::string text;
    while (std::getline(std::cin, text))
        calculator.line(text);
}
