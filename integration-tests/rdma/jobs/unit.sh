# shellcheck shell=bash
# The unit tests of path 'ucx', over verbs alone, but for one that reads a page of the docs, which are
# not on the machine's disk.
. /pack/verbs.sh
units unit --scan-classpath /pack/test-classes --include-package io.zerohop.shuffle.transport.ucx \
  --exclude-classname '.*\.LibucxReleaseTest'
