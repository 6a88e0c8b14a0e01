#!/bin/sh
# One of our rows keeps the contract on a GPU: every configuration, in full. 77 where there is no GPU or the row does not fit it.
# conform.sh PROGRAM BACKEND   SPDX-License-Identifier: Apache-2.0
set -u
out=$("$1" conform --device cuda --backend "$2" 2>&1)
code=$?
printf '%s\n' "$out"
[ $code -eq 4 ] && { echo "skipped: $2 cannot run here"; exit 77; }
exit $code
