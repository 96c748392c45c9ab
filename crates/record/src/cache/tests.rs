use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;

/// A module with some code.
const MODULE: &str = r#"(module (func (export "f") (param i32) (result i32)
    (local i32) (loop $l (local.set 1 (i32.add (local.get 1) (i32.mul (local.get 0) (i32.const 7))))
    (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (local.get 1)))"#;

/// Fills a cache with the module and returns the cached file's path.
fn filled() -> (TempDir, Engine, Vec<u8>, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::default();
    let bytes = wat::parse_str(MODULE).unwrap();
    let cache = Cache::in_folder(folder.path());
    let path = cache.own(&CODE).unwrap().join(key(&engine, &bytes));
    store(&path, &Module::new(&engine, &bytes).unwrap()).unwrap();
    (folder, engine, bytes, path)
}

#[test]
fn what_was_kept_is_loaded() {
    let (folder, engine, _, path) = filled();
    assert!(path.starts_with(folder.path().join(CODE.folder)));
    assert!(load(&engine, &path).is_some());
}

/// Executing damaged code ends in a signal or, worse, in a wrong answer.
#[test]
fn code_of_which_any_bit_is_another_is_not_loaded() {
    let (folder, engine, bytes, path) = filled();
    let whole = fs::read(&path).unwrap();
    assert!(checked(&path).is_some());
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).unwrap();
        assert!(checked(&path).is_none(), "byte {at}");
    }
    for length in (0..whole.len()).step_by(97) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(checked(&path).is_none(), "cut at {length}");
    }
    fs::write(&path, [&whole[..], b"\0"].concat()).unwrap();
    assert!(checked(&path).is_none());
    // The file is removed and the module compiled.
    let cache = Cache::in_folder(folder.path());
    assert!(cache.compile(&engine, &bytes).is_ok());
    assert!(!path.exists(), "compiled too fast to be kept");
    // Intact code under another module's name is rejected.
    fs::write(&path, &whole).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let ending = CODE.ending;
    let other = path.with_file_name(format!("{}{ending}", "0".repeat(name.len() - ending.len())));
    fs::rename(&path, &other).unwrap();
    assert!(checked(&other).is_none());
}

#[test]
fn files_that_are_not_ours_stay() {
    let (folder, _, _, path) = filled();
    let own = path.parent().unwrap();
    let ours = fs::read(&path).unwrap();
    let old = SystemTime::now() - Duration::from_secs(1 << 20);
    let key = "0123456789abcdef".repeat(4);
    let foreign = [
        folder.path().join("thesis.txt"),
        folder.path().join(format!("{key}.native")),
        own.join("thesis.txt"),
        own.join(format!("{key}.txt")),
        own.join(format!("{}.native", &key[1..])),
        own.join(format!("{key}.native")),
        own.join(format!("{key}.x.tmp")),
    ];
    for path in &foreign {
        // Files with foreign names have our label, and files with our name have a foreign label.
        let has_our_name = path.ends_with(format!("{key}.native"));
        fs::write(path, if has_our_name { b"mine" } else { &ours[..] }).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
    }
    let mut kept = Vec::new();
    for (age, name) in ["1.native", "2.7.tmp", "3.native"].iter().enumerate() {
        let path = own.join(format!("{}{name}", &key[1..]));
        fs::write(&path, &ours).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let time = old + Duration::from_secs(age as u64);
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
        kept.push(path);
    }
    // Trimming removes the two oldest of our four files. One of them is half-written.
    let limited = |limit| Kind { limit, ..CODE };
    trim(&path, &limited(2 * ours.len() as u64)).unwrap();
    let left = kept.iter().map(|path| path.exists());
    assert_eq!(Vec::from_iter(left), [false, false, true]);
    assert!(path.exists());
    trim(&path, &limited(0)).unwrap();
    assert!(!path.exists());
    for path in foreign {
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn a_folder_that_others_can_write_is_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(folder.path(), 0o777).unwrap();
    assert!(Cache::in_folder(folder.path()).own(&CODE).is_none());
    set(folder.path(), 0o700).unwrap();
    let own = Cache::in_folder(folder.path()).own(&CODE).unwrap();
    set(&own, 0o777).unwrap();
    assert!(Cache::in_folder(folder.path()).own(&CODE).is_none());
}
