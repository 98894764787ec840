import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A resource manager and a node manager of YARN in one process, on this machine: {@code MiniYarn
 * FOLDER}. Writes FOLDER/conf/yarn-site.xml for those who submit, says {@code ready}, and ends with
 * its standard input.
 */
public final class MiniYarn {
  private MiniYarn() {}

  public static void main(final String... args) throws Exception {
    final Path folder = Path.of(args[0]);
    final Configuration conf = new Configuration();
    conf.set("fs.defaultFS", "file:///");
    conf.set("hadoop.tmp.dir", folder.resolve("tmp").toString());
    // The default wants a file with its queues.
    conf.set(
        "yarn.resourcemanager.scheduler.class",
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler");
    conf.set("yarn.scheduler.minimum-allocation-mb", "256");
    // Under this name the mini cluster takes it, and else has 4 GiB.
    conf.set("yarn.minicluster.yarn.nodemanager.resource.memory-mb", "12288");
    conf.set("yarn.nodemanager.resource.cpu-vcores", "8");
    // The resident set is what bounds a container; address space says nothing of a JVM.
    conf.set("yarn.nodemanager.pmem-check-enabled", "true");
    // With control groups in charge, Hadoop's default, nobody would look at it here.
    conf.set("yarn.nodemanager.resource.memory.enforced", "false");
    conf.set("yarn.nodemanager.vmem-check-enabled", "false");
    conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99");
    conf.set("yarn.nodemanager.delete.debug-delay-sec", "600");
    try (MiniYARNCluster cluster = new MiniYARNCluster("zerohop", 1, 1, 1)) {
      cluster.init(conf);
      cluster.start();
      final Path site = Files.createDirectories(folder.resolve("conf")).resolve("yarn-site.xml");
      try (OutputStream out = Files.newOutputStream(site)) {
        cluster.getConfig().writeXml(out);
      }
      Files.copy(site, site.resolveSibling("core-site.xml"));
      System.out.println("ready");
      while (System.in.read() >= 0) {
        // Nobody says anything; this is only about the end.
      }
    } catch (final Exception | LinkageError e) {
      e.printStackTrace();
      System.exit(1); // As below: who waits has to see that it has ended.
    }
    System.exit(0); // Some of its threads would stay.
  }
}
