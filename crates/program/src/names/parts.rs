//! Splits function names of C++ and Rust into the parts that a user may omit.
//!
//! The input is a demangled name, or a user's form of such a name. The output is the segments of
//! its path, each with its generic arguments and parameters. Text before the path (the type that a
//! C++ template returns) and after it (`const`) is kept separately. Splitting terminates for any
//! text, takes linear time, and loses only white space.

/// Returns a name without insignificant white space, and without the `::` before generic arguments.
/// For example, `f::<A, B>` becomes `f<A,B>`.
pub(super) fn squeezed(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut blank = false;
    let mut rest = name.trim();
    while let Some(next) = rest.chars().next() {
        let here = rest;
        rest = &rest[next.len_utf8()..];
        if next.is_whitespace() {
            blank = true;
            continue;
        }
        let arguments = here.strip_prefix("::").filter(|rest| rest.starts_with('<'));
        if let Some(arguments) =
            arguments.filter(|rest| !out.is_empty() && implementation(rest).is_none())
        {
            rest = arguments;
            continue;
        }
        if is_word(next) {
            let before = out.chars().next_back();
            let is_arrow = out.ends_with("->");
            let parts = before.is_some_and(|before| {
                blank && is_word(before) || ">)]}".contains(before) && !is_arrow
            });
            if parts {
                out.push(' ');
            }
        }
        blank = false;
        out.push(next);
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_$'\"#".contains(c)
}

/// Returns the text after `<impl`.
fn implementation(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("<impl")?;
    (!rest.starts_with(is_word)).then(|| rest.trim_start())
}

/// Returns the position at which a bracket at the beginning of a string is closed, or the string's
/// end.
fn closed(text: &str) -> usize {
    let mut open: Vec<u8> = Vec::new();
    let bytes = text.as_bytes();
    for (i, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => open.push(byte),
            // This is an arrow, or a comparison in parentheses.
            b'>' if bytes[..i].ends_with(b"-") || open.last() != Some(&b'<') => {}
            b'>' | b')' | b']' | b'}' => {
                // An unclosed `<` inside is not a bracket, as in `(a<b)`.
                let opening = match byte {
                    b'>' => b'<',
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if let Some(at) = open.iter().rposition(|&other| other == opening) {
                    open.truncate(at);
                }
            }
            _ => {}
        }
        if open.is_empty() {
            return i + 1;
        }
    }
    text.len()
}

/// Returns the text before and after a word outside all brackets.
fn split<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let after = text[at..]
            .strip_prefix(' ')
            .and_then(|rest| rest.strip_prefix(word));
        if let Some(after) = after.filter(|after| !after.starts_with(is_word)) {
            return Some((&text[..at], after.trim_start()));
        }
        at += match next {
            '<' | '(' | '[' | '{' => closed(&text[at..]),
            _ => next.len_utf8(),
        };
    }
    None
}

/// One segment of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'t> {
    /// The name of the segment.
    pub(super) base: &'t str,
    /// The generic arguments with their brackets, or empty.
    arguments: &'t str,
    /// The parameters with their brackets, or empty.
    parameters: &'t str,
}

impl<'t> Segment<'t> {
    /// Reads the segment at the beginning of a string. Returns the segment with its length, which
    /// is at least one character unless the text is empty.
    fn read(text: &'t str) -> (Self, usize) {
        let first = text.chars().next();
        let mut at = if text.starts_with(ANONYMOUS) {
            ANONYMOUS.len()
        } else if let Some(length) = operator(text) {
            length
        } else {
            match first {
                Some('<' | '{' | '[' | '(') => closed(text),
                first => {
                    let end = |(i, c): (usize, char)| {
                        let is_end = "<([{ &*".contains(c) || text[i..].starts_with("::");
                        is_end.then_some(i)
                    };
                    let end = text.char_indices().find_map(end).unwrap_or(text.len());
                    end.max(first.map_or(0, char::len_utf8))
                }
            }
        };
        let mut segment = Self {
            base: &text[..at],
            arguments: "",
            parameters: "",
        };
        if first == Some('<') {
            return (segment, at);
        }
        loop {
            let rest = &text[at..];
            let length = closed(rest);
            match rest.bytes().next() {
                // An ABI tag follows, as in `f[abi:cxx11]`.
                Some(b'[') => {}
                Some(b'<') if segment.arguments.is_empty() && segment.parameters.is_empty() => {
                    segment.arguments = &rest[..length];
                }
                Some(b'(') if segment.parameters.is_empty() && !rest.starts_with(ANONYMOUS) => {
                    segment.parameters = &rest[..length];
                }
                _ => return (segment, at),
            }
            at += length;
        }
    }

