//! Whether buffers may lie in the memory of a GPU, which methods of ours can't read.

use std::sync::atomic::{AtomicBool, Ordering};

use runner::process;

/// Libraries by which a program has memory on a GPU: CUDA's runtime and driver, HIP, Level Zero.
const RUNTIMES: [&str; 4] = ["libcudart.so", "libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// Whether a process of the world may have buffers on a GPU; the same on all of them, who come to know
/// it together when they first use the world.
static GPU_AGREED: AtomicBool = AtomicBool::new(false);

/// The processes of the world have found that one of them may.
pub fn agree() {
    GPU_AGREED.store(true, Ordering::Relaxed);
}

/// Whether everything is left to the library since buffers may lie on a GPU.
pub fn is_agreed() -> bool {
    GPU_AGREED.load(Ordering::Relaxed)
}

/// Whether this process has one of them loaded now. What is loaded later is not seen: all ranks would
/// have to be informed at the same call, and a look before each call would cost more than what is gained.
pub fn is_loaded() -> bool {
    process::loaded_libraries().iter().any(|name| is_runtime(name))
}

fn is_runtime(name: &str) -> bool {
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_their_files() {
        for name in [
            "libcudart.so.12.4.127",
            "libcuda.so.550.54.14",
            "libamdhip64.so.6",
            "libze_loader.so.1",
        ] {
            assert!(is_runtime(name), "{name}");
        }
        for name in ["libmpi.so.40", "program", ""] {
            assert!(!is_runtime(name), "{name}");
        }
    }
}
