package com.nvidia.spark.rapids;

import org.apache.spark.SparkConf;

/** As RAPIDS'. */
public class RapidsConf {
  private final SparkConf conf;

  public RapidsConf(final SparkConf conf) {
    this.conf = conf;
  }

  public SparkConf conf() {
    return conf;
  }
}
