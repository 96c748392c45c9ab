//! Timestamped whole program paths (Zhang and Gupta 2001).
