package io.zerohop.spark.rdmaproof;

import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.spark.doctor.ForeignCode;
import io.zerohop.spark.doctor.Machine;
import io.zerohop.spark.doctor.Report.ReleaseVersion;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code java -jar zerohop-spark.jar rdma-proof}: two hosts prove RDMA to each other. */
@Command(
    name = ProofCommand.NAME,
    mixinStandardHelpOptions = true,
    versionProvider = ReleaseVersion.class,
    description = {
      "Proves on two hosts that one reads the other's memory by RDMA: with --listen on the first,"
          + " and with its name on the second, which prints JSON.",
      "What it says on the way goes to standard error."
    },
    exitCodeListHeading = "Exit status:%n",
    exitCodeList = {
      " 0:proven",
      " 1:not proven: something is missing, such as an adapter",
      " 2:failed: a check has failed that should not",
      "64:the command line is not valid",
      "70:the proof itself failed, or nobody came"
    },
    exitCodeOnInvalidInput = ProofCommand.INVALID,
    exitCodeOnExecutionException = ProofCommand.BROKEN)
public final class ProofCommand implements Callable<Integer> {
  static final String NAME = "rdma-proof";
  static final String WORKER = "--worker";
  static final int INVALID = 64;
  static final int BROKEN = 70;

  private static final int DEFAULT_PORT = 7373;
  private static final int MIB = 1 << 20;
  private static final int RATE_MILLIS = 300;
  private static final Duration CONNECT = Duration.ofSeconds(10);
  private static final String FIRST = "A";
  private static final String SECOND = "B";

  @Spec private CommandSpec spec;

  @Parameters(
      arity = "0..1",
      paramLabel = "HOST",
      description = "The host that listens, by an address of the network that is to be proved.")
  private @Nullable String host;

  @Option(names = "--listen", description = "Wait for the other host.")
  private boolean listen;

  @Option(
      names = "--address",
      paramLabel = "ADDRESS",
      description = "With --listen: this host's address; UCX listens on its interface, too.")
  private @Nullable String address;

  @Option(
      names = "--port",
      defaultValue = "" + DEFAULT_PORT,
      description = "Of the host that listens (default: ${DEFAULT-VALUE}).")
  private int port;

  @Option(
      names = "--secret",
      paramLabel = "FILE",
      description = "The same at both hosts, 32 characters or more, for this user alone.")
  private @Nullable Path secret;

  @Option(
      names = "--trusted-network",
      description =
          "Only trusted programs reach this network: UCX does not authenticate peers, and who"
              + " reaches its ports can read and write the memory of the kit's processes.")
  private boolean trusted;

  @Option(
      names = "--memory",
      split = ",",
      paramLabel = "KIND",
      description = "host, gpu, or both with a comma; by default gpu where both hosts have one.")
  private Set<MemoryKind> kinds = EnumSet.noneOf(MemoryKind.class);

  @Option(
      names = "--gpu",
      defaultValue = "0",
      paramLabel = "N",
      description = "Which GPU this host uses (default: ${DEFAULT-VALUE}).")
  private int gpu;

  @Option(
      names = "--mib",
      defaultValue = "1024",
      paramLabel = "MIB",
      description = "Of a segment, and of the largest get (default: ${DEFAULT-VALUE}).")
  private long mib;

  @Option(
      names = "--kills",
      defaultValue = "10",
      paramLabel = "N",
      description = "Owners to kill in each direction (default: ${DEFAULT-VALUE}).")
  private int kills;

  @Option(
      names = "--limit",
      defaultValue = "1800",
      paramLabel = "SECONDS",
      description = "After which all ends (default: ${DEFAULT-VALUE}).")
  private long limitSeconds;

  @Option(
      names = "--spark",
      paramLabel = "DIR",
      description = "An installation of Spark, whose spark-submit runs a job at the end.")
  private @Nullable Path spark;

  @Option(
      names = "--master",
      paramLabel = "URL",
      description = "With --spark: of a cluster with one executor on each host.")
  private @Nullable String master;

