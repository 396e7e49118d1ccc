//! Models of point-to-point communication, closed forms, fits and decision functions
