package com.nvidia.spark.rapids;

/** As RAPIDS'. */
public final class ShimLoader {
  private ShimLoader() {}

  public static ClassLoader getShimClassLoader() {
    return ShimLoader.class.getClassLoader();
  }

  public static String getRapidsShuffleManagerClass() {
    return "com.nvidia.spark.rapids.spark413.RapidsShuffleManager";
  }
}
