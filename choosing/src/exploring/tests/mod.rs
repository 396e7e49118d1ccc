//! The explorer, by itself and in synthetic applications.

mod applications;
mod simulator;
mod single;
mod table;
