//! Links over a real process: `sh` and what it can do.
