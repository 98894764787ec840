# shellcheck shell=bash
# What every job sets, since the adapter is emulated: it acknowledges wire-up at the link-local
# address only, and takes 7 retries, the default, for no end of them, where others end after
# seconds. Without a list of transports, two ends on one machine would take shared memory.
verbs="UCX_IB_GID_INDEX=0 UCX_NET_DEVICES=rxe0:1 UCX_TLS=rc_verbs,ud_verbs UCX_RC_RETRY_COUNT=6 UCX_WARN_UNUSED_ENV_VARS=n"
# shellcheck disable=SC2086,SC2163 # They are assignments of several variables.
export $verbs
export LD_LIBRARY_PATH=/pack/libucx

# units NAME SELECTION ...: unit tests, as JUnit's console selects them; /host/NAME.log and
# /host/NAME are what they leave
units() {
  local name="$1"
  shift
  cd /tmp || return
  java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=info \
    -cp "/pack/test-classes:/pack/classes:/pack/lib/*" \
    org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=tree \
    --reports-dir "/host/$name" --exclude-tag no-libucx "$@" > "/host/$name.log" 2>&1
}
