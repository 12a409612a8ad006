#!/bin/sh
# Installs a server on Debian or Ubuntu, as root, without leaving it behind system-wide: the package would start it and enable it at boot.
# install-server.sh PACKAGE UNIT... A unit that was already installed keeps the state it had.
set -eu

package=$1
shift
guard=/usr/sbin/policy-rc.d
new_units=''
for unit in "$@"; do
  [ -e "/lib/systemd/system/$unit" ] || [ -e "/usr/lib/systemd/system/$unit" ] || new_units="$new_units $unit"
done

# policy-rc.d is how Debian asks whether a package may start its service; 101 means no.
if [ ! -e "$guard" ]; then
  trap 'rm -f "$guard"' EXIT
  printf '#!/bin/sh\n# Put here while %s is being installed; safe to delete afterwards.\nexit 101\n' "$package" > "$guard"
  chmod 755 "$guard"
fi

sh "$(dirname "$0")/apt-install.sh" "$package"

for unit in $new_units; do
  if command -v systemctl > /dev/null; then
    systemctl disable "$unit" || true
    [ ! -d /run/systemd/system ] || systemctl stop "$unit" || true
  fi
  # Where there is no systemd.
  [ ! -e "/etc/init.d/${unit%.service}" ] || update-rc.d "${unit%.service}" disable || true
done
