#!/usr/bin/env bash
# Installs the program into an empty folder, runs it there, and removes parts.
#
#     tests/package/installed.sh CMAKE BUILD_FOLDER
set -euo pipefail
cmake=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() { echo "failed: $*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$folder/usr" >"$folder/log" || { cat "$folder/log"; fail "cmake --install"; }
cd "$folder"
troupe=$folder/usr/bin/troupe

# All expected files, and no library or header of ours.
for file in bin/troupe share/troupe/config/quickstart.toml share/troupe/config/base/gpt.toml \
  share/doc/troupe/README.md share/doc/troupe/LICENSE share/doc/troupe/docs/how-to/install.md share/man/man1/troupe.1.gz \
  share/bash-completion/completions/troupe share/zsh/site-functions/_troupe \
  share/fish/vendor_completions.d/troupe.fish lib/systemd/system/troupe-head.service \
  lib/systemd/system/troupe-node.service share/troupe/monitoring/troupe-alerts.yml \
  share/troupe/monitoring/troupe-board.json; do
  [ -s "usr/$file" ] || fail "usr/$file is missing"
done
unwanted=$(find usr -name '*.a' -o -name '*.h' -o -name '*.so*' -o -path '*/etc/*')
[ -z "$unwanted" ] || fail "installed without need: $unwanted"
[ -z "$(objdump -p "$troupe" | grep -E 'RPATH|RUNPATH')" ] || fail "the installed program looks for libraries beside itself"
# One that was made with CUDA starts on machines without it, too.
[ -z "$(objdump -p "$troupe" | grep -E 'NEEDED +lib(cuda|cublas|cudnn|nccl|nvrtc)')" ] || fail "the installed program needs libraries of CUDA to start"

# Each command has a manual page.
for command in $("$troupe" complete -- "" | cut -f 1); do
  [ -s "usr/share/man/man1/troupe-$command.1.gz" ] || fail "there is no page troupe-$command(1)"
done
bash -n usr/share/bash-completion/completions/troupe

# Every configuration is valid in its installed place, and the first one trains in an empty folder.
for config in usr/share/troupe/config/*.toml; do
  "$troupe" config check "$config" >log 2>&1 || { cat log; fail "$config"; }
done
mkdir empty && cd empty
"$troupe" train ../usr/share/troupe/config/quickstart.toml --set train.steps=20 --output plain >../log 2>&1 || { cat ../log; fail "train"; }
[ "$(ls -A)" = runs ] || fail "train left more than runs/: $(ls -A)"
[ -s runs/quickstart/events.jsonl ] || fail "train left no events"
cd ..

# The archive works with its own libraries, and in a folder with blanks in its name.
"$cmake" --install "$build" --component archive --prefix "$folder/an archive" >log || { cat log; fail "the archive"; }
mkdir bin && ln -s "$folder/an archive/bin/troupe" bin/troupe
version=$("$troupe" version)
[ "$(bin/troupe version)" = "$version" ] || fail "the archive's program does not start"
libraries=$folder/"an archive"/lib/troupe
elsewhere=$(ldd "$libraries/troupe" | awk '/=>/ {sub(/.*=> /, ""); sub(/ \(.*/, ""); print}' | grep -vF "$libraries/" |
  grep -v -E '/lib(c|m|dl|rt|pthread|resolv)\.so' || true)
[ -z "$elsewhere" ] || fail "the archive lacks $elsewhere"
for file in "$libraries"/*.so*; do
  [ "$(objdump -p "$file" | grep -c 'NEEDED.*libstdc')" = 0 ] || [ -e "$libraries/libstdc++.so.6" ] || fail "libstdc++ is not in the archive"
done

# Each error is one line that says what to do.
refuses() {
  local code=0
  "$folder/an archive/bin/troupe" version >out 2>err || code=$?
  [ "$code" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "$1" err || { cat out err; fail "expected '$1', exit code 1, in one line; got exit code $code"; }
}
mkdir tools
instead() { printf '#!/bin/sh\necho %s\n' "$2" >"tools/$1"; chmod +x "tools/$1"; }
PATH=$folder/tools:$PATH
instead uname armv7l
refuses 'this archive is for .*, but this machine is armv7l; take the archive for armv7l'
rm tools/uname
instead getconf '"glibc 2.31"'
refuses 'this machine has glibc 2.31, but the program needs glibc 2\.[0-9]* or later; use a newer system'
instead getconf '""'
refuses 'this machine has no glibc'
rm tools/getconf
mv "$libraries/libstdc++.so.6" .
refuses 'libstdc++.so.6 is missing; unpack the whole archive again'
rm -r "$libraries"
refuses 'lib/troupe/troupe is missing; unpack the whole archive again'

# A build folder that was configured but not built.
sed "s|$build/apps/troupe|$folder/nowhere/troupe|g" "$build/cmake_install.cmake" >unbuilt.cmake
if "$cmake" -DCMAKE_INSTALL_PREFIX="$folder/unbuilt" -P unbuilt.cmake >log 2>&1; then fail "what is not built was installed"; fi
tr -s '\n ' ' ' <log | grep -q 'nowhere/troupe does not exist. Build it first: cmake --build' || { cat log; fail "no hint to build first"; }
[ ! -e unbuilt ] || fail "half a program was installed"
