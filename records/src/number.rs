//! What is a number in a file: times and ratios that can be added up and multiplied without end.

use std::{collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::quoted;

/// The greatest number with a fraction that a file may hold; of seconds, 30 million years.
pub const MOST: f64 = 1e15;

/// The most ranks of a communicator.
pub const MAX_PROCS: u32 = 1 << 24;

/// The least number above 0 that was read off something: what is divided by it stays a number.
const MIN_READING: f64 = 1e-30;

/// Whether a number is one that a file may hold.
///
/// # Errors
/// Says what would be right.
pub fn check(number: f64) -> Result<(), String> {
    match number.abs() <= MOST {
        true => Ok(()),
        false => Err(format!("is {number:e}; expected a number between -{MOST:e} and {MOST:e}")),
    }
}

/// Whether a number is one that an observation may hold.
///
/// # Errors
/// Says what would be right.
pub fn check_reading(number: f64) -> Result<(), String> {
    check(number)?;
    match number == 0.0 || number.abs() >= MIN_READING {
        true => Ok(()),
        false => Err(format!("is {number:e}; expected 0 or at least {MIN_READING:e}")),
    }
}

/// Whether a communicator may have so many ranks.
///
/// # Errors
/// Says what would be right.
pub fn check_procs(procs: u32) -> Result<(), String> {
    match (1..=MAX_PROCS).contains(&procs) {
        true => Ok(()),
        false => Err(format!("is {procs}; expected {}", expected_procs())),
    }
}

/// How many ranks a communicator may have, as every message says it.
pub fn expected_procs() -> String {
    format!("1 to {MAX_PROCS} ranks")
}

/// Reads any JSON and keeps nothing; fails at the first number that [`check`] refuses, and at a key that an object has
/// twice.
pub(crate) struct NumberCheck;

impl<'de> Deserialize<'de> for NumberCheck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberCheck)
    }
}

impl<'de> Visitor<'de> for NumberCheck {
    type Value = NumberCheck;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<NumberCheck, E> {
        check(number).map(|()| NumberCheck).map_err(E::custom)
    }

    fn visit_bool<E>(self, _: bool) -> Result<NumberCheck, E> {
        Ok(NumberCheck)
    }

    fn visit_i64<E>(self, _: i64) -> Result<NumberCheck, E> {
        Ok(NumberCheck)
    }

    fn visit_u64<E>(self, _: u64) -> Result<NumberCheck, E> {
        Ok(NumberCheck)
    }

    fn visit_str<E>(self, _: &str) -> Result<NumberCheck, E> {
        Ok(NumberCheck)
    }

    fn visit_unit<E>(self) -> Result<NumberCheck, E> {
        Ok(NumberCheck)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<NumberCheck, A::Error> {
        while let Some(NumberCheck) = values.next_element()? {}
        Ok(NumberCheck)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<NumberCheck, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(Error::custom(format_args!("{} stands here twice", quoted(&key))));
            }
            seen.insert(key);
            let NumberCheck = entries.next_value()?;
        }
        Ok(NumberCheck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_nothing_can_be_done_with_are_refused() {
        for good in [0.0, -0.0, 1e-320, -3.5, 1e15] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.7e308, -2e15] {
            assert!(check(bad).is_err() && check_reading(bad).is_err(), "{bad}");
        }
        assert_eq!(check_reading(1e-30), Ok(()));
        assert_eq!(check_reading(-1e-9), Ok(()), "a clock that is set back");
        assert!(check_reading(1e-320).unwrap_err().contains("at least 1e-30"));
    }

    #[test]
    fn one_such_number_anywhere_is_found() {
        let read = |text: &str| serde_json::from_str::<NumberCheck>(text).map(|_| ());
        assert!(read(r#"{"a": [1, -2, 3.5, null, true, {"b": "1e300"}], "c": 1e15}"#).is_ok());
        let error = read(r#"{"a": [1, {"b": 1e300}]}"#).unwrap_err().to_string();
        assert!(error.contains("is 1e300; expected a number"), "{error}");
    }

    #[test]
    fn a_key_that_an_object_has_twice_is_found() {
        let read = |text: &str| serde_json::from_str::<NumberCheck>(text).map(|_| ());
        assert!(read(r#"{"a": {"a": 1}, "b": {"a": 1}}"#).is_ok());
        let error = read("{\"a\": [{\n\"b\": 1,\n\"b\": 1\n}]}").unwrap_err().to_string();
        assert!(error.starts_with("'b' stands here twice at line 3"), "{error}");
    }
}
