#!/bin/sh
# Install the Debian packages in $PACKAGES that are missing, as root or by sudo; else name them and fail.
set -eu
missing=""
for package in $PACKAGES; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing, and there is no apt-get to install them:$missing" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then as_root=""; elif command -v sudo >/dev/null 2>&1; then as_root="sudo"; else
    echo "missing packages; install them as root: apt-get install$missing" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# The tests start these servers themselves: no service of the system's own is wanted.
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
