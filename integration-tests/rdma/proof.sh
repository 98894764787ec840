# shellcheck shell=bash
# The proof kit on two machines that nobody else reaches, as jobs of theirs start it.
. /pack/spark.sh
: "${quick:?}" "${opens:?}" # of spark.sh
secret=/tmp/secret
(umask 077 && echo 'two machines that nobody else reaches have no secrets' > "$secret")

# proof OPTION ...
proof() {
  java -Xmx200m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -jar /pack/zerohop.jar rdma-proof \
    --secret "$secret" --trusted-network "$@" 2> /host/proof.log
}

# Spark's script is in none of Maven's packages: this is what it comes to.
mkdir -p "$SPARK_HOME/bin"
cat > "$SPARK_HOME/bin/spark-submit" << END
#!/usr/bin/env bash
exec java -Xmx500m $quick $opens -cp "/pack/zerohop.jar:$SPARK_HOME/conf:$SPARK_HOME/jars/*" \
  org.apache.spark.deploy.SparkSubmit "\$@"
END
chmod +x "$SPARK_HOME/bin/spark-submit"