    /// Whether a user who wrote `wanted` may mean this segment.
    fn fits(&self, wanted: &Segment<'_>) -> bool {
        let same =
            |own: &str, wanted: &str, more| wanted.is_empty() || same_types(own, wanted, more);
        self.base == wanted.base
            && same(self.arguments, wanted.arguments, More::Defaults)
            && same(self.parameters, wanted.parameters, More::Nothing)
    }

    /// Whether the segment is a namespace that users do not know. Such a namespace is a library's
    /// version (`__1`, `__cxx11`, `v2`), or has no name.
    fn is_inline(&self) -> bool {
        let version = self.base.strip_prefix("__");
        let version = version.or_else(|| self.base.strip_prefix('v'));
        let is_version = |text: &str| {
            text == "cxx11" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        self.base == ANONYMOUS || version.is_some_and(is_version)
    }
}

const ANONYMOUS: &str = "(anonymous namespace)";

/// The C++ operators that are written as symbols, the longest first.
const OPERATORS: [&str; 39] = [
    "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "^=", "&=", "|=", "->", "()", "[]", "<", ">", "+", "-", "*", "/", "%",
    "^", "&", "|", "~", "!", "=", ",",
];

/// Returns the length of an operator's name at the beginning of a string, without arguments and
/// parameters.
fn operator(text: &str) -> Option<usize> {
    const WORD: &str = "operator";
    let rest = text.strip_prefix(WORD)?;
    let signs = || {
        let mut all = OPERATORS.iter();
        all.find(|sign| {
            let after = rest.strip_prefix(**sign);
            after.is_some_and(|after| after.is_empty() || after.starts_with(['<', '(', '[']))
        })
    };
    if let Some(sign) = signs() {
        return Some(WORD.len() + sign.len());
    }
    // For a conversion to a type, `new`, `co_await`, or a literal operator, the name is everything
    // up to the parameters.
    let is_other = rest.starts_with(' ') || rest.starts_with("\"\"");
    is_other.then(|| {
        let mut at = WORD.len();
        while let Some(next) = text[at..].chars().next() {
            at += match next {
                '(' if !text[at..].starts_with(ANONYMOUS) => break,
                '<' | '(' => closed(&text[at..]),
                _ => next.len_utf8(),
            };
        }
        at
    })
}

/// A [squeezed] name, split into its parts.
#[derive(Debug)]
pub(super) struct Parts<'t> {
    /// The position of the path's start, after a type.
    pub(super) start: usize,
    path: Vec<Segment<'t>>,
    /// The text after the parameters, such as `const`.
    qualifiers: &'t str,
    omitted: Omitted,
}

/// The namespaces that a user may omit from a name, apart from inline namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    /// No namespace, because the user wrote `::` before the path.
    Nothing,
    Leading,
    Any,
}

impl<'t> Parts<'t> {
    pub(super) fn read(text: &'t str) -> Self {
        let mut at = if text.starts_with("::") { 2 } else { 0 };
        let mut found = Self {
            start: at,
            path: Vec::new(),
            qualifiers: "",
            omitted: match at {
                0 => Omitted::Leading,
                _ => Omitted::Nothing,
            },
        };
        loop {
            let (segment, length) = Segment::read(&text[at..]);
            found.path.push(segment);
            at += length;
            let rest = &text[at..];
            if rest.is_empty() {
                return found;
            }
            if rest.starts_with("::") {
                at += 2;
                continue;
            }
            if !segment.parameters.is_empty() && is_qualifier(rest) {
                found.qualifiers = rest.trim_start();
                return found;
            }
            // The text so far is the type before the name.
            at += rest.len() - rest.trim_start_matches([' ', '&', '*']).len();
            let words = ["const ", "volatile "];
            while let Some(word) = words.iter().find(|word| text[at..].starts_with(**word)) {
                at += word.len();
            }
            found.path.clear();
            found.start = at;
        }
    }

