package io.zerohop.spark.rdmaproof;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.device.TestClock;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import io.zerohop.spark.rdmaproof.ProofReport.Verdict;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** What is found comes to a verdict, and what is missing is no proof. */
class ProofTest {
  private static final Trial.Extent EXTENT = new Trial.Extent(1 << 20, 3, 10);
  private static final Set<MemoryKind> HOST = EnumSet.of(MemoryKind.HOST);

  @TempDir private Path folder;

  private final PrintWriter log = new PrintWriter(Writer.nullWriter());

  private ProofReport prove(final Side first, final Side second, final Set<MemoryKind> kinds) {
    return new Proof(first, second, kinds, EXTENT, TestClock.running(), log).run(null);
  }

  private static List<ProofLine> of(final ProofReport report, final Check check) {
    return report.findings().stream().filter(it -> it.check() == check).toList();
  }

  /** A host without a GPU, and otherwise with all but some facts. */
  private static FakeSide without(final String name, final String... facts) {
    final Map<String, String> rest = new HashMap<>(FakeSide.complete(name).facts().all());
    rest.put(HostFacts.NO_GPU, "there is no driver");
    List.of(facts).forEach(rest::remove);
    return new FakeSide(name, rest);
  }

  /** One whose workers answer one question otherwise. */
  private static FakeSide answering(final String question, final String... answer) {
    final FakeSide complete = FakeSide.complete("B");
    return new FakeSide("B", complete.facts().all()) {
      @Override
      FakeWorker worker() {
        return new FakeWorker() {
          @Override
          List<String> answer(final String... words) {
            return words[0].equals(question) ? List.of(answer) : super.answer(words);
          }
        };
      }
    };
  }

  @Test
  void twoHostsWithAllProveBothKindsOfMemory() {
    final FakeSide first = FakeSide.complete("A");
    final FakeSide second = FakeSide.complete("B");
    final ProofReport report = prove(first, second, EnumSet.allOf(MemoryKind.class));
    assertThat(report.all().why()).isEmpty();
    assertThat(report.all().verdict()).isEqualTo(Verdict.PROVEN);
    assertThat(report.exitStatus()).isZero();
    for (final Check check : List.of(Check.CONTENTS, Check.ONE_SIDED, Check.KILLED)) {
      assertThat(of(report, check)).hasSize(4).allMatch(it -> it.result() == Result.PASSED);
    }
    // Owners of each kind: one for all, and one for each kill but the first.
    assertThat(first.workers.stream().filter(it -> it.isKilled()).count()).isEqualTo(6);
    assertThat(first.workers).allMatch(it -> it.isClosed()).hasSize(8);
    assertThat(second.workers).allMatch(it -> it.isClosed()).hasSize(8);
  }

  @Test
  void withoutAnAdapterNothingIsProven() {
    final ProofReport report = prove(without("A"), without("B", HostFacts.HARDWARE), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.NOT_PROVEN);
    assertThat(report.text())
        .startsWith("not proven: no RDMA adapter at host B: /sys/class/infiniband is empty");
    assertThat(report.exitStatus()).isEqualTo(1);
  }

  @Test
  void anAdapterOfSoftwareIsNone() {
    final Map<String, String> facts = new HashMap<>(without("B", HostFacts.HARDWARE).facts().all());
    facts.put(HostFacts.SOFTWARE, "rxe0:1");
    final ProofReport report = prove(without("A"), new FakeSide("B", facts), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.NOT_PROVEN);
    assertThat(report.text()).contains("only one made by software: rxe0:1");
  }

  @Test
  void oneHostIsNoTwo() {
    final FakeSide only = without("A");
    final ProofReport report = prove(only, new FakeSide("B", only.facts().all()), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.NOT_PROVEN);
    assertThat(report.text()).contains("both ends run on one kernel");
  }

  @Test
  void wrongBytesFail() {
    final ProofReport report = prove(without("A"), answering("get", "1000", "77"), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text()).contains("has brought a wrong byte 77");
    assertThat(of(report, Check.ONE_SIDED).get(0).result()).isEqualTo(Result.SKIPPED);
    assertThat(report.exitStatus()).isEqualTo(2);
  }

