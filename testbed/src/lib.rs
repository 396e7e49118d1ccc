//! A virtual cluster on one Linux machine
