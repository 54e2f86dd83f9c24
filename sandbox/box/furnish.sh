#!/bin/sh
# Makes a rented machine ready for errands: root, engine, our package, timer. What is there already is kept.
# furnish.sh DIGEST KIND ENDS; its last line is `ready`, or says what is wrong and what to do.
set -eu
digest=$1 kind=$2 ends=$3 timer=${4:-/run/systemd/shutdown/scheduled}
root=$HOME/.blastdoor
parcel=$root/parcels/$digest
venv=$root/venv-$digest

fail() {
	printf 'blastdoor: %s\n' "$1"
	exit 3
}

umask 077
mkdir -p "$root/trials" "$root/images" "$root/inputs" "$root/owners"
# Inputs are mounted into chambers, whose users are nobody here.
chmod 711 "$HOME" "$root" 2>/dev/null || :
chmod 755 "$root/inputs"

if [ "$kind" = vm ]; then
	# SkyPilot runs `setup`, which sets it, beside us: a launch returns before that is done.
	left=120
	while [ ! -e "$timer" ] && [ $left -gt 0 ]; do
		sleep 1
		left=$((left - 1))
	done
	[ -e "$timer" ] || fail "no timer is set that powers the machine off; nothing is run on it"
	command -v dockerd >/dev/null || {
		sudo -n apt-get -qq update
		sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y docker.io
	} >/dev/null 2>&1 || fail "the machine has no Docker engine and none could be installed; use a machine image that has one"
	sudo -n systemctl start docker || fail "the machine's Docker engine does not start"
	sudo -n chown "$(id -u)" /var/run/docker.sock
fi
printf '%s' "${DOCKER_HOST:-unix:///var/run/docker.sock}" >"$root/engine"

if [ ! -e "$venv/ready" ]; then
	uv=$HOME/.local/bin/uv
	[ -x "$uv" ] || uv=$(command -v uv) || fail "uv is not on the machine, though SkyPilot installs it"
	rm -rf "$venv"
	"$uv" venv --quiet --python '>=3.11' "$venv" 2>"$root/furnish.log" || fail "no Python 3.11: $(tail -n 1 "$root/furnish.log")"
	"$uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r "$parcel/requirements.txt" \
		2>"$root/furnish.log" || fail "packages: $(tail -n 1 "$root/furnish.log")"
	"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --offline "$parcel"/*.whl \
		2>"$root/furnish.log" || fail "our own package: $(tail -n 1 "$root/furnish.log")"
	touch "$venv/ready"
fi

if [ ! -e "$root/timer" ]; then
	setsid "$venv/bin/python" -m sandbox.box.timer "$ends" "$root" </dev/null >/dev/null 2>&1 &
	echo $! >"$root/timer"
fi
echo ready
