//! Plans and judges measurements
