# shellcheck shell=bash
# The same between machines with different libucx, and different settings of it.
. /pack/spark.sh
cluster
failed=0
application auto rows || failed=1
application message rows || failed=1
exit "$failed"
