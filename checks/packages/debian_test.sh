#!/bin/bash
# Makes the packages of a build, installs them into a fresh Debian where nothing was ever compiled, uses them there
# (in_root.sh), and removes them.
#   debian_test.sh BUILD SCRATCH WITH_STORES
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=$1 scratch=$2 with_stores=$3
root=$scratch/root packages=$scratch/packages

if ((EUID != 0)); then
  echo "This test makes a Debian system of its own and mounts /proc in it: it must be run as root."
  exit 1
fi
for program in mmdebstrap lintian; do
  command -v $program >/dev/null || { echo "This test needs $program; scripts/need test installs it."; exit 1; }
done

# Mounts of its own. In a chroot, where "/" may be no mount, they cannot be made private all at once.
if [[ -z ${LEASEHOLD_OWN_MOUNTS:-} ]]; then
  exec env LEASEHOLD_OWN_MOUNTS=1 unshare --mount --propagation=unchanged "$0" "$@"
fi
leave() { umount --recursive --quiet "$root" || true; }
trap leave EXIT
leave
rm -rf --one-file-system "$scratch"
mkdir -p "$root"

# Where the host gets its packages from, and how.
make_root() {
  local sources=() file VERSION_CODENAME
  # shellcheck source=/dev/null
  . /etc/os-release
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    [[ -s $file ]] && sources+=("$file")
  done
  apt-config dump Acquire >"$scratch/apt.conf"
  mmdebstrap --quiet --mode=root --variant=apt --aptopt="$scratch/apt.conf" --aptopt='Acquire::Languages "none"' \
    --aptopt='Acquire::Retries "5"' \
    --dpkgopt=force-unsafe-io --skip=cleanup/apt/lists "$VERSION_CODENAME" "$root" "${sources[@]}"
  mount --bind "$root" "$root"
  mount --make-private "$root"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  cp /etc/resolv.conf /etc/hosts "$root/etc"
}

make_packages() {
  (cd "$build" && cpack -G DEB -B "$packages" >"$scratch/cpack.log") || { cat "$scratch/cpack.log"; return 1; }
  rm -r "$packages/_CPack_Packages"
  lintian --allow-root --fail-on error "$packages"/leasehold*.deb "$(with_small_libraries "$packages"/lib*.deb)"
}

# The package with the smallest of its static libraries in place of each: lintian would read the symbols of all for
# minutes.
with_small_libraries() {
  local tree=$scratch/small smallest library
  dpkg-deb --raw-extract "$1" "$tree"
  smallest=$(find "$tree" -name '*.a' -printf '%s %p\n' | sort -n | sed -n '1s/^[0-9]* //p')
  for library in "$tree"/usr/lib/*.a; do
    [[ $library == "$smallest" ]] || cp "$smallest" "$library"
  done
  (cd "$tree" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
  dpkg-deb --build --root-owner-group "$tree" "$scratch" >/dev/null
  echo "$scratch/$(basename "$1")"
}

in_root() { chroot "$root" bash /mnt/in_root.sh "$@"; }

step() {  # step NAME COMMAND...
  local began=$SECONDS
  "${@:2}"
  echo "== $1: $((SECONDS - began)) s"
}

make_packages >"$scratch/packages.log" 2>&1 &
packing=$!
step "a fresh root" make_root
wait $packing || { cat "$scratch/packages.log"; exit 1; }
cat "$scratch/packages.log"
cp "$packages"/*.deb "$here/in_root.sh" "$root/mnt"
step "to a refused late write" in_root demo
step "modules" in_root modules
step "a lock on every store" "$with_stores" chroot "$root" bash /mnt/in_root.sh lock
step "without a trace" in_root remove
step "C++" in_root consumers
leave
rm -rf --one-file-system "$scratch"
