//! The simulator against an independent one: SimGrid's SMPI, which runs MPI programs in virtual
//! time. Runs where `smpirun` is installed (Debian: `apt-get install libsimgrid-dev`); says so and
//! passes where it isn't, unless `COLIBRI_TEST_REQUIRE` is `all`.

mod harness;
mod nodes;
mod ports;
mod sharing;
#[path = "../../../tests/skipped.rs"]
mod skipped;
