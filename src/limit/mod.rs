//! Rate and concurrency limits per server and per principal.
