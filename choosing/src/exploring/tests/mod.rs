//! The explorer, by itself and in synthetic applications.

mod applications;
mod in_step;
mod simulator;
mod single;
mod table;
