//! The `contraflow` command.

use std::process::ExitCode;

/// Streams make many small, short-lived buffers on many threads, which the allocator of musl is not made
/// for. Most of what mimalloc had at a peak it keeps for the next one: a block that another thread frees
/// goes back only when its own thread allocates again. So a process stays as large as it was when its
/// sessions have ended, and does not grow when as many come again.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    contraflow::cli::run(std::env::args_os())
}
