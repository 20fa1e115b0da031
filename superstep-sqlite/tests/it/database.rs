//! SQLite databases: opening, closing, and what is said when that does not work.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use superstep_sqlite::{DatabaseError, SqliteDatabase};

#[tokio::test]
async fn a_closed_database_can_be_opened_again_at_once() {
    let file = fresh("reopen");
    for _ in 0..5 {
        let database = SqliteDatabase::open(&file).unwrap();
        database.close().await.unwrap();
        assert!(!file.with_file_name("reopen.db-wal").exists(), "the file is complete");
        drop(SqliteDatabase::open(&file).unwrap());
    }
}

#[test]
fn one_file_can_be_open_several_times() {
    let file = fresh("twice");
    let databases: Vec<_> = (0..3).map(|_| SqliteDatabase::open(&file).unwrap()).collect();
    drop(databases);
}

#[test]
fn memory_is_no_file() {
    let database = SqliteDatabase::open(":memory:").unwrap();
    assert_eq!(format!("{database:?}"), format!("{:?}", SqliteDatabase::memory().unwrap()));
    assert!(!Path::new(":memory:").exists());
}

#[test]
fn a_missing_folder_is_named() {
    let file = fresh("missing").with_file_name("no-folder/agents.db");
    let folder = file.parent().unwrap().display();
    check(&file, &format!("the folder `{folder}` does not exist; create it first"));
}

#[test]
fn a_folder_is_no_database() {
    let folder = fresh("folder").parent().unwrap().to_owned();
    check(&folder, "it is a folder; give the path of a file");
    let empty = SqliteDatabase::open("").unwrap_err().to_string();
    assert_eq!(empty, "cannot open database ``: it is no path; give the path of a file");
}

#[test]
fn a_file_of_something_else_is_refused_and_left_alone() {
    let file = fresh("letter");
    let letter = "Dear Ada, ".repeat(100);
    fs::write(&file, &letter).unwrap();
    check(&file, "the file is no SQLite database; give another path");
    assert_eq!(fs::read_to_string(&file).unwrap(), letter);
}

#[test]
fn a_file_that_cannot_be_written_to_is_refused_by_name() {
    let file = unwritable();
    let error = SqliteDatabase::open(&file).unwrap_err();
    assert!(matches!(error, DatabaseError::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
}

#[test]
fn the_words_of_sqlite_are_the_source() {
    let file = fresh("source");
    fs::write(&file, "Dear Ada, ".repeat(100)).unwrap();
    let error = SqliteDatabase::open(&file).unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "file is not a database");
}

#[track_caller]
fn check(path: &Path, why: &str) {
    let error = SqliteDatabase::open(path).unwrap_err();
    assert!(matches!(error, DatabaseError::Open { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot open database `{}`: {why}", path.display()));
}

/// A path without a file, in a folder of its own.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sqlite").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{name}.db"))
}

/// A file that nobody may write to: one without the permission, or this running program, which even root may not
/// change.
fn unwritable() -> PathBuf {
    let file = fresh("unwritable");
    fs::write(&file, "").unwrap();
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).unwrap();
    match OpenOptions::new().write(true).open(&file) {
        Ok(_) => std::env::current_exe().unwrap(),
        Err(_) => file,
    }
}
