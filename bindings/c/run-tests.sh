#!/bin/sh
# Builds the tests of this folder and runs them against a built library:
#   bindings/c/run-tests.sh target/ffi        (after: cargo build --profile ffi -p wraith-c)
# Checks without their tool are skipped with a message. The exit code is 0 if nothing failed.
# Tools: gcc and valgrind (apt install gcc valgrind); clang and pkg-config enable more checks.
set -eu
# Use only the named library, not another one that cargo has built.
unset LD_LIBRARY_PATH

here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: $0 FOLDER_OF_THE_BUILT_LIBRARY" >&2; exit 2; }
library=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -g -I$here/include -I$here"
installed="$work/prefix/lib"
shared="-L$installed -lwraith_c -Wl,-rpath,$installed -pthread"
static="$library/libwraith_c.a -pthread -ldl -lm"
skipped=0

step() { echo "== $*"; }
skip() { echo "skipped: $*"; skipped=$((skipped + 1)); }
has() { command -v "$1" >/dev/null 2>&1; }

# PROGRAM NAME [WRAPPER COMMAND...]: runs one test, with an empty folder if it uses files. A test that fails is named.
run() {
    program=$1 name=$2
    shift 2
    echo "-- $name"
    rm -rf "$work/folder" && mkdir "$work/folder"
    case $name in
    files | stopping | connections | two_processes | lasting | kept) set -- "$@" "$program" "$work/folder" ;;
    vectors) set -- "$@" "$program" "$vectors" ;;
    *) set -- "$@" "$program" ;;
    esac
    code=0
    timeout 300 "$@" || code=$?
    case $code in
    0) ;;
    124) echo "$name did not end within 300 s" >&2; exit 1 ;;
    *) echo "$name failed with exit code $code" >&2; exit 1 ;;
    esac
}
tests=$(cd "$here/tests" && ls ./*.c | sed 's|^\./||; s|\.c$||')
vectors=${WRAITH_VECTORS:-$here/../vectors}
if [ ! -e "$vectors/hashes.json" ]; then
    skip "vectors: bindings/vectors is not there"
    tests=$(echo "$tests" | grep -vx vectors)
fi

has gcc || has clang || { skip "everything: no C compiler (apt install gcc)"; exit 0; }
"$here/install.sh" "$library" "$work/prefix"

for compiler in gcc clang; do
    has $compiler || { skip "tests compiled by $compiler: it is not installed"; continue; }
    step "$compiler: tests, linked to the shared library"
    for test in $tests; do
        $compiler $flags "$here/tests/$test.c" -o "$work/$test" $shared
        run "$work/$test" "$test"
    done
done
cc=gcc
has gcc || cc=clang

step "the header as C++"
printf '#include <wraith.h>\nint main() { return wraith_abi() == WRAITH_ABI ? 0 : 1; }\n' >"$work/header.cc"
for compiler in g++ clang++; do
    has $compiler || { skip "the header by $compiler: it is not installed"; continue; }
    for standard in c++11 c++17; do
        $compiler -std=$standard -Wall -Wextra -Werror -I"$here/include" "$work/header.cc" -o "$work/header" $shared
        "$work/header"
    done
done

step "names that the shared library exports"
if has nm; then
    nm -D --defined-only "$library/libwraith_c.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort >"$work/exported"
    if grep -v '^wraith_' "$work/exported"; then
        echo "names without our prefix are exported" >&2
        exit 1
    fi
    sed -n 's/.*\(wraith_[a-z0-9_]*\)(.*/\1/p' "$here/include/wraith.h" | grep -v '_t$' | sort -u >"$work/declared"
    grep -Fxv -f "$work/exported" "$work/declared" | while read -r name; do
        # Fields of callbacks, and words in comments, have no declaration of their own.
        grep -q "^[a-z].*[ *]$name(" "$here/include/wraith.h" && { echo "$name is declared and not exported" >&2; exit 1; }
        true
    done
    echo "$(wc -l <"$work/exported") names"
else
    skip "exported names: no nm"
fi

step "the SONAME"
if has readelf; then
    abi=$(sed -n 's/^#define WRAITH_ABI //p' "$here/include/wraith.h")
    readelf -d "$work/header" | grep -q "NEEDED.*\[libwraith_c\.so\.$abi\]" || { echo "the program needs no libwraith_c.so.$abi" >&2; exit 1; }
else
    skip "SONAME: no readelf"
fi

step "linked statically"
if [ -e "$library/libwraith_c.a" ]; then
    export WRAITH_TEST_STOPS=2
    for test in $tests; do
        $cc $flags "$here/tests/$test.c" -o "$work/$test-static" $static
        run "$work/$test-static" "$test"
    done
    unset WRAITH_TEST_STOPS
else
    skip "static linking: no libwraith_c.a in $library"
fi

step "address and undefined behaviour sanitizers on the tests' side"
sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all"
if printf 'int main(void) { return 0; }\n' >"$work/probe.c" && $cc $sanitizers "$work/probe.c" -o "$work/probe" 2>/dev/null && "$work/probe"; then
    for test in $tests; do
        $cc $flags $sanitizers "$here/tests/$test.c" -o "$work/$test-sanitized" $shared
        run "$work/$test-sanitized" "$test"
    done
else
    skip "sanitizers: $cc has none that run here"
fi

step "valgrind"
if has valgrind; then
    # valgrind reports by cpuid that it lacks AVX-512, so the library uses the portable code. It runs one thread at a time:
    # without a fair schedule, a thread that waits for another may wait for minutes.
    # Fewer, because each takes long here.
    export WRAITH_TEST_STOPS=2
    for test in $tests; do
        run "$work/$test" "$test" valgrind --quiet --fair-sched=try --error-exitcode=9 --leak-check=full --trace-children=yes
    done
    unset WRAITH_TEST_STOPS
else
    skip "valgrind: it is not installed (apt install valgrind)"
fi

step "the example messenger, both ways"
$cc $flags "$here/examples/messenger.c" -o "$work/messenger" $shared
mkfifo "$work/to_listener"
"$work/messenger" listen 0 <"$work/to_listener" >"$work/listener" &
listener=$!
exec 3>"$work/to_listener"
tries=0
until port=$(sed -n 's/^listening on //p' "$work/listener") && [ -n "$port" ]; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || { echo "the messenger does not listen" >&2; exit 1; }
    sleep 0.05
done
echo "good evening" >&3
printf 'hello\n\nwho is there?\na line without an end' | timeout 60 "$work/messenger" connect 127.0.0.1 "$port" >"$work/connector" &
connector=$!
# The listener closes its input after it has sent its line; then both programs end.
exec 3>&-
wait $listener
wait $connector
for line in hello '' 'who is there?' 'a line without an end'; do
    grep -qx "> $line" "$work/listener" || { echo "the listener has not heard '$line'" >&2; exit 1; }
done
grep -qx '> good evening' "$work/connector"
[ "$(sed -n 's/^me //p' "$work/listener")" = "$(sed -n 's/^peer //p' "$work/connector")" ]
[ "$(sed -n 's/^peer //p' "$work/listener")" = "$(sed -n 's/^me //p' "$work/connector")" ]

step "the example echo, by code and by contact"
$cc $flags "$here/examples/echo.c" -o "$work/echo" $shared
# LINE FILE: waits for a line that begins so, and prints the rest of it.
rest_of() {
    tries=0
    until grep -q "^$1" "$2"; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || { echo "the example prints no line '$1'" >&2; exit 1; }
        sleep 0.05
    done
    sed -n "s/^$1//p" "$2"
}
timeout 60 "$work/echo" serve >"$work/served" &
server=$!
code=$(rest_of 'code ' "$work/served")
timeout 60 "$work/echo" call "$code" 'who is there?' >"$work/called"
wait $server
grep -qx '> who is there?' "$work/called"
if timeout 60 "$work/echo" call "$code" 'once more' 2>/dev/null; then
    echo "a code can be used twice" >&2
    exit 1
fi
anna=$("$work/echo" me "$work/anna" | sed 's/^me //')
bob=$("$work/echo" me "$work/bob" | sed 's/^me //')
timeout 60 "$work/echo" serve "$work/anna" "$bob" >"$work/served" &
server=$!
rest_of ready "$work/served" >/dev/null
timeout 60 "$work/echo" call "$work/bob" "$anna" hello >"$work/called"
wait $server
grep -qx '> hello' "$work/called"
grep -qx "peer $anna" "$work/called"
grep -qx "peer $bob" "$work/served"

step "the recipe and the program of README.md, with the example sender"
if [ -e "$here/README.md" ]; then
    # The block of a language, without its fences.
    block() { sed -n '/^```'"$1"'$/,/^```$/{/^```/d;p;}' "$here/README.md"; }
    mkdir -p "$work/clone/bindings" "$work/clone/target"
    ln -s "$here" "$work/clone/bindings/c"
    ln -s "$library" "$work/clone/target/ffi"
    block c >"$work/clone/program.c"
    mkdir "$work/home"
    block sh | grep -v '^cargo ' | grep -v 'a\.out' >"$work/clone/compile.sh"
    block sh | grep 'a\.out' | sed 's/CODE FOLDER/"$1" arrived/' >"$work/clone/run.sh"
    (cd "$work/clone" && HOME="$work/home" sh -eu compile.sh && $cc $flags -fsyntax-only program.c)
    $cc $flags "$here/examples/offer.c" -o "$work/offer" $shared
    echo "a film" >"$work/clone/film"
    (cd "$work/clone" && timeout 60 "$work/offer" film 127.0.0.1:0 >ticket) &
    sender=$!
    tries=0
    until grep -q . "$work/clone/ticket"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "the example prints no ticket" >&2; exit 1; }
        sleep 0.05
    done
    (cd "$work/clone" && timeout 60 sh -eu run.sh "$(cat ticket)")
    wait $sender
    cmp "$work/clone/film" "$work/clone/arrived/film"
else
    skip "README.md: it is not there"
fi

step "pkg-config"
mkdir "$work/staging"
(cd "$work/staging" && DESTDIR="$work/staging" CDPATH=/ "$here/install.sh" "$library" '/odd&|prefix')
grep -qxF 'prefix=/odd&|prefix' "$work/staging/odd&|prefix/lib/pkgconfig/wraith.pc"
if has pkg-config; then
    PKG_CONFIG_PATH="$installed/pkgconfig" pkg-config --cflags --libs wraith >"$work/words"
    $cc -x c "$work/header.cc" -x none -o "$work/by-pkg-config" $(cat "$work/words") -Wl,-rpath,"$installed"
    "$work/by-pkg-config"
else
    skip "wraith.pc: no pkg-config"
fi

step "what a call costs"
$cc $flags -O2 "$here/bench.c" -o "$work/bench" $shared
"$work/bench"

echo "bindings/c: all passed, $skipped skipped"
