//! The functions for C, called from Rust: what a program in C cannot easily show. All else is tested in C (`bindings/c`).

mod contacts;
