//! Every file that Colibri reads or writes, and the words in them.
//!
//! The words come first: [`Collective`], [`Algorithm`], [`Method`], sizes in bytes ([`quantity`]).
//! Then one module per file: [`calibration`], [`choices`], [`plan`], [`observation`] (the raw
//! CSV records), [`penalty`], [`agreement`], [`profile`]. JSON files carry their schema's name and are read and written by
//! [`document`]; raw records are append-only and are read and written by [`record`].
//!
//! # What "message size" means
//!
//! It is defined here, once, and every file states it; see [`Collective::message_size`].

#![forbid(unsafe_code)]

pub mod agreement;
mod algorithm;
pub mod calibration;
pub mod candidates;
pub mod check;
pub mod choices;
mod collective;
pub mod confirmed;
pub mod disturbance;
pub mod document;
mod error;
pub mod export;
pub mod first_job;
pub mod group_observation;
pub mod imported;
pub mod job_nodes;
pub mod layout;
pub mod learned;
mod method;
mod names;
pub mod number;
pub mod observation;
mod own_method;
pub mod pairs;
pub mod penalty;
pub mod plan;
pub mod platform;
mod plugin;
pub mod profile;
pub mod progress;
pub mod quantity;
pub mod ranges;
mod rank_pair;
pub mod reading;
pub mod record;
mod root;
pub mod shared_cluster;
mod size_classes;
pub mod summary;
pub mod usage;
pub mod violations;

pub use algorithm::Algorithm;
pub use collective::{BufferContent, Collective, Point};
pub use error::FileError;
pub use layout::{Layout, RankPlacement};
pub use method::{Library, Method, MethodError, Native};
pub use names::{counted, nearest, quoted, shortened, unknown};
pub use own_method::{OwnMethod, TreePace};
pub use plugin::Plugin;
pub use ranges::{RangeMethod, Ranges, SizeRange};
pub use rank_pair::RankPair;
pub use root::{ROOT, Root};
