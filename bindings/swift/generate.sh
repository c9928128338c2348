#!/bin/sh
# Copies the generated sources and the library to the paths of Package.swift: generate.sh SOURCES LIBRARIES.
set -eu
sources=$1
libraries=$2
cd "$(dirname "$0")"
cp "$sources/Wraith.swift" Sources/Wraith/
cp "$sources/WraithFFI.h" Sources/WraithFFI/
cp "$sources/WraithFFI.modulemap" Sources/WraithFFI/module.modulemap
for library in "$libraries"/libwraith_ffi.so "$libraries"/libwraith_ffi.dylib; do
    if [ -e "$library" ]; then cp "$library" Sources/WraithFFI/; fi
done
