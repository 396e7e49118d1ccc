//! Which methods there are.

use std::{fmt, sync::Arc};

use records::{Collective, Method, Point};

/// The methods of a collective with these segment sizes, on so many processes, for messages of so
/// many bytes.
#[derive(Clone)]
pub struct MethodsOf(Arc<MethodsAt>);

type MethodsAt = dyn Fn(Collective, &[u64], u32, u64) -> Vec<Method> + Send + Sync;

impl MethodsOf {
    /// What this function gives.
    pub fn new(
        methods: impl Fn(Collective, &[u64], u32, u64) -> Vec<Method> + Send + Sync + 'static,
    ) -> Self {
        MethodsOf(Arc::new(methods))
    }

    /// At a point.
    pub fn at(&self, point: Point, segments: &[u64]) -> Vec<Method> {
        (self.0)(point.collective, segments, point.layout.procs(), point.bytes)
    }
}

impl fmt::Debug for MethodsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MethodsOf")
    }
}
