//! Every picture, drawn from result files alone
