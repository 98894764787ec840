package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.spark.Main;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a doctor listens at, from its start to its end. */
class DoctorListenersTest {
  private static final String TRUSTED = "spark.zerohop.ucx.trustedNetwork=true";

  private Path folder;
  private Watched doctor;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory(Path.of("/tmp"), "doctor"); // Sockets want short names.
    doctor = new Watched(folder);
  }

  @AfterEach
  void deleteFolder() throws IOException {
    try (var files = Files.walk(folder)) {
      for (final Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  private void examine(final String... arguments) throws IOException, InterruptedException {
    final List<String> all = new ArrayList<>(List.of("doctor"));
    all.addAll(List.of(arguments));
    all.addAll(List.of("--conf", "spark.zerohop.socket.dir=" + folder.resolve("s")));
    doctor.run(Map.of(), Main.class.getName(), all.toArray(String[]::new));
    assertThat(doctor.exit()).as(doctor.output()).isBetween(0, 2);
    // Nodes of the doctor's own, in a folder that is closed to other users.
    assertThat(doctor.files())
        .isNotEmpty()
        .allSatisfy(file -> assertThat(file).startsWith("unix " + folder.resolve("s")));
  }

  @Test
  void atTheDefaultsItOpensNoPortAndMeasuresEvenSo() throws Exception {
    examine();
    assertThat(doctor.open()).as(doctor.output()).isEmpty();
    assertThat(doctor.output()).containsPattern("staged +TCP +loopback");
  }

  @Test
  void withoutMeasuringItOpensNoPortAndNamesTheKeyThatAllowsIt() throws Exception {
    examine("--no-measure", "--conf", "spark.zerohop.port=7");
    assertThat(doctor.open()).as(doctor.output()).isEmpty();
    assertThat(doctor.output())
        .containsPattern("(?m)^skip jucx .*spark.zerohop.ucx.trustedNetwork=true")
        .containsPattern("(?m)^skip port .*spark.zerohop.ucx.trustedNetwork=true")
        .containsPattern("(?m)^\\w+ +libucx ");
  }

  @Test
  void encryptionKeepsPortsClosedOnATrustedNetwork() throws Exception {
    final String key = "spark.network.crypto.enabled";
    examine("--no-measure", "--conf", TRUSTED, "--conf", key + "=true");
    assertThat(doctor.open()).as(doctor.output()).isEmpty();
    assertThat(doctor.output()).containsPattern("(?m)^skip jucx .*" + key + " demands encryption");
  }

  @Test
  void onATrustedNetworkItTriesUcx() throws Exception {
    assumeLibucx();
    examine("--conf", TRUSTED, "--conf", "spark.zerohop.internal.ucx.emulatedGets=true");
    assertThat(doctor.open()).as(doctor.output()).isNotEmpty();
    assertThat(doctor.output())
        .containsPattern("(?m)^ok +jucx .*moves bytes")
        .containsPattern("ucx +this process +itself");
  }

  @Test
  void aPortIsSeenHoweverShortItIsOpen() throws Exception {
    doctor.run(Map.of(), Shortly.class.getName());
    assertThat(doctor.open()).isNotEmpty().allMatch(it -> it.startsWith("tcp"));
  }

  private static void assumeLibucx() {
    boolean there = true;
    try {
      UcxLoader.look();
    } catch (final ZerohopException e) {
      there = false;
    }
    assumeTrue(there, "there is no libucx of 1.19 or later");
  }

  /** Listens once. */
  static final class Shortly {
    private Shortly() {}

    public static void main(final String[] arguments) throws IOException {
      new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1")).close();
    }
  }
}
