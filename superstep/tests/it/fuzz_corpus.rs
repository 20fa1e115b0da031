//! Every file of `fuzz/corpus`, through the function that its fuzz target calls.

use std::fs;
use std::path::{Path, PathBuf};

use superstep::fuzzing;

/// The targets, by the names of their folders.
const TARGETS: [(&str, fn(&[u8])); 2] = [("filter", fuzzing::filter_target), ("open", fuzzing::open_target)];

fn fuzz_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(name)
}

/// What is in a folder, sorted.
fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    paths
}

fn stems(folder: &Path) -> Vec<String> {
    paths(folder).iter().map(|path| path.file_stem().expect("it has a name").display().to_string()).collect()
}

#[test]
fn every_target_has_its_corpus_and_every_corpus_its_target() {
    let names = TARGETS.map(|(name, _)| name);
    assert_eq!(stems(&fuzz_folder("fuzz_targets")), names);
    assert_eq!(stems(&fuzz_folder("corpus")), names);
}

#[test]
fn no_file_of_the_corpus_breaks_its_target() {
    for (name, target) in TARGETS {
        let files = paths(&fuzz_folder("corpus").join(name));
        assert!(!files.is_empty(), "`fuzz/corpus/{name}` is empty");
        for file in files {
            // Shown if the target panics.
            println!("{}", file.display());
            target(&fs::read(&file).expect("the file can be read"));
        }
    }
}
