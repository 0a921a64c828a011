//! What the gateway tells about itself: log lines for operators, the audit log for auditors.

pub mod audit;
mod logs;

pub use logs::{LogError, LogFormat, init_logs};
