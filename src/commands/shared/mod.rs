//! What several subcommands share: flags, and what is printed.

pub mod budget;
pub mod calibration;
pub mod figure;
pub mod gains;
pub mod levels;
pub mod network;
pub mod on_testbed;
pub mod options;
pub mod output;
pub mod penalties;
pub mod plugins;
pub mod points;
pub mod rivals;
pub mod violations;
