#!/bin/sh
# Copies the generated sources and the library to the paths of Package.swift: generate.sh SOURCES LIBRARIES.
# Relative paths are relative to the current folder.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 SOURCES LIBRARIES" >&2; exit 2; }
sources=$(cd "$1" && pwd)
libraries=$(cd "$2" && pwd)
cd "$(dirname "$0")"
mkdir -p Sources/Wraith Sources/WraithFFI
cp "$sources/Wraith.swift" Sources/Wraith/
cp "$sources/WraithFFI.h" Sources/WraithFFI/
cp "$sources/WraithFFI.modulemap" Sources/WraithFFI/module.modulemap
found=
for library in "$libraries"/libwraith_ffi.so "$libraries"/libwraith_ffi.dylib; do
    if [ -e "$library" ]; then
        cp "$library" Sources/WraithFFI/
        found=yes
    fi
done
[ -n "$found" ] || { echo "no libwraith_ffi in $libraries" >&2; exit 1; }
