#!/bin/bash
# The part of tharsis.sbatch that runs on each machine: a node, and on the first one the program as well.
# The machines meet in a folder that all of them see; files there appear whole, by being renamed.
set -euo pipefail

rank="$SLURM_PROCID"
machines="$SLURM_NTASKS"
me="$SLURMD_NODENAME"
meeting="${SLURM_SUBMIT_DIR:-$PWD}/.tharsis-$SLURM_JOB_ID"
# Of this job and machine alone. A home folder may be one folder on all machines, so identities are not kept there.
own="${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/tharsis-$SLURM_JOB_ID-$rank"
meet_s=240
umask 077
mkdir -p "$meeting" "$own"
# `init().address("auto")` looks for the node of this user here.
export TMPDIR="$own" THARSIS_IDENTITY_DIR="$own/identity" THARSIS_SPILL_DIRS="$own"

put() { # put NAME: standard input becomes a file of the meeting folder
  cat > "$meeting/.$1.$rank"
  mv "$meeting/.$1.$rank" "$meeting/$1"
}

await() { # await SECONDS WHAT COMMAND..: until the command succeeds
  local until=$((SECONDS + $1)) what="$2"
  shift 2
  until "$@" > /dev/null 2>&1; do
    if [ "$SECONDS" -ge "$until" ]; then
      echo "tharsis: on $me: $what: not within the time" >&2
      return 1
    fi
    sleep 0.2
  done
}

all_are_members() {
  [ "$(tharsis nodes --limit 100000 | grep -c '^[0-9a-f]\{16\} ')" -ge "$machines" ]
}

finish() {
  local status=$?
  tharsis stop > /dev/null 2>&1 || true
  rm -rf "$own"
  # The others look for the end before the folder goes.
  if [ "$rank" = 0 ]; then
    echo "$status" | put done
    await 30 "the others have ended" all_have_left || true
    rm -rf "$meeting"
  else
    : | put "left-$rank"
  fi
}

all_have_left() {
  local other
  for other in $(seq 1 $((machines - 1))); do
    [ -e "$meeting/left-$other" ] || return 1
  done
}

trap finish EXIT
trap 'exit 143' TERM INT
options=(--host "$me" --num-cpus "${SLURM_CPUS_ON_NODE:-$(nproc)}")
if [ -n "${SLURM_MEM_PER_NODE:-}" ]; then
  # Slurm counts in MiB, and ends what uses more: a part is left to programs beside the node.
  options+=(--memory-limit "$((SLURM_MEM_PER_NODE * 9 / 10))MiB")
fi

if [ "$rank" = 0 ]; then
  line="$(tharsis start --head "${options[@]}" | grep -o -- '--address .*')"
  echo "$line" | put join
  await "$meet_s" "all $machines machines are members" all_are_members
  "$@"
else
  await "$meet_s" "the head runs" test -e "$meeting/join"
  read -r _ address _ THARSIS_TOKEN < "$meeting/join"
  export THARSIS_TOKEN
  tharsis start --address "$address" "${options[@]}" > /dev/null
  unset THARSIS_TOKEN
  until [ -e "$meeting/done" ]; do
    # A node that has ended leaves nothing to wait for.
    tharsis status > /dev/null
    sleep 1
  done
fi
