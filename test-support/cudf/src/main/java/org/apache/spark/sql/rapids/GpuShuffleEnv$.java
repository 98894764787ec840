package org.apache.spark.sql.rapids;

import com.nvidia.spark.rapids.RapidsConf;
import com.nvidia.spark.rapids.ShimLoader;

/** As RAPIDS': it shuffles on the GPU if the shuffle manager is its own when it looks. */
public final class GpuShuffleEnv$ {
  public static final GpuShuffleEnv$ MODULE$ = new GpuShuffleEnv$();

  private boolean usesGpu;
  private boolean refuses;

  private GpuShuffleEnv$() {}

  public void init(final RapidsConf conf) {
    usesGpu =
        !refuses
            && conf.conf()
                .get("spark.shuffle.manager", "")
                .equals(ShimLoader.getRapidsShuffleManagerClass());
  }

  /** Whether it stays on the host from now on, whatever it finds. */
  public void refuse(final boolean refuse) {
    refuses = refuse;
  }

  public boolean useGPUShuffle(final RapidsConf conf) {
    return usesGpu;
  }
}
