//! Whether buffers may lie in the memory of a GPU, which methods of ours can't read.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

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
    fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.lines().any(is_runtime))
}

/// A line of that file ends in the path of what is mapped, where that is a file.
fn is_runtime(line: &str) -> bool {
    let name = line.split_once('/').and_then(|(_, path)| Path::new(path).file_name()?.to_str());
    name.is_some_and(|name| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_their_files() {
        let before = "7f00-7f01 r-xp 00000000 08:01 42    ";
        for path in [
            "/usr/local/cuda-12.4/lib64/libcudart.so.12.4.127",
            "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14",
            "/opt/rocm/lib/libamdhip64.so.6",
            "/usr/lib/libze_loader.so.1",
        ] {
            assert!(is_runtime(&format!("{before}{path}")), "{path}");
        }
        for path in ["/usr/lib/libmpi.so.40", "/home/libcudart.so.12/program", "[heap]", ""] {
            assert!(!is_runtime(&format!("{before}{path}")), "{path}");
        }
    }
}