  /** Nor is it excused by what else is missing. */
  @Test
  void wrongBytesFailWithoutAnAdapterToo() {
    final ProofReport report =
        prove(without("A", HostFacts.HARDWARE), answering("get", "1000", "0"), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
  }

  @Test
  void getsThatDoNotEndFail() {
    final ProofReport report =
        prove(without("A"), answering("await", "2", "3", "0", "0", "1"), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text()).contains("2 gets of an owner that was killed had not ended");
  }

  @Test
  void getsWhoseEndIsToldTwiceFail() {
    final ProofReport report =
        prove(without("A"), answering("await", "0", "3", "0", "1", "1"), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text()).contains("1 ended more than once");
  }

  @Test
  void anOwnerThatWasKilledTooLateIsNoProof() {
    final ProofReport report = prove(without("A"), answering("under-way", "0"), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text()).contains("none was killed while gets were under way");
  }

  @Test
  void anOwnerThatGoesOnIsNotStopped() {
    final FakeSide other =
        new FakeSide("B", without("B").facts().all()) {
          @Override
          FakeWorker worker() {
            return new FakeWorker() {
              @Override
              public void stop() {
                assertThat(isStopped()).isFalse(); // And stays so.
              }
            };
          }
        };
    final ProofReport report = prove(without("A"), other, HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text()).contains("the owner was not stopped all the time");
  }

  /** Such as one that a stranger has taken over by UCX. */
  @Test
  void aWorkerThatTalksNonsenseFails() {
    final ProofReport report = prove(without("A"), answering("memory", "\u001b[31m", "x"), HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text() + report.json()).doesNotContain("\u001b");
  }

  /**
   * Numbers of a worker that no measurement is: the report says so, and is printed all the same.
   */
  @ParameterizedTest
  @CsvSource({
    "rate, 1e308 0 1",
    "rate, 10 0 0",
    "rate, x y z",
    "rate, NaN NaN NaN",
    "await, 0 5 0 0 Infinity",
    "memory, 4096 00 1e400",
    "under-way, x",
  })
  void numbersThatAreNoneDoNotEndTheProof(final String question, final String answer) {
    final ProofReport report = prove(without("A"), answering(question, answer.split(" ")), HOST);
    assertThat(report.json()).doesNotContainPattern("[:,\\[] ?-?(Infinity|NaN)");
    assertThat(report.all().verdict())
        .isEqualTo(answer.equals("10 0 0") ? Verdict.PROVEN : Verdict.FAILED);
  }

  @Test
  void anAnswerWithoutWordsDoesNotEndTheProof() {
    assertThat(prove(without("A"), answering("rate"), HOST).all().verdict())
        .isEqualTo(Verdict.FAILED);
  }

  /** A terminal obeys C1 controls too, and shows text that is turned around. */
  @Test
  void whatOthersSayIsPlainAndShort() {
    final String words = "ok\tred \u009b31m\u202e \u2028 \u007f\u0007\n";
    assertThat(ProofWords.split(words))
        .hasSize(2)
        .noneMatch(it -> it.matches(".*[^\\x20-\\x7e].*"));
    final ProofLine finding = Check.UCX.found(words, Result.FAILED, "x".repeat(1 << 20));
    assertThat(finding.what()).doesNotContainPattern("[^\\x20-\\x7e]");
    assertThat(finding.why()).hasSizeLessThan(3000);
  }

  @ParameterizedTest
  @CsvSource({"--port, 70000", "--limit, 9000000000000000000", "--rows, 10000000000"})
  void numbersBeyondTheirRangeAreRefused(final String option, final String value)
      throws IOException {
    final Path secret =
        Files.createTempFile(
            folder,
            "secret",
            "",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.writeString(secret, "s".repeat(32));
    final StringWriter said = new StringWriter();
    final int status =
        new CommandLine(new ProofCommand())
            .setErr(new PrintWriter(said))
            .execute(
                "127.0.0.1", "--trusted-network", "--secret", secret.toString(), option, value);
    assertThat(status).as(said.toString()).isEqualTo(ProofCommand.INVALID);
    assertThat(said.toString()).contains(option);
  }

  @Test
  void theOtherSideThatIsLostLeavesWhatWasSeen() {
    final FakeSide lost =
        new FakeSide("B", without("B").facts().all()) {
          @Override
          public Worker start(final MemoryKind kind) {
            throw new LostException("a cable", null);
          }
        };
    final ProofReport report = prove(without("A"), lost, HOST);
    assertThat(report.all().verdict()).isEqualTo(Verdict.NOT_PROVEN);
    assertThat(of(report, Check.ADAPTER)).hasSize(2);
    assertThat(report.text()).contains("the connection was lost: a cable");
  }

  /** Also those of the host that is still there, when the other one cannot be told any more. */
  @Test
  void workersAreClosedWhenTheOtherSideIsLost() {
    final FakeSide here = without("A");
    final FakeSide lost =
        new FakeSide("B", without("B").facts().all()) {
          @Override
          FakeWorker worker() {
            return new FakeWorker() {
              @Override
              List<String> answer(final String... words) {
                throw new LostException("a cable", null);
              }

              @Override
              public void close() {
                throw new LostException("a cable", null);
              }
            };
          }
        };
    for (final boolean first : new boolean[] {true, false}) {
      final ProofReport report = first ? prove(here, lost, HOST) : prove(lost, here, HOST);
      assertThat(report.all().verdict()).isEqualTo(Verdict.NOT_PROVEN);
    }
    assertThat(here.workers).isNotEmpty().allMatch(it -> it.isClosed());
  }

  @Test
  void gpuMemoryThatWasAskedForAndIsNotThereIsNotProven() {
    final ProofReport report =
        prove(without("A"), FakeSide.complete("B"), EnumSet.allOf(MemoryKind.class));
    assertThat(report.of(MemoryKind.HOST).verdict()).isEqualTo(Verdict.PROVEN);
    assertThat(report.of(MemoryKind.GPU).verdict()).isEqualTo(Verdict.NOT_PROVEN);
    assertThat(report.text()).contains("no GPU at host A: there is no driver");
  }

  @Test
  void withoutPeermemAndDmaBufGpuMemoryFails() {
    final Map<String, String> facts = new HashMap<>(FakeSide.complete("B").facts().all());
    facts.put(HostFacts.PEERMEM, "false");
    final ProofReport report =
        prove(FakeSide.complete("A"), new FakeSide("B", facts), EnumSet.of(MemoryKind.GPU));
    assertThat(report.all().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.text()).contains("modprobe nvidia-peermem");
  }

  @Test
  void aJobSaysByWhatItsBytesCame() {
    final List<String> words = List.of("right", "rows", "local 5", "ucx 7", "sent 0", "staged 0");
    assertThat(SparkJob.judge(0, List.of(ProofWords.join(words))))
        .satisfies(it -> assertThat(it.result()).isEqualTo(Result.PASSED))
        .satisfies(it -> assertThat(it.value()).isEqualTo(7));
    for (final String line : List.of("right\trows\tucx 7\tsent 1", "right\trows\tucx 0")) {
      assertThat(SparkJob.judge(0, List.of(line)).result()).as(line).isEqualTo(Result.FAILED);
    }
    final ProofLine wrong = SparkJob.judge(0, List.of("wrong\trows\tucx 7"));
    assertThat(wrong.value()).isZero();
    assertThat(wrong.why()).contains("rows are wrong");
    assertThat(SparkJob.judge(1, List.of()).why()).contains("exit status 1");
  }

  @Test
  void theReportNamesNoHost() throws IOException {
    final ProofReport report = prove(without("A"), without("B"), HOST);
    final JsonNode json = new ObjectMapper().readTree(report.json());
    assertThat(json.get("verdict").asText()).isEqualTo("proven");
    assertThat(json.get("memory").get("host").asText()).isEqualTo("proven");
    assertThat(json.get("memory").get("gpu").asText()).isEqualTo("not proven");
    assertThat(json.get("not_done").toString())
        .contains("no GPU at host A: there is no driver", "job: no --spark");
    assertThat(json.get("hosts").get("A").has(HostFacts.BOOT)).isFalse();
    assertThat(report.json()).doesNotContain("boot of");
    for (final JsonNode finding : json.get("findings")) {
      for (final String field : List.of("check", "what", "result", "why")) {
        assertThat(finding.has(field)).as(finding.toString()).isTrue();
      }
      assertThat(finding.has("value")).isEqualTo(finding.has("unit"));
    }
  }
}
