#!/usr/bin/env bash
# Tests `./dev check --staged` and `./dev hook` in a temporary repository.
set -euo pipefail
root=$1
for program in git clang-format g++; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program"; exit 0; }
done
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
cd "$here"
git init -q
git config user.name test
git config user.email test@example.org
cp "$root/dev" "$root/.clang-format" .
mkdir scripts
cp "$root/scripts/headers_alone.py" scripts
printf '[build]\n[check]\n' >packages.txt  # The test installs no packages.
mkdir core
git add -A
git commit -qm 'first'

fail() { echo "error: $1"; exit 1; }
passes() { ./dev check --staged >log 2>&1 || { cat log; fail "$1: wanted a pass"; }; }
refuses() {  # WHAT TEXT
  if ./dev check --staged >log 2>&1; then fail "$1: wanted a refusal"; fi
  grep -qF -- "$2" log || { cat log; fail "$1: wanted '$2' in what it says"; }
}

passes 'nothing is staged'
echo 'int  crooked ;' >core/a.cpp
passes 'a file that is not staged'
git add core/a.cpp
echo 'int straight;' >core/a.cpp
refuses 'what is staged is crooked, the file no more' 'core/a.cpp:1'
git add core/a.cpp
echo 'int  crooked ;' >core/a.cpp
passes 'what is staged is straight, the file no more'

printf '#pragma once\nstd::string text();\n' >core/b.h
git add core/b.h
refuses 'a header that lacks an include' 'core/b.h does not compile alone'
printf '#pragma once\n#include "core/c.h"\n' >core/b.h
printf '#pragma once\n' >core/c.h
git add core/b.h
refuses 'a header whose include is not staged' 'core/b.h does not compile alone'
git add core/c.h
passes 'both are staged'

./dev hook
./dev hook  # The hook exists already.
git commit -qm 'second'
git rm -q core/b.h
echo 'int  crooked ;' >core/c.h
git add core/c.h
if git commit -qm 'third' >log 2>&1; then fail 'a commit through the hook: wanted a refusal'; fi
[ "$(git log --format=%s | wc -l)" = 2 ] || fail 'wanted no third commit'
echo 'exit 0' >.git/hooks/pre-commit
if ./dev hook 2>log; then fail 'another hook: wanted an error'; fi
grep -qF "add the line './dev check --staged'" log || { cat log; fail 'wanted to hear what to add'; }
