// wraith for C: keys, messages and files. Generated from crates/wraith-c by `cargo run -p wraith-c-header`; do not edit.
//
// Rules for all functions:
// - They return a wraith_status_t, except wraith_version and wraith_abi. wraith_last_error returns the message of a failure.
// - A handle is a number; 0 is never valid. A freed handle, or one of another kind, always gives WRAITH_INVALID_HANDLE.
//   Each handle is freed once with the function of its kind; freeing it while another thread uses it is allowed.
// - Every function may be called from any thread. Concurrent calls on one handle run one at a time; the directions of a
//   stream are independent, and wraith_stream_reset and wraith_stream_stop end the calls that wait.
// - `(data, len)` is input, which is read until the call returns and never kept. NULL is allowed if the length is 0, and
//   gives WRAITH_INVALID_INPUT otherwise.
// - `(out, out_cap, out_len)` is a buffer of the caller. `*out_len` receives the number of bytes written. With
//   WRAITH_BUFFER_TOO_SMALL it receives the number needed, and nothing else has changed: the same call with a larger
//   buffer does what this one would have done. Output may overlap input.
// - Text is UTF-8, with a length and without a NUL.
// - A struct of options starts with its size; zeros in all other fields select the defaults. It may be NULL.
