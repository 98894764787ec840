package io.zerohop.spark.rdmaproof;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.posix.KernelFiles;
import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.spark.doctor.Report;
import io.zerohop.spark.doctor.SystemFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Properties of a host on which a proof depends. Names of hosts and addresses are not among it,
 * since it is to be published; the kernel's boot id is, and stays out of reports. Immutable.
 */
record HostFacts(Map<String, String> all) {
  static final String HARDWARE = "adapters";
  static final String SOFTWARE = "software adapters";
  static final String PEERMEM = "nvidia-peermem";
  static final String DMA_BUF = "dma-buf";
  static final String NO_GPU = "no gpu because";

  /** Equal on one host only. */
  static final String BOOT = "boot";

  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path NVIDIA = Path.of("/proc/driver/nvidia");
  private static final Path PCI = Path.of("/sys/bus/pci/devices");
  private static final String VIRTUAL = "/sys/devices/virtual/";
  private static final String NONE = "none";

  HostFacts {
    all = java.util.Collections.unmodifiableMap(new LinkedHashMap<>(all));
  }

  static HostFacts read(final int gpu) {
    final Map<String, String> facts = new LinkedHashMap<>();
    facts.put(BOOT, text(BOOT_ID));
    facts.put("zerohop", Report.version());
    facts.put("kernel", System.getProperty("os.version") + " " + System.getProperty("os.arch"));
    facts.put("processors", Integer.toString(Runtime.getRuntime().availableProcessors()));
    facts.put("java", System.getProperty("java.version"));
    facts.put(
        "iommu groups",
        Integer.toString(KernelFiles.names(Path.of("/sys/kernel/iommu_groups")).size()));
    final OptionalLong locked = SystemFiles.SYSTEM.limit("Max locked memory");
    facts.put("locked memory", locked.isEmpty() ? "unlimited" : Long.toString(locked.getAsLong()));
    facts.putAll(adapters(RdmaDevices.FOLDER));
    final String pci = gpu(facts, gpu);
    facts.put("chosen", RdmaDevices.any() ? AdapterChoice.of(pci).describe() : NONE);
    facts.put("settings of ucx", settings(System.getenv()));
    return new HostFacts(facts);
  }

  /**
   * Returns the adapters that the kernel lists, software's separately: they have no hardware of
   * their own.
   */
  static Map<String, String> adapters(final Path folder) {
    final List<String> hardware = new ArrayList<>();
    final List<String> software = new ArrayList<>();
    for (final String device : KernelFiles.names(folder)) {
      final Path at = folder.resolve(device);
      for (final String port : KernelFiles.names(at.resolve("ports"))) {
        final Path each = at.resolve("ports").resolve(port);
        final String firmware = text(at.resolve("fw_ver"));
        final String line =
            Stream.of(
                    device + ":" + port,
                    text(at.resolve("hca_type")),
                    firmware.isEmpty() ? "" : "firmware " + firmware,
                    text(each.resolve("link_layer")),
                    text(each.resolve("rate")),
                    text(each.resolve("state")))
                .filter(word -> !word.isEmpty())
                .collect(Collectors.joining(", "));
        (isSoftware(at) ? software : hardware).add(line);
      }
    }
    final Map<String, String> facts = new LinkedHashMap<>();
    facts.put(HARDWARE, listed(hardware));
    facts.put(SOFTWARE, listed(software));
    return facts;
  }

  private static boolean isSoftware(final Path device) {
    try {
      return device.toRealPath().toString().contains(VIRTUAL)
          || Files.notExists(device.resolve("device"));
    } catch (final IOException e) {
      return true; // Nothing is proved by what is not there.
    }
  }

  private static String listed(final List<String> all) {
    return all.isEmpty() ? NONE : String.join("; ", all);
  }

  /** Returns the PCI address of the GPU; null if there is none that can be used. */
  private static @Nullable String gpu(final Map<String, String> facts, final int ordinal) {
    facts.put(PEERMEM, Boolean.toString(RdmaDevices.peermem()));
    final Message absence = CudaDriver.absence();
    if (absence != null) {
      facts.put(NO_GPU, absence.text());
      return null;
    }
    try (CudaDevice gpu = new CudaDevice(ordinal, CudaDevice.DEFAULT_MULTIPROCESSORS)) {
      final String pci = gpu.pciAddress();
      facts.put("driver", text(NVIDIA.resolve("version")));
      facts.put("gpu", text(NVIDIA.resolve("gpus/" + pci + "/information")));
      facts.put(DMA_BUF, Boolean.toString(gpu.dmaBufCapable()));
      facts.put("segments can be registered", Boolean.toString(gpu.rdmaCapable()));
      facts.put("bar1 bytes", Long.toString(bar1(PCI.resolve(pci).resolve("resource"))));
      return pci;
    } catch (final ZerohopException e) {
      facts.put(NO_GPU, String.valueOf(e.getMessage()));
      return null;
    }
  }

  /** By its first and last address, the second line of what the kernel lists; 0 if it does not. */
  static long bar1(final Path resource) {
    try {
      final String[] range = Files.readAllLines(resource).get(1).split(" ");
      final long first = Long.decode(range[0]);
      return first == 0 ? 0 : Long.decode(range[1]) - first + 1;
    } catch (final IOException | RuntimeException e) {
      return 0;
    }
  }

  /** What steers UCX, without names of files. */
  private static String settings(final Map<String, String> environment) {
    final List<String> settings = new ArrayList<>();
    new TreeMap<>(environment)
        .forEach(
            (name, value) -> {
              if (name.startsWith("UCX_") && !value.contains("/")) {
                settings.add(name + "=" + value);
              }
            });
    return listed(settings);
  }

  /** The first line of a file; empty if it cannot be read. */
  private static String text(final Path file) {
    return KernelFiles.lines(file).stream().findFirst().orElse("").strip().replaceAll("\\s+", " ");
  }

  boolean hasHardware() {
    return !hardware().equals(NONE);
  }

  String hardware() {
    return all.getOrDefault(HARDWARE, NONE);
  }

  boolean hasAny() {
    return hasHardware() || hasSoftware();
  }

  boolean hasSoftware() {
    return !all.getOrDefault(SOFTWARE, NONE).equals(NONE);
  }

  /** Returns why GPU memory cannot be read here; null if it may be. */
  @Nullable String gpuAbsence() {
    return all.get(NO_GPU);
  }

  boolean says(final String name) {
    return Boolean.parseBoolean(all.get(name));
  }

  /** Returns whether both are known to be of two hosts: two kernels run them. */
  boolean isOtherHost(final HostFacts other) {
    final String own = all.getOrDefault(BOOT, "");
    final String theirs = other.all.getOrDefault(BOOT, "");
    return !own.isEmpty() && !theirs.isEmpty() && !own.equals(theirs);
  }

  /** For the other side. */
  List<String> words() {
    final List<String> words = new ArrayList<>();
    all.forEach((name, value) -> words.addAll(List.of(name, value)));
    return words;
  }

  /** Reads what {@link #words} wrote. */
  static HostFacts parse(final List<String> words) {
    final Map<String, String> facts = new LinkedHashMap<>();
    for (int i = 0; i + 1 < words.size(); i += 2) {
      facts.put(words.get(i), words.get(i + 1));
    }
    return new HostFacts(facts);
  }
}
