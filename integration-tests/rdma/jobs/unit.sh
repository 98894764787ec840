# shellcheck shell=bash
# The unit tests of path 'ucx', over verbs alone.
. /pack/verbs.sh
units unit --scan-classpath /pack/test-classes --include-package io.zerohop.shuffle.transport.ucx
