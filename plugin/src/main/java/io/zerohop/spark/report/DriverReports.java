package io.zerohop.spark.report;

import java.util.function.Consumer;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;

/**
 * Sends reports to the driver over Spark's own RPC. Used by one thread. Where the driver does not
 * take reports, each attempt waits as long as Spark's RPC does and fails.
 */
public final class DriverReports implements Consumer<String> {
  /** The endpoint in the driver. */
  public static final String ENDPOINT = "zerohop-reports";

  private final SparkEnv env;
  private final SparkConf conf;
  private RpcEndpointRef driver;

  public DriverReports(final SparkEnv env, final SparkConf conf) {
    this.env = env;
    this.conf = conf;
  }

  @Override
  public void accept(final String report) {
    if (driver == null) {
      driver = RpcUtils.makeDriverRef(ENDPOINT, conf, env.rpcEnv());
    }
    driver.send(report);
  }
}
