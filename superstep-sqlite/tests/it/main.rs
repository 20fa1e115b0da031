//! The tests of files, through the public API. What all databases must do is tested in `superstep/tests/it`.

mod database;
mod files;
