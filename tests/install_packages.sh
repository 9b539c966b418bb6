#!/bin/bash
# install_packages.sh PACKAGE...: installs those that are missing. With all of them there it calls no apt and needs neither
# root nor network.
set -euo pipefail

missing=()
for package in "$@"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ((EUID == 0)); then
  as_root=()
elif sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "missing packages, and no root to install them; as root: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "installing: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0)
"${apt[@]}" update || echo "apt-get update failed: trying with the package lists there are" >&2
"${apt[@]}" install --no-install-recommends "${missing[@]}"
