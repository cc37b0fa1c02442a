#!/usr/bin/env bash
# Everything of this folder, one script after the other; each also runs on its own.
# usage: run.sh [--quick]      (a dry run of minutes)
set -euo pipefail
cd "$(dirname "$0")"
for script in *.sh; do
    if [ "$script" != run.sh ]; then
        echo "== $script"
        bash "$script" "$@"
    fi
done
