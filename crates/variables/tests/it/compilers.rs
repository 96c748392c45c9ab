//! Tests the variables of guests from clang and rustc. Values come from the data segments and from
//! artificial locals.

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_variables::{
    FunctionScopes, Limits, Machine, Nothing, Unavailable, VariableKind, VariableLocation,
    Variables, Word,
};
use wasmparser::{DataKind, ExternalKind, Operator, Parser, Payload};

use crate::common::Moment;
use crate::guests::Compiled;

/// An opened guest, before its run.
struct OpenedGuest<'g> {
    variables: Variables<'g>,
    function: FunctionScopes,
    start: OrigOffset,
    end: OrigOffset,
    moment: Moment,
}

impl<'g> OpenedGuest<'g> {
    fn new(guest: &'g Compiled, export: &str) -> Self {
        let (mut index, mut imported, mut bodies) = (None, 0, Vec::new());
        let mut moment = Moment {
            memory: vec![0; 4 << 20],
            ..Moment::default()
        };
        for payload in Parser::new(0).parse_all(&guest.module) {
            match payload.unwrap() {
                Payload::ImportSection(imports) => {
                    let kinds = imports.into_imports().map(|import| import.unwrap().ty);
                    imported = kinds
                        .filter(|ty| matches!(ty, wasmparser::TypeRef::Func(_)))
                        .count();
                }
                Payload::ExportSection(exports) => {
                    let mut exports = exports.into_iter().map(Result::unwrap);
                    let found = exports.find(|e| e.name == export && e.kind == ExternalKind::Func);
                    index = found.map(|export| export.index);
                }
                Payload::CodeSectionEntry(body) => bodies.push(body.range()),
                Payload::DataSection(segments) => {
                    for segment in segments {
                        let segment = segment.unwrap();
                        let DataKind::Active { offset_expr, .. } = segment.kind else {
                            continue;
                        };
                        let at = match offset_expr.get_operators_reader().read() {
                            Ok(Operator::I32Const { value }) => value as usize,
                            other => panic!("{other:?}"),
                        };
                        moment.write(at, segment.data);
                    }
                }
                _ => {}
            }
        }
        let index = index.unwrap();
        let body = &bodies[index as usize - imported];
        let variables = Variables::open(&guest.module).unwrap();
        let function = variables.function(FuncId::from_u32(index)).unwrap();
        let [start, end] = [body.start, body.end].map(|at| OrigOffset(at as u32));
        Self {
            variables,
            function,
            start,
            end,
            moment,
        }
    }

