# What scripts/build, test, demo and bench share. Sourced, never run.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*" >&2; }

# die MESSAGE [WHAT TO DO NEXT]
die() {
  printf '%s: error: %s\n' "$(basename "$0")" "$1" >&2
  [ $# -lt 2 ] || printf '  %s\n' "$2" >&2
  exit 1
}

# The comment at the head of a script is its help.
show_help() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }

# usage_error MESSAGE
usage_error() {
  printf '%s: %s\n\n' "$(basename "$0")" "$1" >&2
  show_help >&2
  exit 2
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "'$*' needs root, and there is no sudo" "Run it as root, then start this script again."
  fi
}

# Debian packages named on the command line, where they are not installed yet.
need_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "this machine has no apt-get; needed: ${missing[*]}" "Install these by other means."
  say "Debian packages: ${missing[*]}"
  install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null >&2
  }
  # The lists of a fresh machine are empty, those of an old one may name packages that are gone.
  install_packages || { as_root apt-get update -q >&2 && install_packages; } ||
    die "apt-get could not install: ${missing[*]}" "See its message above."
}
