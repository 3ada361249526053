#!/bin/bash
# Makes the tarball of a build, unpacks it under another name, and uses it there as an ordinary user.
#   tarball_test.sh BUILD SCRATCH WITH_STORES
set -euo pipefail
build=$1 scratch=$2 with_stores=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rm -rf "$scratch"
mkdir -p "$scratch"

(cd "$build" && cpack -G TGZ -B "$scratch" >"$scratch/cpack.log") || { cat "$scratch/cpack.log"; exit 1; }
tar -C "$folder" -xf "$scratch"/leasehold-*.tar.gz
rm -rf "$scratch"
mv "$folder"/leasehold-* "$folder/another name"
chmod 755 "$folder"
test ! -e "$folder/another name/include"

cat >"$folder/lock" <<'EOF'
#!/bin/bash
set -euo pipefail
cd "$(mktemp -d)"
leasehold=$1/bin/leasehold
"$leasehold" version
for url in "${@:2}"; do
  [[ $url == sqlite:* ]] && url=sqlite:locks.db
  status=0
  "$leasehold" run job --store "$url" -- "$leasehold" run job --store "$url" -- true || status=$?
  [[ $status == 75 ]] || { echo "not busy, but $status"; exit 1; }
  "$leasehold" run job --store "$url" -- echo "locked: ${url%%:*}"
done
rm -r "$PWD"
EOF
chmod +x "$folder/lock"
as_user=()
((EUID != 0)) || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"$with_stores" "${as_user[@]}" env TMPDIR=/tmp LEASEHOLD_MACHINE_ID=test "$folder/lock" "$folder/another name"
