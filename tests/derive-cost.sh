#!/usr/bin/env bash
# What the derive costs a build: generates crates of 1, 10 and 50 structs of ten fields, without a derive and with each
# of ContextState (alone, with a budget, with a budget of five numbers and a house policy), serde and bon, runs `cargo check` on each, and prints milliseconds of CPU a struct over the crate
# without one. Needs the registry once, for serde and bon. Usage: tests/derive-cost.sh [runs]
set -euo pipefail

runs=${1:-5}
core=$(cd "$(dirname "$0")/../core" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$work/target"

# field NUMBER KIND: one field, with the attribute of a lane where the derive reads one.
field() {
  if [[ $2 == keepspan* ]]; then
    kinds=(instruction precondition invariant constraint negative_result scope_qualifier evictable rationale derived evictable)
    echo "    #[${kinds[$1]}] pub f$1: keepspan::Spans,"
  else
    echo "    pub f$1: String,"
  fi
}

# source_of KIND STRUCTS
source_of() {
  # Every library is linked in every crate, so that loading it is no difference.
  echo '#![allow(dead_code)] extern crate bon as _; extern crate keepspan as _; extern crate serde as _;'
  [ "$1" != keepspan-policy ] || echo 'keepspan::policy! { pub House { requires(precondition => scope_qualifier) } }'
  for ((s = 0; s < $2; s++)); do
    case $1 in
      keepspan*) echo '#[derive(keepspan::ContextState)]' ;;
      serde) echo '#[derive(serde::Serialize, serde::Deserialize)]' ;;
      bon) echo '#[derive(bon::Builder)]' ;;
    esac
    case $1 in
      keepspan-budget) echo '#[context(budget = 24_000)]' ;;
      keepspan-policy)
        echo '#[context(budget = 24_000, fixed = 1_200, trigger = 20_000, index = 600, rationale = 400, policy = House)]' ;;
    esac
    echo "pub struct S$s {"
    for ((f = 0; f < 10; f++)); do field "$f" "$1"; done
    echo '}'
  done
}

crate() {
  local dir="$work/$1-$2"
  mkdir -p "$dir/src"
  source_of "$1" "$2" >"$dir/src/lib.rs"
  cat >"$dir/Cargo.toml" <<TOML
[package]
name = "$1-$2"
version = "0.0.0"
edition = "2024"
[dependencies]
keepspan = { path = "$core", default-features = false, features = ["derive"] }
serde = { version = "1", features = ["derive"] }
bon = "3"
TOML
  members+=("\"$1-$2\"")
}

members=()
for kind in none keepspan keepspan-budget keepspan-policy serde bon; do
  for structs in 1 10 50; do crate $kind $structs; done
done
printf '[workspace]\nresolver = "3"\nmembers = [%s]\n' "$(IFS=,; echo "${members[*]}")" >"$work/Cargo.toml"
cargo check --quiet --manifest-path "$work/Cargo.toml" --workspace

# The least CPU of all runs, one run of every crate after the other so that a busy moment hits them all.
declare -A least
TIMEFORMAT='%U %S'
for ((run = 0; run < runs; run++)); do
  for structs in 1 10 50; do
    for kind in none keepspan keepspan-budget keepspan-policy serde bon; do
      touch "$work/$kind-$structs/src/lib.rs"
      took=$({ time cargo check --quiet --offline --manifest-path "$work/Cargo.toml" -p "$kind-$structs" >/dev/null; } 2>&1)
      took=$(awk '{ print 1000 * ($1 + $2) }' <<<"$took")
      key="$kind-$structs"
      least[$key]=$(awk -v a="${least[$key]:-1e9}" -v b="$took" 'BEGIN { print (b < a) ? b : a }')
    done
  done
done

echo '| structs of 10 fields | no derive, ms | ContextState, ms a struct | with a budget | with five numbers and a policy | serde | bon |'
echo '| ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
for structs in 1 10 50; do
  more() { awk -v n="$structs" -v none="${least[none-$structs]}" -v it="${least[$1-$structs]}" 'BEGIN { printf "%.2f", (it - none) / n }'; }
  printf '| %d | %.0f | %s | %s | %s | %s | %s |\n' "$structs" "${least[none-$structs]}" "$(more keepspan)" \
    "$(more keepspan-budget)" "$(more keepspan-policy)" "$(more serde)" "$(more bon)"
done
