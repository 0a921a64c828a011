//! The `contraflow` command.

use std::process::ExitCode;

/// Streams make many small, short-lived buffers on many threads, which the allocators of C libraries are not
/// made for. A gateway is large while many people are away with questions, and then it should be small again:
/// jemalloc gives back to the system what nobody has used for ten seconds, from a thread of its own, also when
/// nothing happens any more.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    contraflow::cli::run(std::env::args_os())
}
