# shellcheck shell=bash
# The proof kit on two machines that nobody else reaches, as jobs of theirs start it.
. /pack/verbs.sh
secret=/tmp/secret
(umask 077 && echo 'two machines that nobody else reaches have no secrets' > "$secret")

# proof OPTION ...
proof() {
  java -Xmx200m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -jar /pack/zerohop.jar rdma-proof \
    --secret "$secret" --trusted-network "$@" 2> /host/proof.log
}
