//! The `contraflow` command.

use std::process::ExitCode;

/// Streams make many small, short-lived buffers on many threads; mimalloc gives their memory back
/// to the system sooner than the common allocators do.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    contraflow::cli::run(std::env::args_os())
}
