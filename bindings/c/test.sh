#!/bin/sh
# Builds the development build of the library, and runs the tests in C against it.
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
cargo build --locked --package wraith-c
bindings/c/run-tests.sh "$target/debug"
