//! A real relay on the loopback interface, against clients that do what no client does: their bytes are made by hand.

mod raw;
mod tls;
mod udp;
