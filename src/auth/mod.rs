//! How a caller proves who they are.
pub mod principal;
pub use principal::Principal;
