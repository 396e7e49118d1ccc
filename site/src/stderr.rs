//! What goes to stderr: notes, how far work is, errors.

/// Writes a line to stderr. Where that is closed or on a full disk the line is dropped: the work counts.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        let line = format!($($text)*) + "\n";
        // In one piece; there is nowhere to say that this could not be said.
        let _ = ::std::io::Write::write_all(&mut ::std::io::stderr(), line.as_bytes());
    }};
}
