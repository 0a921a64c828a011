//! What the gateway tells about itself.
