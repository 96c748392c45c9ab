//! Lists the known containers, with their names, the library versions tested, and the functions
//! that read them.

use super::Printer;

const LIBCXX: &str = "libc++ 19";
const RUST: &str = "Rust 1.95";

pub(super) const PRINTERS: [Printer; 46] = [
    Printer {
        library: LIBCXX,
        types: &["basic_string<"],
        read: |reader, object| reader.string(object),
    },
    Printer {
        library: LIBCXX,
        types: &["basic_string_view<", "span<"],
        read: |reader, object| reader.view(object),
    },
    Printer {
        library: LIBCXX,
        types: &["vector<"],
        read: |reader, object| reader.vector(object),
    },
    Printer {
        library: LIBCXX,
        types: &["map<", "multimap<", "set<", "multiset<"],
        read: |reader, object| reader.tree(object),
    },
    Printer {
        library: LIBCXX,
        types: &[
            "unordered_map<",
            "unordered_multimap<",
            "unordered_set<",
            "unordered_multiset<",
        ],
        read: |reader, object| reader.hash_table(object),
    },
    Printer {
        library: LIBCXX,
        types: &["list<"],
        read: |reader, object| reader.list(object),
    },
    Printer {
        library: LIBCXX,
        types: &["deque<"],
        read: |reader, object| reader.deque(object),
    },
    Printer {
        library: LIBCXX,
        types: &["array<"],
        read: |reader, object| reader.array(object),
    },
    Printer {
        library: LIBCXX,
        types: &["optional<"],
        read: |reader, object| reader.optional(object),
    },
    Printer {
        library: LIBCXX,
        types: &["unique_ptr<", "shared_ptr<"],
        read: |reader, object| reader.smart_pointer(object),
    },
    Printer {
        library: RUST,
        types: &["HashMap<"],
        read: |reader, object| reader.hash_map(object),
    },
    Printer {
        library: RUST,
        types: &["HashSet<"],
        read: |reader, object| reader.hash_set(object),
    },
    Printer {
        library: RUST,
        types: &["BTreeMap<", "BTreeSet<"],
        read: |reader, object| reader.b_tree(object),
    },
    Printer {
        library: RUST,
        types: &["Rc<", "Arc<"],
        read: |reader, object| reader.counted(object),
    },
    Printer {
        library: LIBCXX,
        types: &["tuple<"],
        read: |reader, object| reader.tuple(object),
    },
    Printer {
        library: LIBCXX,
        types: &["pair<"],
        read: |reader, object| reader.pair(object),
    },
    Printer {
        library: LIBCXX,
        types: &["variant<"],
        read: |reader, object| reader.variant(object),
    },
    Printer {
        library: LIBCXX,
        types: &["forward_list<"],
        read: |reader, object| reader.forward_list(object),
    },
    Printer {
        library: LIBCXX,
        types: &["bitset<"],
        read: |reader, object| reader.bitset(object),
    },
    Printer {
        library: LIBCXX,
        types: &["weak_ptr<"],
        read: |reader, object| reader.weak_ptr(object),
    },
    Printer {
        library: LIBCXX,
        types: &["function<"],
        read: |reader, object| reader.function(object),
    },
    Printer {
        library: LIBCXX,
        types: &["stack<", "queue<", "priority_queue<"],
        read: |reader, object| reader.only(object, &["c"]),
    },
    Printer {
        library: LIBCXX,
        types: &["complex<"],
        read: |reader, object| reader.complex(object),
    },
    Printer {
        library: LIBCXX,
        types: &["duration<"],
        read: |reader, object| reader.duration(object),
    },
    Printer {
        library: LIBCXX,
        types: &["time_point<"],
        read: |reader, object| reader.held(object, &["__d_"]),
    },
    Printer {
        library: LIBCXX,
        types: &["atomic<"],
        read: |reader, object| reader.held(object, &["__a_", "__a_value"]),
    },
    Printer {
        library: LIBCXX,
        types: &["initializer_list<"],
        read: |reader, object| reader.initializer_list(object),
    },
    Printer {
        library: LIBCXX,
        types: &["reference_wrapper<"],
        read: |reader, object| reader.reference(object),
    },
    Printer {
        library: RUST,
        types: &["Weak<"],
        read: |reader, object| reader.weak(object),
    },
    Printer {
        library: RUST,
        types: &[
            "&dyn ",
            "&mut dyn ",
            "&(dyn ",
            "&mut (dyn ",
            "Box<dyn ",
            "Box<(dyn ",
            "*const dyn ",
            "*mut dyn ",
        ],
        read: |reader, object| reader.trait_object(object),
    },
    Printer {
        library: RUST,
        types: &["Cell<"],
        read: |reader, object| reader.only(object, &["value", "value"]),
    },
    Printer {
        library: RUST,
        types: &["UnsafeCell<"],
        read: |reader, object| reader.only(object, &["value"]),
    },
    Printer {
        library: RUST,
        types: &["RefCell<"],
        read: |reader, object| reader.ref_cell(object),
    },
    Printer {
        library: RUST,
        types: &["Ref<", "RefMut<"],
        read: |reader, object| reader.borrow(object),
    },
    Printer {
        library: RUST,
        types: &["Mutex<"],
        read: |reader, object| reader.mutex(object),
    },
    Printer {
        library: RUST,
        types: &["RwLock<"],
        read: |reader, object| reader.rw_lock(object),
    },
    Printer {
        library: RUST,
        types: &["OnceCell<"],
        read: |reader, object| reader.once_cell(object),
    },
    Printer {
        library: RUST,
        types: &["OnceLock<"],
        read: |reader, object| reader.once_lock(object),
    },
    Printer {
        library: RUST,
        types: &["LinkedList<"],
        read: |reader, object| reader.linked_list(object),
    },
    Printer {
        library: RUST,
        types: &["BinaryHeap<"],
        read: |reader, object| reader.only(object, &["data"]),
    },
    Printer {
        library: RUST,
        types: &["OsString", "PathBuf"],
        read: |reader, object| reader.os_string(object),
    },
    Printer {
        library: RUST,
        types: &["Duration"],
        read: |reader, object| reader.rust_duration(object),
    },
    Printer {
        library: RUST,
        types: &["NonZero<"],
        read: |reader, object| reader.only(object, &["__0", "__0"]),
    },
    Printer {
        library: RUST,
        types: &["Wrapping<", "Saturating<"],
        read: |reader, object| reader.only(object, &["__0"]),
    },
    Printer {
        library: RUST,
        types: &["Atomic"],
        read: |reader, object| reader.atomic(object),
    },
    Printer {
        library: RUST,
        types: &[
            "Range<",
            "RangeFrom<",
            "RangeTo<",
            "RangeInclusive<",
            "RangeToInclusive<",
        ],
        read: |reader, object| reader.range(object),
    },
];
