package io.zerohop.device.cuda;

import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import jcuda.driver.JCudaDriver;

/** All measurements of the device layer; {@code benchmarks/gpu/run.sh bench} runs it. */
public final class CudaBench {
  private CudaBench() {}

  /** Arguments: commit, folder for the JSON, driver, link, gather|alltoall|signal|host_link|all. */
  public static void main(final String[] arguments) throws IOException {
    final String commit = arguments[0];
    final Path out = Path.of(arguments[1]);
    final Map<String, Object> host = host(arguments[2], arguments[3]);
    final String which = arguments[4];
    if (which.equals("all") || which.equals("signal")) {
      final BenchFile signal = new BenchFile("signal", commit, host);
      SignalBench.run(signal);
      signal.write(out);
    }
    if (which.equals("all") || which.equals("host_link")) {
      final BenchFile hostLink = new BenchFile("host_link", commit, host);
      HostLinkBench.run(hostLink);
      hostLink.write(out);
    }
    if (which.equals("all") || which.equals("gather")) {
      final BenchFile gather = new BenchFile("gather", commit, host);
      GatherBench.run(gather);
      gather.write(out);
    }
    if (which.equals("all") || which.equals("alltoall")) {
      final BenchFile all = new BenchFile("alltoall", commit, host);
      for (int gpus = 2; gpus <= CudaDriver.devices(); gpus *= 2) {
        AllToAllBench.run(all, gpus);
      }
      all.write(out);
    }
  }

  private static Map<String, Object> host(final String driver, final String link) {
    final Map<String, Object> host = new LinkedHashMap<>();
    final byte[] name = new byte[64];
    CudaContext.of(0).enter();
    JCudaDriver.cuDeviceGetName(name, name.length, CudaContext.of(0).handle());
    host.put("gpu", new String(name, java.nio.charset.StandardCharsets.US_ASCII).trim());
    host.put("gpus", CudaDriver.devices());
    host.put("link", link);
    host.put("driver", driver);
    host.put("cpu_cores", Runtime.getRuntime().availableProcessors());
    return host;
  }
}
