#!/bin/sh
# Installs the library for C: the shared and the static library, the header, and wraith.pc for pkg-config.
#   bindings/c/install.sh target/ffi ~/.local        (after: cargo build --profile ffi -p wraith-c)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: $0 FOLDER_OF_THE_BUILT_LIBRARY PREFIX" >&2; exit 2; }
[ -e "$1/libwraith_c.so" ] || { echo "no libwraith_c.so in $1; run cargo build --profile ffi -p wraith-c" >&2; exit 2; }
library=$(cd "$1" && pwd)
mkdir -p "$2/lib/pkgconfig" "$2/include"
prefix=$(cd "$2" && pwd)

abi=$(sed -n 's/^#define WRAITH_ABI \([0-9]*\)$/\1/p' "$here/include/wraith.h")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)
install -m 755 "$library/libwraith_c.so" "$prefix/lib/libwraith_c.so.$abi"
ln -sf "libwraith_c.so.$abi" "$prefix/lib/libwraith_c.so"
[ ! -e "$library/libwraith_c.a" ] || install -m 644 "$library/libwraith_c.a" "$prefix/lib/libwraith_c.a"
install -m 644 "$here/include/wraith.h" "$prefix/include/wraith.h"
sed "s|@prefix@|$prefix|; s|@libdir@|lib|; s|@version@|$version|" "$here/wraith.pc.in" >"$prefix/lib/pkgconfig/wraith.pc"
