//! What timing asks of a communicator: a handful of messages between its ranks.

use serde::{Serialize, de::DeserializeOwned};

/// What a message is for; keeps kinds of messages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Tag {
    /// What to do next.
    Command = 1,
    /// What came of it.
    Report = 2,
    /// The bytes whose travel is timed.
    Data = 3,
    /// Empty: "I am there" or "I have it".
    Signal = 4,
    /// Set-up, before anything is measured.
    Setup = 5,
    /// Readings of clocks.
    Clock = 6,
}

/// A rank among others, with which it exchanges messages that no receive of an application's can
/// catch.
///
/// All functions fail where the MPI library refuses, those that receive a value also where the
/// message is none.
#[allow(clippy::missing_errors_doc, reason = "said once for all")]
pub trait Peers {
    /// Why a message did not get through.
    type Error;

    /// This process's rank.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Sends bytes; for what is timed.
    fn send(&self, bytes: &[u8], to: u32, tag: Tag) -> Result<(), Self::Error>;

    /// Receives at most `buffer.len()` bytes; for what is timed.
    fn receive(&self, buffer: &mut [u8], from: u32, tag: Tag) -> Result<(), Self::Error>;

    /// Sends an empty message to one rank and receives one from another.
    fn exchange_signals(&self, to: u32, from: u32) -> Result<(), Self::Error>;

    /// Sends a value; for what is not timed.
    fn send_value<T: Serialize>(&self, value: &T, to: u32, tag: Tag) -> Result<(), Self::Error>;

    /// Receives a value, waiting inside MPI, which may spin.
    fn receive_value<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T, Self::Error>;

    /// Receives a value, asleep until it is there where the rank can be.
    fn wait_for<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T, Self::Error>;
}
