//! Every file of `fuzz/corpus`, through the function that its fuzz target calls.

use std::fs;
use std::path::{Path, PathBuf};

use superstep_storage::fuzzing;

/// The targets, by the names of their folders.
const TARGETS: [(&str, fn(&[u8])); 3] =
    [("checkpoint", fuzzing::checkpoint_target), ("filter", fuzzing::filter_target), ("open", fuzzing::open_target)];

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

/// So many changes of each file are tried; `SUPERSTEP_FUZZ_ROUNDS` asks for more.
fn rounds() -> u64 {
    match std::env::var("SUPERSTEP_FUZZ_ROUNDS") {
        Ok(number) => number.parse().expect("`SUPERSTEP_FUZZ_ROUNDS` is a number"),
        Err(_) => 100,
    }
}

#[test]
fn no_change_of_a_file_of_the_corpus_breaks_its_target() {
    for (name, target) in TARGETS {
        let files = paths(&fuzz_folder("corpus").join(name));
        let files: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("the file can be read")).collect();
        for (number, file) in files.iter().enumerate() {
            for round in 0..rounds() {
                let mut dice = Dice(round << 16 | number as u64);
                let data = changed(file, &files, &mut dice);
                // Shown if the target panics.
                println!("{name}, file {number}, round {round}: {data:02x?}");
                target(&data);
            }
        }
    }
}

/// Numbers that look random and come from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 32) % limit.max(1) as u64) as usize
    }
}

/// A file with some bytes changed, left out, put in or taken from another one.
fn changed(file: &[u8], others: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    const STRIKING: [u8; 12] = [0, 1, 0x7f, 0x80, 0x90, 0x91, 0xc0, 0xc4, 0xc6, 0xdd, 0xdf, 0xff];
    let mut data = file.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(data.len());
        let end = (at + 1 + dice.below(8)).min(data.len());
        match dice.below(6) {
            0 => data.truncate(at),
            1 => drop(data.drain(at.min(end)..end)),
            2 => data.insert(at, STRIKING[dice.below(STRIKING.len())]),
            3 if at < data.len() => data[at] = STRIKING[dice.below(STRIKING.len())],
            4 if at < data.len() => data[at] ^= 1 << dice.below(8),
            _ => {
                let other = &others[dice.below(others.len())];
                let from = dice.below(other.len());
                let part = other[from..].iter().take(1 + dice.below(32)).copied();
                drop(data.splice(at.min(end)..end, part).collect::<Vec<_>>());
            }
        }
    }
    data
}
