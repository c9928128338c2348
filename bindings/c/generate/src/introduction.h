// wraith for C: keys, messages and files. Made from crates/wraith-c by `cargo run -p wraith-c-header`; not edited by hand.
//
// Rules for all functions:
// - They return a wraith_status_t, but for wraith_version and wraith_abi. wraith_last_error has the words of a failure.
// - A handle is a number, and 0 is none. One that was freed or is of another kind gives WRAITH_INVALID_HANDLE, always.
//   Each is freed once with the function of its kind; freeing it while another thread uses it is allowed.
// - Every function may be called from any thread. Of several on one handle, one works at a time.
// - `(data, len)` is input, read until the call returns and never kept. NULL is fine where the length is 0, and
//   WRAITH_INVALID_INPUT where it is not.
// - `(out, out_cap, out_len)` is a buffer of yours. `*out_len` is what was written, or, with WRAITH_BUFFER_TOO_SMALL, what
//   is needed; nothing else has changed then, so the same call with more room does what this one would have done.
//   Output may overlap input.
// - Text is UTF-8, with a length and without a NUL.
// - A struct of options begins with its size, and all zeros else are the usual. It may be NULL.
