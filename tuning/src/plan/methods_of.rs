//! Which methods there are.

use std::{fmt, sync::Arc};

use records::{Method, Point};

/// The methods at a point, with these segment sizes.
#[derive(Clone)]
pub struct MethodsOf(Arc<MethodsAt>);

type MethodsAt = dyn Fn(Point, &[u64]) -> Vec<Method> + Send + Sync;

impl MethodsOf {
    /// What this function gives.
    pub fn new(methods: impl Fn(Point, &[u64]) -> Vec<Method> + Send + Sync + 'static) -> Self {
        MethodsOf(Arc::new(methods))
    }

    /// At a point.
    pub fn at(&self, point: Point, segments: &[u64]) -> Vec<Method> {
        (self.0)(point, segments)
    }
}

impl fmt::Debug for MethodsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MethodsOf")
    }
}