    /// Returns the last segment's name.
    pub(super) fn last(&self) -> &'t str {
        self.path.last().map_or("", |segment| segment.base)
    }

    /// Returns the paths by which users refer to this function.
    fn ways(&self) -> Ways<'t> {
        let (at, of) = match self.path.iter().rposition(|one| one.base.starts_with('<')) {
            None => return Ways::Plain(self.path.clone()),
            Some(at) => (at, self.path[at].base),
        };
        let tail = &self.path[at + 1..];
        let of = of.strip_suffix('>').unwrap_or(of);
        let (of_trait, of_type) = if let Some(inner) = implementation(of) {
            let parts = split(inner, "for");
            parts.map_or((None, inner), |(of_trait, of_type)| {
                (Some(of_trait), of_type)
            })
        } else {
            let inner = of.strip_prefix('<').unwrap_or(of);
            let parts = split(inner, "as");
            parts.map_or((None, inner), |(of_type, of_trait)| {
                (Some(of_trait), of_type)
            })
        };
        let whole = |of: &'t str| {
            let of = of.trim_start_matches(['&', '*']);
            let words = ["mut ", "const ", "dyn "];
            let word = words.iter().find_map(|word| of.strip_prefix(word));
            let mut path = Parts::read(word.unwrap_or(of)).path;
            path.extend(tail);
            path
        };
        Ways::Of {
            of_type: whole(of_type),
            of_trait: of_trait.map(whole),
        }
    }

    /// Whether a user who wrote `wanted` may mean this name. The user may omit leading namespaces,
    /// generic arguments, and parameters with everything after them.
    pub(super) fn fits(&self, wanted: &Parts<'_>) -> bool {
        if !wanted.qualifiers.is_empty() && wanted.qualifiers != self.qualifiers {
            return false;
        }
        let omitted = wanted.omitted;
        match (self.ways(), wanted.ways()) {
            (Ways::Plain(own), Ways::Plain(wanted)) => ends_in(&own, &wanted, omitted),
            (Ways::Of { of_type, of_trait }, Ways::Plain(wanted)) => {
                ends_in(&of_type, &wanted, omitted)
                    || of_trait.is_some_and(|own| ends_in(&own, &wanted, omitted))
            }
            // In Rust's mangling before 2021, a type's own function has the path of the type.
            (
                Ways::Plain(own),
                Ways::Of {
                    of_type,
                    of_trait: None,
                },
            ) => ends_in(&own, &of_type, omitted),
            (Ways::Plain(_), Ways::Of { .. }) => false,
            (
                Ways::Of { of_type, of_trait },
                Ways::Of {
                    of_type: wanted,
                    of_trait: wanted_trait,
                },
            ) => {
                ends_in(&of_type, &wanted, omitted)
                    && wanted_trait.is_none_or(|wanted| {
                        of_trait.is_some_and(|own| ends_in(&own, &wanted, omitted))
                    })
            }
        }
    }

    /// Returns the name without any text in brackets. A user may then also omit namespaces in the
    /// middle of the name, so `std::collections::HashMap` fits
    /// `std::collections::hash::map::HashMap`. A name that fits only the bare name is a suggestion,
    /// not an answer.
    pub(super) fn bare(&self) -> Parts<'t> {
        let bare = |segment: &Segment<'t>| Segment {
            base: segment.base,
            arguments: "",
            parameters: "",
        };
        Parts {
            path: self.path.iter().map(bare).collect(),
            start: self.start,
            qualifiers: "",
            omitted: Omitted::Any,
        }
    }
}