    fn show(&self, path: &str, at: OrigOffset) -> String {
        let place = Some((&self.function, at));
        let limits = Limits {
            pointers: 0,
            ..Limits::default()
        };
        match self
            .variables
            .resolve(&path.parse().unwrap(), place, &self.moment)
        {
            Ok(object) => self
                .variables
                .render(&object, &limits, &self.moment)
                .to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    fn global(&self, path: &str) -> String {
        self.show(path, self.start)
    }

    /// Returns the bytes of memory at the elements of a global variable.
    fn content(&self, path: &str) -> Vec<u8> {
        let place = Some((&self.function, self.start));
        let path = path.parse().unwrap();
        let object = self.variables.resolve(&path, place, &self.moment).unwrap();
        let limits = Limits::default();
        let pieces = self.variables.content(&object, &limits, &self.moment);
        let each = pieces.iter().flat_map(|piece| {
            let VariableLocation::Memory(address) = piece.place else {
                panic!("{piece:?}")
            };
            let mut bytes = vec![0; piece.bytes as usize];
            assert!(self.moment.memory(address, &mut bytes));
            bytes
        });
        each.collect()
    }

    /// Returns the offsets at which a variable with this name can be located.
    fn located(&self, name: &str) -> Vec<OrigOffset> {
        let all = (self.start.0..self.end.0).map(OrigOffset);
        all.filter(|at| {
            let found = self.variables.in_scope_of(&self.function, *at).unwrap();
            let variable = found.into_iter().find(|variable| variable.name == name);
            variable.is_some_and(|v| self.variables.locate(&v, Some(*at), &self.moment).is_ok())
        })
        .collect()
    }
}

fn guests(source: &'static str) -> impl Iterator<Item = &'static Compiled> {
    crate::guests::compiled()
        .iter()
        .filter(move |guest| guest.source == source)
}

#[test]
fn global_variables_of_c() {
    for guest in guests("list.c") {
        let asked = OpenedGuest::new(guest, "sum");
        assert_eq!(
            asked.variables.warnings().collect::<Vec<_>>(),
            Vec::<&str>::new()
        );
        let first = asked.global("table[0]");
        assert!(
            first.starts_with("{ key = 10, name = \"ten\", next = 0x"),
            "{first}"
        );
        assert!(
            first.ends_with(", flag = 5, mode = 17, balance = -2 }"),
            "{first}"
        );
        assert_eq!(asked.global("table[0].next->next->name"), "\"thirty\"");
        assert_eq!(asked.global("table[2].next"), "0x0");
        assert_eq!(asked.global("grid"), "{ { 1, 2, 3 }, { 4, 5, 6 } }");
        assert!(
            asked.global("greeting").ends_with(" \"hello\""),
            "{}",
            asked.global("greeting")
        );
        // The place of a part of a global variable does not depend on the moment.
        let path = "table[2].name[1]".parse().unwrap();
        let part = asked.variables.resolve(&path, None, &Nothing).unwrap();
        let table = asked
            .variables
            .resolve(&"table".parse().unwrap(), None, &Nothing);
        let start = table.unwrap().address().unwrap();
        assert_eq!(part.address(), Some(start + 2 * 20 + 4 + 1));
        assert_eq!(asked.global("ratio"), "0.25");
        assert_eq!(asked.global("paint"), "GREEN");
        // In optimised code, it is a constant outside memory.
        assert_eq!(
            asked.global("steps"),
            (1u64 << 40).to_string(),
            "-O{}",
            guest.level
        );
        assert_eq!(asked.global("calls"), "3");
        let next = asked.variables.find_global("table").unwrap();
        assert_eq!(asked.variables.type_name(next.type_ref).unwrap(), "node[3]");
    }
}

#[test]
fn unoptimised_c_keeps_its_variables_in_the_frame() {
    for guest in guests("list.c").filter(|guest| guest.level.starts_with('0')) {
        let mut asked = OpenedGuest::new(guest, "sum");
        let names = |asked: &OpenedGuest<'_>, at| {
            let found = asked.variables.in_scope_of(&asked.function, at).unwrap();
            found
                .into_iter()
                .map(|v| (v.name, v.kind == VariableKind::Parameter, v.shadowed))
                .collect::<Vec<_>>()
        };
        let own = |name: &str, parameter| (name.to_string(), parameter, false);
        let outer = [
            own("calls", false),
            own("p", true),
            own("n", true),
            own("weight", true),
            own("total", false),
            own("f", false),
        ];
        assert_eq!(names(&asked, asked.start), outer);
        // The frame's local is not set yet, and the parameters are the function's arguments.
        let all = asked.variables.in_scope_of(&asked.function, asked.start);
        let all = all.unwrap();
        for (parameter, local) in (0..).zip(&all[1..4]).map(|(local, it)| (it, local)) {
            let found = asked
                .variables
                .locate(parameter, Some(asked.start), &asked.moment);
            assert_eq!(
                found.unwrap().pieces[0].place,
                VariableLocation::Local(local)
            );
        }
        let frame = match asked
            .variables
            .locate(&all[4], Some(asked.start), &asked.moment)
        {
            Err(Unavailable::Unknown(VariableLocation::Local(frame))) => frame,
            other => panic!("{other:?}"),
        };
        asked.moment.locals.insert(frame, Word::w32(0));
        let why = asked.global("total");
        let early = "error: not set yet: the function has no stack frame here; it has one from @0x";
        assert!(why.starts_with(early), "{why}");
        asked.moment.locals.insert(frame, Word::w32(0x8000));
        let inside = asked.located("key");
        assert!(!inside.is_empty());
        let here = names(&asked, inside[0]);
        assert_eq!(here[..2], [own("key", false), own("i", false)]);
        assert_eq!(here[2..], outer);
        // Inside the block with the second `total`, the first `total` is shadowed.
        let all = (asked.start.0..asked.end.0).map(OrigOffset);
        let both = |at: &OrigOffset| {
            names(&asked, *at)
                .iter()
                .filter(|(name, ..)| name == "total")
                .count()
                == 2
        };
        let block = all.clone().find(both).unwrap();
        assert_eq!(names(&asked, block)[0], own("total", false));
        assert!(names(&asked, block).contains(&("total".into(), false, true)));
        let table = asked.variables.find_global("table").unwrap();
        let table = asked
            .variables
            .locate(&table, None, &asked.moment)
            .unwrap()
            .address()
            .unwrap();
        let place = asked.variables.resolve(
            &"p".parse().unwrap(),
            Some((&asked.function, block)),
            &asked.moment,
        );
        asked
            .moment
            .word(place.unwrap().address().unwrap() as usize, table as u32);
        assert_eq!(asked.show("p->next->key", block), "20");
        assert_eq!(asked.show("p[2].key", block), "30");
        assert!(
            asked
                .show("key", block)
                .contains("not in scope here; the nearest place"),
            "{}",
            asked.show("key", block)
        );
    }
}

#[test]
fn optimised_c_keeps_its_variables_in_locals() {
    for guest in guests("list.c").filter(|guest| guest.level.starts_with('2')) {
        let mut asked = OpenedGuest::new(guest, "sum");
        let table = asked.variables.find_global("table").unwrap();
        let table = asked
            .variables
            .locate(&table, None, &asked.moment)
            .unwrap()
            .address()
            .unwrap();
        asked.moment.locals.insert(0, Word::w32(table as u32));
        asked.moment.locals.insert(1, Word::w32(3));
        asked.moment.locals.insert(2, Word::w64(1.5f64.to_bits()));
        assert_eq!(asked.global("p->next->key"), "20");
        assert_eq!(asked.global("n"), "3");
        assert_eq!(asked.global("weight"), "1.5");
        assert_eq!(
            asked.global("&p"),
            "error: it has no address: it is not in memory"
        );
        // The call replaced the pointer to the function.
        assert_eq!(asked.global("f"), "error: optimised out");
        // Inlined variables are present, with their depth.
        let all = (asked.start.0..asked.end.0).map(OrigOffset);
        let inlined = all.filter_map(|at| {
            let found = asked.variables.in_scope_of(&asked.function, at).unwrap();
            found.into_iter().find(|v| v.name == "doubled")
        });
        let found: Vec<_> = inlined.collect();
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|v| v.inlined == 1 && v.function.as_deref() == Some("twice"))
        );
    }
}

