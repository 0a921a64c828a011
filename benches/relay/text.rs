//! The padding of answers, which both ends know.

use std::sync::LazyLock;

use bytes::Bytes;

/// The largest text that is asked for.
pub(crate) const MOST: usize = 1 << 20;

/// So many bytes that a text can be filled with.
pub(crate) static PAD: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(vec![b'x'; MOST]));
