//! What is done at the end of a scope however it is left: an application's error handler may throw an exception, which
//! goes through this library.

use std::thread;

/// Does something when it goes out of scope.
pub struct Finally<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Ends the process where a panic of this library would leave it, which the application might catch: the other ranks
/// would wait forever. An exception of the application passes.
pub struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}
