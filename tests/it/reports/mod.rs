//! What went wrong for people who run gateways, proxies, servers and clients of this kind, as they reported it in
//! public. Each test has the right behaviour, and names the report. Where a behaviour has tests of its own in the
//! other modules, the report is named there.

mod programs;
mod routing;
mod sessions;
mod time;
mod transport;
