package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.spark.doctor.Finding.Verdict;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class ExaminationTest {
  private static final Duration LONG = Duration.ofSeconds(30);

  @Test
  void aCheckThatHangsIsInterruptedAndTheNextOneRuns() {
    final CountDownLatch interrupted = new CountDownLatch(1);
    final Examination examination = new Examination();
    examination
        .run(
            Item.DRIVER,
            Duration.ofSeconds(2),
            notes -> {
              notes.add(Item.DRIVER.ok("before"));
              try {
                new CountDownLatch(1).await();
              } finally {
                interrupted.countDown();
              }
            })
        .run(Item.JAVA, LONG, notes -> notes.add(Item.JAVA.ok("next")));
    assertThat(interrupted.getCount()).isZero();
    final List<Finding> findings = examination.notes().findings();
    assertThat(findings.get(0).message().happened()).isEqualTo("before");
    assertThat(findings).anyMatch(it -> it.message().happened().contains("did not end within"));
    assertThat(findings.get(findings.size() - 1).message().happened()).isEqualTo("next");
  }

  @Test
  void whatACheckThrowsIsAFinding() {
    final List<Finding> findings =
        new Examination()
            .run(
                Item.LIBRARY,
                LONG,
                notes -> {
                  throw new ZerohopException(
                      Category.FALLBACK, Message.of("no; library").remedy("build it"));
                })
            .run(
                Item.LIBUCX,
                LONG,
                notes -> {
                  throw new NoClassDefFoundError("org/example/Missing");
                })
            .notes()
            .findings();
    assertThat(findings).extracting(Finding::verdict).containsOnly(Verdict.FAIL);
    assertThat(findings.get(0).message().what()).isEqualTo("no; library");
    assertThat(findings.get(0).message().remedy()).isEqualTo("build it");
    assertThat(findings.get(1).message().happened()).contains("org/example/Missing");
  }
}
