#!/usr/bin/env bash
# Runs every benchmark of a build, one after the other, and nothing beside them.
set -euo pipefail
build=${1:?usage: scripts/bench.sh BUILD}

shopt -s nullglob
programs=("$build"/bench/*_bench "$build"/bin/*_bench)
if ((${#programs[@]} == 0)); then
  echo "no benchmark in $build" >&2
  exit 1
fi
for program in "${programs[@]}"; do
  echo "== $(basename "$program")"
  "$program"
done