  @Option(
      names = "--rows",
      defaultValue = "20000000",
      paramLabel = "N",
      description = "With --spark: of the job (default: ${DEFAULT-VALUE}).")
  private long rows;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description = "With --spark: settings of the job.")
  private Map<String, String> conf = Map.of();

  /** What the command starts itself. */
  @Option(names = WORKER, hidden = true)
  private boolean worker;

  @Override
  public Integer call() {
    if (worker) {
      GetWorker.main();
    }
    final byte[] known = check();
    final Duration limit = Duration.ofSeconds(limitSeconds);
    final PrintWriter log = spec.commandLine().getErr();
    try {
      return listen ? listen(known, limit, log) : prove(known, limit, log);
    } catch (final IOException | ProofException | Side.LostException e) {
      log.println("rdma-proof: " + e.getMessage());
      return BROKEN;
    }
  }

  private byte[] check() {
    if (listen == (host != null)) {
      throw invalid("either --listen, or the name of the host that listens");
    }
    if (!trusted) {
      throw invalid(
          "UCX does not authenticate peers: where only trusted programs reach the network, say"
              + " --trusted-network (SECURITY.md)");
    }
    if (secret == null) {
      throw invalid("--secret FILE is missing: without, everybody could have processes started");
    }
    range("--port", port, listen ? 0 : 1, 65_535);
    range("--gpu", gpu, 0, 1_000);
    range("--mib", mib, 1, GetWorker.MAX_BYTES / MIB);
    range("--kills", kills, 0, 10_000);
    range("--limit", limitSeconds, 1, Duration.ofDays(1).toSeconds());
    range("--rows", rows, 1, 1_000_000_000); // The sum of their keys is a long.
    if ((spark == null) != (master == null)) {
      throw invalid("--spark and --master go together");
    }
    try {
      return SecretFile.read(secret);
    } catch (final IOException e) {
      throw invalid("no secret: " + e.getMessage());
    }
  }

  private void range(final String option, final long value, final long min, final long max) {
    if (value < min || value > max) {
      throw invalid(option + " is " + min + " to " + max);
    }
  }

  private ParameterException invalid(final String why) {
    return new ParameterException(spec.commandLine(), why);
  }

  private int listen(final byte[] known, final Duration limit, final PrintWriter log)
      throws IOException {
    final InetAddress own = InetAddress.getByName(address == null ? Machine.ownAddress() : address);
    try (Listener listener = new Listener(own, port, known, gpu, limit, Clock.system(), log)) {
      log.println("listens at " + listener.address());
      return listener.serve() ? 0 : BROKEN;
    }
  }

  private int prove(final byte[] known, final Duration limit, final PrintWriter log)
      throws IOException {
    final Deadline end = Deadline.in(limit);
    try (ProvenChannel channel =
        ProvenChannel.connect(new InetSocketAddress(host, port), known, CONNECT)) {
      channel.closeIn(limit);
      final String own = channel.localAddress().getAddress().getHostAddress();
      final OtherSide there = new OtherSide(channel, FIRST);
      final Side.Own here = new Side.Own(SECOND, own, gpu, limit, log);
      final Trial.Extent extent = new Trial.Extent(mib * MIB, kills, RATE_MILLIS);
      final ProofReport report =
          new Proof(there, here, memory(there), extent, Clock.system(), log).run(job(end));
      log.println(report.text());
      spec.commandLine().getOut().println(report.json());
      spec.commandLine().getOut().flush();
      return report.exitStatus();
    }
  }

  /** What is asked for: by default GPU memory only where both have it. */
  private Set<MemoryKind> memory(final Side there) {
    if (!kinds.isEmpty()) {
      return kinds;
    }
    return CudaDriver.present() && there.facts().gpuAbsence() == null
        ? EnumSet.allOf(MemoryKind.class)
        : EnumSet.of(MemoryKind.HOST);
  }

  private @Nullable SparkJob job(final Deadline end) {
    return spark == null || master == null
        ? null
        : new SparkJob(spark, master, jar(), rows, conf, end);
  }

  private static Path jar() {
    try {
      return Path.of(
          ProofCommand.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (final URISyntaxException e) {
      throw new IllegalStateException("this jar's place is not known", e);
    }
  }

  /** The host at the other end of a connection, whose {@link Listener} starts its workers. */
  record OtherSide(ProvenChannel channel, String name) implements Side {
    /** Beside the time that the other side itself waits for its worker. */
    private static final Duration WAY = Duration.ofSeconds(20);

    private static final Duration START = Duration.ofSeconds(90);

    @Override
    public HostFacts facts() {
      return HostFacts.parse(ask(START, List.of(Listener.FACTS)));
    }

    @Override
    public Worker start(final MemoryKind kind) {
      final List<String> answer = ask(START, List.of(Listener.START, kind.key()));
      return new Remote(answer.get(0));
    }

    private List<String> ask(final Duration limit, final List<String> question) {
      try {
        channel.send(question);
        return ProofWords.said(channel.receive(limit));
      } catch (final IOException e) {
        throw new LostException("the other side is lost: " + e.getMessage(), e);
      }
    }

    /** Its worker of that number. */
    private final class Remote implements Worker {
      private final String number;
      private boolean closed;

      Remote(final String number) {
        this.number = number;
      }

      @Override
      public List<String> ask(final Duration limit, final String... words) {
        final List<String> question = new ArrayList<>();
        question.addAll(List.of(Listener.ASK, number, Long.toString(limit.toMillis())));
        question.addAll(List.of(words));
        return OtherSide.this.ask(limit.plus(WAY), question);
      }

      private List<String> tell(final String what) {
        return OtherSide.this.ask(WAY, List.of(what, number));
      }

      @Override
      public void stop() {
        tell(Listener.STOP);
      }

      @Override
      public void resume() {
        tell(Listener.RESUME);
      }

      @Override
      public boolean isStopped() {
        return Boolean.parseBoolean(tell(Listener.STATE).get(0));
      }

      @Override
      public void kill() {
        tell(Listener.KILL);
      }

      @Override
      public void close() {
        if (!closed) {
          closed = true;
          tell(Listener.END);
        }
      }
    }
  }

  /** The secret that both sides of a proof read from a file of their own. */
  static final class SecretFile {
    private static final int MIN_CHARACTERS = 32;
    private static final int MAX_BYTES = 4096;
    private static final int OTHERS = 0077;

    private SecretFile() {}

    /** Reads the secret as the user of this process. */
    static byte[] read(final Path file) throws IOException {
      return read(file, new ForeignCode());
    }

    /**
     * Reads the secret, without the white space around it.
     *
     * @param ownership tells who else can change the file, or replace it
     * @throws IOException if this is no regular file, other users can read or change it, or the
     *     secret is too short
     */
    static byte[] read(final Path file, final ForeignCode ownership) throws IOException {
      if (!Files.isRegularFile(file)) {
        throw new IOException(file + " is not a file");
      }
      if (((int) Files.getAttribute(file, "unix:mode") & OTHERS) != 0) {
        throw new IOException(file + " can be read or written by other users; chmod 600 " + file);
      }
      final String changeable = ownership.changeable(file);
      if (changeable != null) {
        throw new IOException(changeable + ": others may know the secret; use a file of your own");
      }
      final byte[] bytes;
      try (InputStream in = Files.newInputStream(file)) {
        bytes = in.readNBytes(MAX_BYTES + 1);
      }
      if (bytes.length > MAX_BYTES) {
        throw new IOException(file + " has more than " + MAX_BYTES + " bytes");
      }
      final String secret = new String(bytes, StandardCharsets.UTF_8).strip();
      if (secret.length() < MIN_CHARACTERS) {
        throw new IOException(
            file
                + " has fewer than "
                + MIN_CHARACTERS
                + " characters; (umask 077; head -c 32 /dev/urandom | base64 > "
                + file
                + ") makes one");
      }
      return secret.getBytes(StandardCharsets.UTF_8);
    }
  }
}
