#!/usr/bin/env bash
# Installs the .deb and the tar.gz of build/packages on a bare Debian, uses both, and purges the
# .deb. Nothing may be left.
#
#     tests/package/bare-root.sh [RELEASE] [ROOT]
#
# RELEASE is 12 or 13 (default: this machine's release). ROOT is the folder of a bare system of that
# release, which is copied; without it debootstrap makes one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packages=$(cd "$here/../.." && pwd)/build/packages

fail() { echo "bare-root.sh: $*" >&2; exit 1; }

release=${1:-$(. /etc/os-release && echo "${VERSION_ID:-}")}
case $release in
  12) name=bookworm ;;
  13) name=trixie ;;
  *) fail "there is no release '$release' here; take 12 or 13" ;;
esac
[ "$(id -u)" -eq 0 ] || fail "a bare system needs root rights: run this with sudo"
one_of() { [ $# -eq 1 ] && [ -f "$1" ] || fail "expected one file, found: $*; make packages with ./dev package, and remove old ones"; echo "$1"; }
deb=$(one_of "$packages"/troupe_*~deb"$release"_*.deb)
archive=$(one_of "$packages"/troupe-*-linux-*.tar.gz)

root=$(mktemp -d)
chmod 755 "$root"  # The program runs as user nobody in it.
trap 'rm -rf "$root"' EXIT
if [ $# -ge 2 ]; then
  cp -a "$2/." "$root"
else
  command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
  debootstrap --variant=minbase "$name" "$root" >/dev/null
fi

echo "== lintian $(basename "$deb")"
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error "$deb"
else
  fail "lintian is missing: apt-get install lintian"
fi

mkdir "$root/package"
cp "$deb" "$archive" "$here/inside.sh" "$root/package"
# No process or mount may outlive this command.
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child bash -euc '
  mount --make-rprivate /
  mount --bind "$0" "$0"
  mount -t proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  mount -t tmpfs tmpfs "$0/dev/shm"
  cp -L /etc/resolv.conf "$0/etc/resolv.conf"
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
    chroot "$0" /package/inside.sh' "$root"

if command -v man >/dev/null; then
  echo "== manual pages"
  pages=$(mktemp -d)
  dpkg-deb -x "$deb" "$pages"
  warnings=$(for page in "$pages"/usr/share/man/man1/*.gz; do LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null; done)
  rm -rf "$pages"
  [ -z "$warnings" ] || fail "man: $warnings"
fi
echo "Debian $release: installed, used and purged without leftovers"
