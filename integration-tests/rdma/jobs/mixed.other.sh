# shellcheck shell=bash
# The second machine of job mixed, until the first one has ended.
. /pack/spark.sh
cluster
wait
