//! Classes of message sizes in files: each from `bytes` of its point to a last size.

use crate::{Point, number::check_procs};

/// A field that is wrong, and what would be right.
type Fault = (String, String);

/// Whether a class is one.
pub(crate) fn check_class(point: Point, last_bytes: u64) -> Result<(), Fault> {
    check_procs(point.layout.procs()).map_err(|problem| ("procs".into(), problem))?;
    if last_bytes < point.bytes {
        let problem = format!("is {last_bytes}; expected {} (bytes) or more", point.bytes);
        return Err(("last_bytes".into(), problem));
    }
    Ok(())
}

/// Whether each size is in one class of its collective and layout; the classes are in the field `classes`.
pub(crate) fn check_overlaps(classes: impl Iterator<Item = (Point, u64)>) -> Result<(), Fault> {
    let mut sorted: Vec<(Point, usize, u64)> =
        classes.enumerate().map(|(index, (point, last))| (point, index, last)).collect();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        let &[(before, _, last_bytes), (point, index, _)] = pair else { continue };
        if before.line() == point.line() && point.bytes <= last_bytes {
            let problem = format!(
                "is {}, which is in another class of {} on {:#} ({} to {last_bytes} bytes); expected each size in \
                 one class",
                point.bytes, point.collective, point.layout, before.bytes
            );
            return Err((format!("classes[{index}].bytes"), problem));
        }
    }
    Ok(())
}
