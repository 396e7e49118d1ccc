//! The tools, a file each.

mod csv;
mod imb;
mod imb_rows;
mod imb_titles;
mod osu;
mod osu_titles;
mod pico;
mod reprompi;
mod table;

pub use csv::Csv;
pub use imb::Imb;
pub use osu::Osu;
pub use pico::Pico;
pub use reprompi::ReproMpi;
