#!/usr/bin/env bash
# Runs every fuzz target of a build for some seconds each, from the kept corpus; what it finds new
# stays in the build folder. Ends with the first that finds a fault.
set -euo pipefail
build=${1:?usage: scripts/fuzz.sh BUILD SECONDS}
seconds=${2:?usage: scripts/fuzz.sh BUILD SECONDS}

shopt -s nullglob
targets=("$build"/bin/*_fuzz)
if ((${#targets[@]} == 0)); then
  echo "no fuzz target in $build" >&2
  exit 1
fi
for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  found=$build/corpus/$name
  corpora=("$found")
  kept=$(dirname "$0")/../tests/fuzz/corpus/$name
  if [[ -d $kept ]]; then corpora+=("$kept"); fi
  mkdir -p "$found"
  echo "== $name, $seconds s"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$found-" "${corpora[@]}"
done
