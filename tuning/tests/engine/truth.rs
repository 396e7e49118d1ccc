//! A cluster whose models are wrong by a factor of its own for each method, changing with the
//! size, and whose library's default is bad in the middle.

use records::{Algorithm, plan::Cell};

fn modelled_seconds(cell: &Cell) -> f64 {
    let (p, m) = (f64::from(cell.point.layout.procs()), cell.point.bytes as f64);
    let message = |bytes: f64| 60e-6 + 0.084e-6 * bytes;
    let levels = p.log2().ceil();
    let segment = match cell.method.segment_bytes() {
        0 => m,
        bytes => (bytes as f64).min(m),
    };
    let segments = (m / segment).ceil();
    match cell.method.algorithm().map(|algorithm| algorithm.name()) {
        Some("linear") => (p - 1.0) * message(m),
        Some("pipeline") => (p - 2.0 + segments) * message(segment),
        Some("binomial") => levels * segments * message(segment),
        Some("binary") => (levels + 2.0 * segments - 1.0) * message(segment),
        Some("splitted-binary") => (levels + segments) * message(segment) + message(m / 2.0),
        Some("k-chain" | "k-nomial") => (4.0 + p / 4.0) * message(segment) * segments.sqrt(),
        Some(_) => levels * message(0.0) + 2.0 * 0.084e-6 * m + p * 60e-6,
        None => match cell.point.bytes {
            0..2048 => levels * message(m),
            2048..524_288 => 1.4 * levels * message(m),
            _ => (p - 1.0) * message(m),
        },
    }
}

/// What a call really takes: the models are wrong by a factor of its own for each method, which changes
/// with the size.
pub fn seconds(cell: &Cell) -> f64 {
    let name = cell.method.to_string();
    let phase = name.bytes().map(u32::from).sum::<u32>() % 17;
    let slow = (f64::from(phase) + (cell.point.bytes as f64).log2() / 4.0).sin();
    modelled_seconds(cell) * (0.25 * slow).exp()
}

/// What two models say.
pub fn expected(cell: &Cell) -> Vec<Option<f64>> {
    let seconds = modelled_seconds(cell);
    match cell.method.algorithm().map(Algorithm::name) {
        Some("k-chain" | "k-nomial") | None => vec![None; 2],
        Some(_) => vec![Some(seconds * 0.9), Some(seconds * 1.1)],
    }
}
