# shellcheck shell=bash
# The proof kit between two machines: all of it but that an adapter made by software proves nothing.
. /pack/proof.sh
until (exec 3<> /dev/tcp/machine-2/7373) 2> /dev/null; do sleep 1; done
status=0
proof machine-2 --mib 32 --kills 3 > /host/proof.json || status=$?
# 1 is "not proven". Each finding stands behind a brace.
[ "$status" = 1 ] && ! tr '{' '\n' < /host/proof.json | grep '"result":"failed"' | grep -v '"check":"adapter"'
