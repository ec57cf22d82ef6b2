#!/bin/sh
# Makes a Debian tree: with debootstrap, or out of another tree by adding packages. Its text is part of the trees' key.
# Arguments: target, suite, mirror, security mirror, parent tree or "", directory of kept packages, package...
set -eu
target=$1 suite=$2 mirror=$3 security=$4 parent=$5 kept=$6
shift 6
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# systemd-nspawn keeps notes about its machines here; nobody else is to see ours.
mkdir -p /run/systemd/nspawn
mount -t tmpfs tmpfs /run/systemd/nspawn

inside() {
    systemd-nspawn --quiet --directory="$target" --register=no --keep-unit --settings=no --link-journal=no --timezone=off \
        --resolv-conf=bind-host --suppress-sync=yes --bind="$kept:/var/cache/apt/archives" --setenv=DEBIAN_FRONTEND --setenv=LC_ALL \
        --pipe "$@" </dev/null
}

if [ -n "$parent" ]; then
    cp -a --reflink=auto "$parent" "$target"
else
    debootstrap --variant=minbase --cache-dir="$kept" "$suite" "$target" "$mirror"
    rm -f "$target/etc/apt/sources.list"
    cat >"$target/etc/apt/sources.list.d/debian.sources" <<EOF
Types: deb
URIs: $mirror
Suites: $suite $suite-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: $security
Suites: $suite-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
fi

# No service starts while the tree is a mere directory.
printf '#!/bin/sh\nexit 101\n' >"$target/usr/sbin/policy-rc.d"
chmod 755 "$target/usr/sbin/policy-rc.d"
inside sh -ec 'echo "Acquire::Retries 6;" >/etc/apt/apt.conf.d/80retries; apt-get -q update; apt-get -qy upgrade
    exec apt-get -qy install --no-install-recommends "$@"' - "$@"
rm -f "$target/usr/sbin/policy-rc.d"

# What every host has of its own is made when it starts; ssh is reached by another way (see lab_ssh.py).
rm -f "$target/etc/ssh/ssh_host_"* "$target/etc/systemd/system/multi-user.target.wants/ssh.service" \
    "$target/etc/systemd/system/sshd.service" "$target/etc/systemd/system/ssh.socket.wants/"*
# Timers that would change the host behind a test's back.
for timer in apt-daily apt-daily-upgrade dpkg-db-backup e2scrub_all fstrim man-db logrotate; do
    [ ! -e "$target/usr/lib/systemd/system/$timer.timer" ] || ln -sf /dev/null "$target/etc/systemd/system/$timer.timer"
done
: >"$target/etc/machine-id"
: >"$target/etc/resolv.conf"