/// The paths by which users refer to a function.
enum Ways<'t> {
    Plain(Vec<Segment<'t>>),
    /// Rust's `<Type as Trait>::function`, `<impl Trait for Type>::function` and
    /// `<Type>::function`.
    Of {
        of_type: Vec<Segment<'t>>,
        of_trait: Option<Vec<Segment<'t>>>,
    },
}

fn is_qualifier(rest: &str) -> bool {
    let rest = rest.trim_start();
    let words = ["const", "volatile", "noexcept", "&", "[", "(", "."];
    words.iter().any(|word| rest.starts_with(word))
}

/// Whether a path ends in another path, ignoring inline namespaces and namespaces that may be
/// omitted.
fn ends_in(path: &[Segment<'_>], end: &[Segment<'_>], omitted: Omitted) -> bool {
    let mut path = path.iter().rev().peekable();
    for (i, wanted) in end.iter().rev().enumerate() {
        while i > 0
            && path
                .next_if(|own| {
                    own.base != wanted.base && (own.is_inline() || omitted == Omitted::Any)
                })
                .is_some()
        {}
        if !path.next().is_some_and(|own| own.fits(wanted)) {
            return false;
        }
    }
    !end.is_empty() && (omitted != Omitted::Nothing || path.all(Segment::is_inline))
}

/// The arguments that a user may omit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Nothing,
    /// Trailing arguments that have defaults.
    Defaults,
}

/// Whether two lists of types or arguments are equal. The types in `wanted` may lack leading
/// namespaces.
fn same_types(own: &str, wanted: &str, more: More) -> bool {
    if own == wanted {
        return true;
    }
    let named = |text: &str| tokens(&text.replace("(anonymous namespace)::", ""));
    let (mut own, wanted) = (named(own), named(wanted));
    let last = wanted.len().saturating_sub(1);
    if more == More::Defaults && own.get(last).is_some_and(|token| token == ",") {
        own.drain(last..own.len() - 1);
    }
    own.len() == wanted.len()
        && own.iter().zip(&wanted).all(|(own, wanted)| {
            let head = own.strip_suffix(wanted.as_str());
            head.is_some_and(|head| head.is_empty() || head.ends_with("::"))
        })
}

/// Returns the paths, words and symbols of a list of types or arguments. They are normalised where
/// C++ allows several spellings.
fn tokens(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = if is_word(next) || rest.starts_with("::") {
            let mut at = 0;
            while let Some(next) = rest[at..].chars().next() {
                if is_word(next) {
                    at += next.len_utf8();
                } else if rest[at..].starts_with("::") {
                    at += 2;
                } else {
                    break;
                }
            }
            at
        } else {
            next.len_utf8()
        };
        let token = &rest[..length];
        rest = &rest[length..];
        if next == ' ' {
            continue;
        }
        all.push(plain(token));
    }
    // `unsigned` is `unsigned int`, and `(void)` is `()`.
    let mut at = 0;
    while at < all.len() {
        let next = all.get(at + 1).map(String::as_str);
        let is_short = ["unsigned", "signed"].contains(&all[at].as_str());
        if is_short && !next.is_some_and(|next| LENGTHS.contains(&next)) {
            all.insert(at + 1, "int".to_owned());
        }
        at += 1;
    }
    if all == ["(", "void", ")"] {
        all.remove(1);
    }
    // `const char*` is `char const*`.
    for at in 0..all.len() {
        let begins = at == 0 || ["(", "<", ","].contains(&all[at - 1].as_str());
        if begins && all[at] == "const" {
            let mut end = at + 1;
            let mut depth = 0usize;
            while let Some(token) = all.get(end) {
                match token.as_str() {
                    "<" => depth += 1,
                    ">" if depth > 0 => depth -= 1,
                    "*" | "&" | "," | ">" | ")" | "const" if depth == 0 => break,
                    _ => {}
                }
                end += 1;
            }
            all[at..end].rotate_left(1);
        }
    }
    all
}

