#!/bin/sh
# Installs the library for C: the shared and the static library, the header, and wraith.pc for pkg-config.
#   bindings/c/install.sh target/ffi ~/wraith        (after: cargo build --profile ffi -p wraith-c)
# With DESTDIR, everything goes below that folder, and wraith.pc has the prefix alone.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: $0 FOLDER_OF_THE_BUILT_LIBRARY PREFIX" >&2; exit 2; }
[ -e "$1/libwraith_c.so" ] || { echo "no libwraith_c.so in $1; run cargo build --profile ffi -p wraith-c" >&2; exit 2; }
case $2 in
*[[:space:]]*) echo "pkg-config cannot describe a folder with spaces: $2" >&2; exit 2 ;;
/*) prefix=$2 ;;
*) prefix=$(pwd)/$2 ;;
esac
root=${DESTDIR:-}$prefix

abi=$(sed -n 's/^#define WRAITH_ABI \([0-9]*\)$/\1/p' "$here/include/wraith.h")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)
mkdir -p "$root/lib/pkgconfig" "$root/include"
install -m 755 "$1/libwraith_c.so" "$root/lib/libwraith_c.so.$abi"
ln -sf "libwraith_c.so.$abi" "$root/lib/libwraith_c.so"
[ ! -e "$1/libwraith_c.a" ] || install -m 644 "$1/libwraith_c.a" "$root/lib/libwraith_c.a"
install -m 644 "$here/include/wraith.h" "$root/include/wraith.h"
escaped=$(printf '%s' "$prefix" | sed 's/[&|\\]/\\&/g')
sed "s|@prefix@|$escaped|; s|@libdir@|lib|; s|@version@|$version|" "$here/wraith.pc.in" >"$root/lib/pkgconfig/wraith.pc"
