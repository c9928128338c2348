//! What holds of sessions, seen from outside.
