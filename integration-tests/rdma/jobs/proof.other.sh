# shellcheck shell=bash
# The second machine of job proof, which listens. The first one looks whether it does, as a stranger.
. /pack/proof.sh
proof --listen --address machine-2
