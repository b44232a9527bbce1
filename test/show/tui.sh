#!/bin/sh
# What the screen looks like in a terminal of a size, into docs/screens/SIZE:
#
#   test/show/tui.sh 80x24 [-png]
set -eu
cd "$(dirname "$0")/../.."
size="${1:?the size of the terminal, such as 80x24}"
shift
exec go run ./test/show -size "$size" "$@"
