#!/bin/sh
# Runs a program under one of compute-sanitizer's tools. 77 where it is missing or may not look at this device.
# sanitize.sh TOOL PROGRAM [ARGUMENT...]   SPDX-License-Identifier: Apache-2.0
set -u
tool=$1
shift
command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is not installed"; exit 77; }
"$1" no-such-test >/dev/null 2>&1
[ $? -eq 77 ] && { echo "skipped: there is no GPU"; exit 77; }
out=$(compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 "$@" 2>&1)
code=$?
printf '%s\n' "$out" | tail -40
case $out in
*"Device not supported"* | *"not permitted"* | *"Unable to initialize"*)
    echo "skipped: compute-sanitizer may not look at this device"
    exit 77
    ;;
esac
exit $code
