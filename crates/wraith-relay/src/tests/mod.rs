//! A real relay on loopback, against clients with handmade bytes that no real client sends.

mod raw;
mod tls;
mod udp;