const LENGTHS: [&str; 6] = ["int", "long", "short", "char", "__int128", "_BitInt"];

/// Returns a path without namespaces that users do not know, or a number without its type suffix.
fn plain(token: &str) -> String {
    if token.starts_with(|c: char| c.is_ascii_digit()) {
        let letters = ['u', 'U', 'l', 'L'];
        return token.trim_end_matches(letters).to_owned();
    }
    let is_kept = |part: &&str| {
        let segment = Segment {
            base: part,
            arguments: "",
            parameters: "",
        };
        !part.is_empty() && !segment.is_inline()
    };
    if !token.contains("::") {
        return token.to_owned();
    }
    let leads = if token.ends_with("::") { "::" } else { "" };
    let parts = Vec::from_iter(token.split("::").filter(is_kept));
    format!("{}{leads}", parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(name: &str, wanted: &str) -> bool {
        let (name, wanted) = (squeezed(name), squeezed(wanted));
        Parts::read(&name).fits(&Parts::read(&wanted))
    }

    #[test]
    fn blanks_that_mean_nothing_are_left_out() {
        for (name, squeezed_name) in [
            (
                " ns::Box< int , 2u >::sum< double > ( ) ",
                "ns::Box<int,2u>::sum<double>()",
            ),
            (
                "unsigned  long f(char const *)",
                "unsigned long f(char const*)",
            ),
            ("A::f()const", "A::f() const"),
            (
                "<app::W<f32>as app::Tr>::get",
                "<app::W<f32> as app::Tr>::get",
            ),
            (
                "app::apply::<app::main::{closure#0}>",
                "app::apply<app::main::{closure#0}>",
            ),
            (
                "core::slice::<impl [T]>::len",
                "core::slice::<impl[T]>::len",
            ),
            ("f::<fn(a) -> b>", "f<fn(a)->b>"),
        ] {
            assert_eq!(squeezed(name), squeezed_name, "{name}");
        }
    }

    #[test]
    fn what_is_left_out_does_not_matter() {
        for (name, wanted) in [
            ("space::foo(int, bool (*)(char))", "foo"),
            ("A::f() const", "A::f"),
            ("A::f() const", "f() const"),
            ("core::fmt::write", "fmt::write"),
            ("A::operator()(int)", "operator()"),
            ("A::operator()(int)", "A::operator()(int)"),
            (
                "std::ostream& operator<< <char>(std::ostream&)",
                "operator<<",
            ),
            (
                "std::ostream& operator<< <char>(std::ostream&)",
                "operator<< <char>",
            ),
            ("bool ns::operator< <int>(ns::B<int>)", "ns::operator<"),
            ("A::operator unsigned int()", "operator unsigned int"),
            (
                "A::operator std::vector<int>() const",
                "A::operator std::vector<int>",
            ),
            ("operator new[](unsigned long)", "operator new[]"),
            ("double ns::mix<double>(double)", "mix"),
            (
                "std::enable_if<(1)>2, int>::type ns::f<int>(int)",
                "ns::f<int>",
            ),
            ("(anonymous namespace)::f(int)", "f"),
            ("ns::(anonymous namespace)::f(int)", "ns::f"),
            ("void (anonymous namespace)::g<int>(int)", "g<int>"),
            (
                "int ns::Box<int, 2u>::sum<double>(double)",
                "ns::Box<int,2>::sum<double>",
            ),
            ("int ns::Box<int, 2u>::sum<double>(double)", "Box::sum"),
            (
                "std::__2::vector<int, std::__2::allocator<int>>::push_back(int&&)",
                "std::vector::push_back",
            ),
            (
                "std::__2::vector<int, std::__2::allocator<int>>::push_back(int&&)",
                "vector<int, std::allocator<int>>::push_back",
            ),
            ("f(char const*, unsigned int)", "f(const char *, unsigned)"),
            ("f()", "f(void)"),
            (
                "foo(int)::'lambda'(int)::operator()(int) const",
                "foo::'lambda'::operator()",
            ),
            ("<app::W<f32>>::get", "W::get"),
            ("<app::W<f32>>::get", "W<f32>::get"),
            ("<app::W<f32>>::get", "app::W<f32>::get"),
            ("<app::W<f32>>::get", "<W<f32>>::get"),
            ("<app::W<f32>>::get", "get"),
            ("<app::W<f32> as app::Tr>::get", "W::get"),
            ("<app::W<f32> as app::Tr>::get", "Tr::get"),
            ("<app::W<f32> as app::Tr>::get", "<W as Tr>::get"),
            (
                "<app::W<f32> as app::Tr>::get::<u8>",
                "<app::W<f32> as Tr>::get::<u8>",
            ),
            ("app::<impl app::Tr for app::W<T>>::get", "W::get"),
            ("app::W<T>::get", "W::get"),
            ("app::W<T>::get", "<app::W<T>>::get"),
            ("app::run::<i32>::{closure#0}", "run::{closure#0}"),
            ("app::apply::<F>", "app::apply"),
            ("Stack<std::vector<int>>::push<char>(char)", "Stack::push"),
            ("decltype(auto) f<int>(int)", "f"),
            ("ns::g(int)", "::ns::g"),
            (
                "std::__2::vector<int, std::__2::allocator<int>>::size() const",
                "std::vector<int>::size",
            ),
            (
                "ns::v1::Box<double, 3>::sum(int)",
                "ns::Box<double>::sum(int)",
            ),
            ("ns::f((anonymous namespace)::T, int)", "f(T, int)"),
            (
                "ns::Box<ns::(anonymous namespace)::T>::sum()",
                "Box<T>::sum",
            ),
        ] {
            assert!(fits(name, wanted), "{name}: {wanted}");
        }
        for (name, wanted) in [
            ("space::foo(int)", "oo"),
            ("space::foo(int)", "pace::foo"),
            ("space::foo(int)", "::foo"),
            ("space::foo(int)", "foo(long)"),
            ("A::f() const", "f() volatile"),
            ("mix<double>(double)", "mix<int>"),
            ("app::W<T>::get", "<W<T> as Tr>::get"),
            ("<app::W<f32> as app::Tr>::get", "<W as Other>::get"),
            ("<app::W<f32> as app::Tr>::get", "W<f64>::get"),
            ("app::run::{closure#0}", "run"),
            ("bool operator< <int>(B<int>)", "operator<<"),
            ("Box<double, 3>::sum(int)", "Box<int>::sum"),
            ("Box<double, 3>::sum(int)", "Box<double, 4>::sum"),
            ("f(int, int)", "f(int)"),
            ("view::Box::sum(int)", "::Box::sum"),
            (
                "std::collections::hash::map::HashMap::insert",
                "std::collections::HashMap::insert",
            ),
        ] {
            assert!(!fits(name, wanted), "{name}: {wanted}");
        }
    }

    #[test]
    fn namespaces_in_the_middle_are_guessed() {
        let guess = |name: &str, wanted: &str| {
            let (name, wanted) = (squeezed(name), squeezed(wanted));
            Parts::read(&name).fits(&Parts::read(&wanted).bare())
        };
        let insert = "std::collections::hash::map::HashMap<K,V,S>::insert";
        assert!(guess(insert, "std::collections::HashMap::insert"));
        assert!(guess(insert, "collections::HashMap<u8, u8>::insert"));
        assert!(guess("lib::current::f(int)", "lib::f"));
        assert!(!guess(insert, "std::BTreeMap::insert"));
        assert!(!guess("lib::current::f(int)", "f::lib"));
    }

    #[test]
    fn any_text_ends() {
        let pieces = [
            "<", ">", "(", ")", "::", "operator", " ", "a", "[", "{", "-", "&", "é", "impl ",
        ];
        let mut state = 1u32;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text += pieces[(state >> 16) as usize % pieces.len()];
            }
            let name = squeezed(&text);
            let parts = Parts::read(&name);
            assert!(
                name.is_empty() || parts.fits(&Parts::read(&name)) || parts.last().is_empty(),
                "{text}"
            );
        }
    }
}
