//! Damaged rates, ports, names and states.

use std::str::FromStr;

use ::fuzz::{
    Answer, Inputs, Parser,
    parsers::{document, refused_with},
};

use crate::{PortRate, Rate, Spec, TestbedError, spec, state::State};

::fuzz::fuzz! {
    testbed_words: super::words(),
    testbed_state: super::state(),
}

/// Reads a word and what is written of it.
fn word<T: FromStr<Err = TestbedError> + ToString + PartialEq>(text: &str) -> Option<T> {
    match text.parse::<T>() {
        Ok(read) => {
            assert!(read.to_string().parse::<T>().is_ok_and(|again| again == read));
            Some(read)
        }
        Err(error) => {
            refused_with(&error);
            None
        }
    }
}

fn words() -> Parser {
    const SAMPLES: &[&str] = &[
        "100mbit",
        "1gbit",
        "2500kbit",
        "3=50mbit",
        "0.in=50mbit",
        "12.out=1gbit",
        "trial-1",
        "colibri-a-n0",
    ];
    const WORDS: &[&str] = &[
        "mbit", "gbit", "kbit", "bit", ".in", ".out", "=", "-", "colibri-", "-head", "-n", "10",
        "100",
    ];
    fn read(input: &[u8]) -> Answer {
        let text = &*String::from_utf8_lossy(input);
        let rate = word::<Rate>(text);
        if let Some(rate) = rate {
            assert!(rate.burst_bytes() >= 1514);
            assert!(rate.largest_unit_bytes().is_none_or(|bytes| bytes <= 65_536));
        }
        let port = word::<PortRate>(text);
        if let Some(port) = port {
            let spec =
                Spec::new("a", 4, port.rate).and_then(|spec| spec.with_ports(vec![port, port]));
            refused_with(&spec.expect_err("two rates of one port"));
        }
        let place = spec::of_namespace(text);
        if let Some((name, place)) = place {
            assert_eq!(spec::namespace(name, place), text);
        }
        let name = spec::check_name(text);
        match rate.is_some() || port.is_some() || place.is_some() || name.is_ok() {
            true => Answer::Accepted,
            false => Answer::Refused,
        }
    }
    let samples = SAMPLES.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    Parser { name: "testbed words", samples, words: WORDS, inputs: Inputs::SMALL, read }
}

fn state() -> Parser {
    const SAMPLE: &str = r#"{
  "schema": "colibri/testbed/1",
  "name": "a",
  "nodes": 2,
  "rate_bits_per_second": 100000000,
  "ports": [{"node": 1, "direction": "in", "rate_bits_per_second": 50000000}],
  "ranks_per_node": 2,
  "burst_bytes": 2014,
  "phase": "standing",
  "namespaces": ["colibri-a-head", "colibri-a-n0", "colibri-a-n1"]
}"#;
    const WORDS: &[&str] = &[
        "name",
        "nodes",
        "ports",
        "direction",
        "out",
        "making",
        "standing",
        "rate_bits_per_second",
    ];
    fn read(input: &[u8]) -> Answer {
        document::<State>(input, |state| {
            assert_eq!(state.spec.places().count(), state.spec.nodes as usize + 1);
            for node in 0..state.spec.nodes {
                let rates = [state.spec.inbound(node), state.spec.outbound(node)];
                assert!(rates.iter().all(|rate| rate.burst_bytes() >= 1514));
                assert!(state.spec.host(node).starts_with(&state.spec.name));
            }
        })
    }
    Parser {
        name: "testbed state",
        samples: vec![SAMPLE.into()],
        words: WORDS,
        inputs: Inputs::SMALL,
        read,
    }
}
