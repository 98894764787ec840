# shellcheck shell=bash
# Gets while the owner's process is stopped: answered by the adapter, or emulated. And gets from an
# owner that dies, also with an adapter that would go on trying for ever.
. /pack/verbs.sh
package=io.zerohop.shuffle.transport.ucx
failed=0
units stop --select-class "$package.OneSidedGetTest" --select-class "$package.OwnerDeathTest" || failed=1
UCX_RC_RETRY_COUNT=7 units retries --select-class "$package.OwnerDeathTest" || failed=1
exit "$failed"