#[test]
fn classes_and_namespaces_of_cpp() {
    for guest in guests("shapes.cpp") {
        let mut asked = OpenedGuest::new(guest, "area");
        let variables = &asked.variables;
        assert_eq!(asked.global("geo::scale"), "2");
        assert_eq!(asked.global("Other::count"), "9");
        assert_eq!(asked.global("geo::kind"), "B");
        assert_eq!(asked.global("both"), "{ { low = 0, high = 0 }, all = 0 }");
        assert_eq!(asked.global("level"), "LOW");
        let flags = "{ a = 5, b = -3, c = true, wide = 1094624909430, tint = Red }";
        assert_eq!(asked.global("flags"), flags);
        let near = asked.global("near");
        assert!(
            near.ends_with("near = \"near\" }, is_far = false }"),
            "{near}"
        );
        assert_eq!(
            asked.global("magic"),
            "{ 0x7f, 0x45, 0x4c, 0x46, 0x01, 0x01, 0x01, 0x00, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 }"
        );
        assert_eq!(asked.global("temperatures"), "{ -1, -2, 3, 4 }");
        assert_eq!(asked.global("buffer"), r#""ok\000\001x""#);
        assert_eq!(asked.global("marks"), r#""'\"\\\033""#);
        assert_eq!(asked.global("nothing"), "nullptr");
        assert_eq!(asked.global("yes"), "true");
        let gone = variables.find_global("gone").unwrap();
        assert_eq!(variables.type_name(gone.type_ref).unwrap(), "int &&");
        let high = asked.global("&both.high");
        assert_eq!(asked.global("&gone"), high);
        assert_eq!(asked.global("pointer"), high);
        assert_eq!(asked.global("&reference"), asked.global("&both.low"));
        let found = variables.find_global("geo::box").unwrap();
        assert_eq!(
            variables.type_name(found.type_ref).unwrap(),
            "Box<double, 2>"
        );
        let place = variables
            .locate(&found, None, &asked.moment)
            .unwrap()
            .address()
            .unwrap() as usize;
        asked.moment.word(place, 4);
        asked.moment.write(place + 4, b"xy\0");
        asked.moment.write(place + 16, &2.5f64.to_le_bytes());
        let shown = asked.global("geo::box");
        assert_eq!(
            shown,
            "{ <Base> = { id = 4 }, <Other> = { tag = \"xy\" }, v = { 0.0, 2.5 }, on = false }"
        );
        assert_eq!(asked.global("geo::box.id"), "4");
        if guest.level.starts_with('2') {
            asked.moment.locals.insert(0, Word::w32(place as u32));
            asked.moment.locals.insert(1, Word::w32(7));
            assert_eq!(asked.global("b.v[1]"), "2.5");
            assert_eq!(asked.global("k"), "B");
        }
    }
}

#[test]
fn rust_types_as_dwarf_says_them() {
    for guest in guests("rust.rs") {
        let mut asked = OpenedGuest::new(guest, "area");
        assert_eq!(
            asked.variables.warnings().collect::<Vec<_>>(),
            Vec::<&str>::new()
        );
        assert_eq!(asked.global("rust::state::TABLE"), "{ 1, 2, 3, 4 }");
        let person = asked.global("state::PERSON");
        for part in ["age = -3", "name = \"héllo\",", "next = None", "wide = -5"] {
            assert!(person.contains(part), "{person}");
        }
        assert_eq!(asked.global("state::SHAPE"), "Rect { w = 6, h = 7 }");
        assert_eq!(asked.global("state::SHAPE.Rect.h"), "7");
        assert_eq!(asked.global("state::MAYBE"), "Some(true)");
        assert_eq!(asked.global("state::PAIR"), "(1, 'x')");
        assert_eq!(asked.global("state::PAIR.1"), "'x'");
        assert_eq!(asked.global("state::WORDS"), r#"{ "one", "two\n\"\001" }"#);
        assert_eq!(asked.global("state::WORDS[0]"), "\"one\"");
        assert_eq!(
            asked.global("state::WORDS[2]"),
            "error: index 2 is outside the container, which has 2 elements"
        );
        assert_eq!(asked.global("state::NESTED"), "Some(Some(Low))");
        assert_eq!(asked.global("state::EMPTY"), "{}");
        assert_eq!(asked.content("state::WORDS[1]"), b"two\n\"\x01");
        assert_eq!(asked.content("state::PERSON.name"), "héllo".as_bytes());
        // The two slices have an address and a length each.
        assert_eq!(asked.content("state::WORDS").len(), 16);
        for nothing in ["state::EMPTY", "state::TABLE", "state::PERSON"] {
            assert!(asked.content(nothing).is_empty(), "{nothing}");
        }
        if guest.level.starts_with('2') {
            let shape = asked.global("&state::SHAPE");
            let address = u32::from_str_radix(&shape[2..], 16).unwrap();
            asked.moment.locals.insert(0, Word::w32(address));
            asked.moment.locals.insert(1, Word::w32(2));
            assert_eq!(asked.global("*shape"), "Rect { w = 6, h = 7 }");
            assert_eq!(asked.global("factor"), "2");
        } else {
            assert!(
                !asked.located("factor").is_empty()
                    || asked.global("factor").contains("is not known")
            );
        }
    }
}
