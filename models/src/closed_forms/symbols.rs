//! What the symbols of the forms stand for.

use super::{refined::symbol as refined_symbol, shape::CallShape, text::evaluate};
use crate::parameters::{Network, PointToPointParameters};

/// What a symbol stands for in a call: its value and its unit (`bytes`, `seconds`,
/// `seconds_per_byte`; none where it counts).
pub(crate) fn symbol(
    network: &Network,
    shape: &CallShape,
    name: &str,
) -> Option<(f64, &'static str)> {
    let (head, argument) = match name.split_once('(') {
        Some((head, rest)) => (head, Some(rest.strip_suffix(')')?)),
        None => (name, None),
    };
    let value =
        |formula: &str| evaluate(formula, &mut |name| Some(symbol(network, shape, name)?.0));
    let bytes = match argument {
        Some(argument) if head != "e" => value(argument).ok()?,
        _ => shape.segment_bytes(),
    };
    let seconds = |value| Some((value, "seconds"));
    let per_byte = |value| Some((value, "seconds_per_byte"));
    match (head, &network.model) {
        ("P", _) => return Some((shape.procs(), "")),
        ("n_s", _) => return Some((shape.segments(), "")),
        ("m_s", _) => return Some((shape.segment_bytes(), "bytes")),
        ("m", _) => return Some((shape.bytes(), "bytes")),
        // gamma(m_s), so that gamma m_s is what combining a segment takes.
        ("gamma", _) if bytes > 0.0 => return per_byte(network.combine(bytes) / bytes),
        ("gamma", _) => return per_byte(0.0),
        ("alpha", PointToPointParameters::Hockney(net)) => return seconds(net.alpha),
        ("beta", PointToPointParameters::Hockney(net)) => return per_byte(net.beta),
        ("L", PointToPointParameters::LogGp(net)) => return seconds(net.latency),
        ("o", PointToPointParameters::LogGp(net)) => return seconds(net.overhead),
        ("g", PointToPointParameters::LogGp(net)) => return seconds(net.gap),
        ("G", PointToPointParameters::LogGp(net)) => return per_byte(net.gap_per_byte),
        ("L", PointToPointParameters::PLogP(net)) => return seconds(net.latency()),
        ("os", PointToPointParameters::PLogP(net)) => return seconds(net.at(bytes).send),
        ("or", PointToPointParameters::PLogP(net)) => return seconds(net.at(bytes).receive),
        _ => {}
    }
    let partners = match (head, argument) {
        ("e", Some(argument)) => value(argument).ok()? as u32,
        _ => 1,
    };
    seconds(refined_symbol(network, bytes, head, partners)?)
}
