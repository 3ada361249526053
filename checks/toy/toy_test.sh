#!/usr/bin/env bash
# Adds a store and a fence to a copy of the tree, each by its folder and one line, and uses them.
#   toy_test.sh SOURCE SCRATCH CXX
set -euo pipefail
source=$1 tree=$2/tree build=$2/build cxx=$3

rm -rf "$tree"
mkdir -p "$tree"
for each in "$source"/*; do
  [[ ${each##*/} == build ]] || cp -rp "$each" "$tree"
done
mv "$tree"/checks/toy/toy_{store,fence} "$tree/adapters"
sed -i '/^leasehold_adapter(sqlite /a leasehold_adapter(toy_store)\nleasehold_adapter(toy_fence)' "$tree/CMakeLists.txt"
[[ $(diff "$source/CMakeLists.txt" "$tree/CMakeLists.txt" | grep -c '^[<>]') == 2 ]]

cmake -S "$tree" -B "$build" -G Ninja --log-level=WARNING -D CMAKE_CXX_COMPILER="$cxx" \
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG= -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=0 \
  -D LEASEHOLD_PRECOMPILE=ON -D LEASEHOLD_BUILD_DRILL=OFF \
  -D LEASEHOLD_WITH_ALL=OFF -D LEASEHOLD_WITH_TOY_STORE=ON -D LEASEHOLD_WITH_TOY_FENCE=ON
cmake --build "$build" --target leasehold
leasehold=$build/cli/leasehold

says() { # WORDS COMMAND...: the command prints the words
  local words=$1 said
  shift
  said=$("$@" 2>&1) || true
  if [[ $said != *"$words"* ]]; then
    printf '%s\nshould say: %s\nsays: %s\n' "$*" "$words" "$said"
    exit 1
  fi
}

"$leasehold" run nursery --store 'toy://box?colour=red' -- true
says "toy takes: colour" "$leasehold" run nursery --store 'toy://box?size=1' -- true
says "toy://box: this store gives no safe tokens" "$leasehold" run nursery --fenced --store toy://box -- true
says "sandpit" "$leasehold" fence show toyfence:/garden
says "'sqlite'; there are: toy; for fences alone: toyfence" "$leasehold" ls --store sqlite:x
says "toy://box" "$leasehold" run --help
says "toyfence:/garden" "$leasehold" fence show --help
says "toy://" "$leasehold" completion bash
says "as a rattle" "$leasehold" man
says "?colour=" "$leasehold" man
says "leasehold run job --store toy://box" \
  "$leasehold" advise --harmless yes --throughput yes --machines many --store toy_store
says "A toy forgets." \
  "$leasehold" advise --harmless yes --throughput yes --machines many --store toy_store

# A new folder needs no line in edges.txt.
says " files in " python3 "$tree/checks/check_edges.py" "$tree" "$tree/checks/edges.txt"
if python3 "$tree/checks/check_edges.py" "$tree" "$tree/checks/edges.txt" | grep -E 'must not use|in no room'; then
  exit 1
fi
