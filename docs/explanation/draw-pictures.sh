#!/usr/bin/env bash
# Draws the pictures of schedules.md again: bash docs/explanation/draw-pictures.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
draw() { ./dev troupe schedule "$@" --micro-batches 8 --format svg > "docs/explanation/pictures/$1.svg"; }
for name in seq gpipe 1f1b 1f1b-eager zb-h1 zb-h2 dualpipe chimera pipedream pipedream-2bw; do draw "$name" --stages 4; done
for name in interleaved bfs zb-v v-half v-min dualpipev hanayo; do draw "$name" --stages 8 --chunks 2; done
