//! What the gateway tells about itself: log lines for operators, the audit log for auditors.

pub mod audit;
mod causes;
mod logs;
mod pace;

pub use causes::Causes;
pub use logs::{LogError, LogFormat, init_logs};
pub use pace::Pace;
