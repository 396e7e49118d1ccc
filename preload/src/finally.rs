//! What is done at the end of a scope however it is left: an application's error handler may throw an exception, which
//! goes through this library.

/// Does something when it goes out of scope.
pub struct Finally<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
