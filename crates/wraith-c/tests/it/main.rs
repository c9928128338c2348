//! Tests of the C functions from Rust, for behaviour that is hard to show in a C program. All other
//! tests are in C (`bindings/c`).

mod contacts;
