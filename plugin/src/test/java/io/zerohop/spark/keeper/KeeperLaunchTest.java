package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InvalidClassException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.commons.lang3.mutable.MutableInt;
import org.apache.spark.SparkException;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** The process of a keeper: which objects it takes from its driver, and when it ends. */
class KeeperLaunchTest {
  private static final String FILTER = "-Djdk.serialFilter=";

  private final ObjectInputFilter filter =
      ObjectInputFilter.Config.createFilter(
          KeeperLaunch.process("zerohop.jar", List.of()).command().stream()
              .filter(argument -> argument.startsWith(FILTER))
              .findFirst()
              .orElseThrow()
              .substring(FILTER.length()));

  /** The next executor that notices starts another one, and Spark computes what it held again. */
  @Test
  void aKeeperWithoutMemoryEnds() {
    assertThat(KeeperLaunch.process("zerohop.jar", List.of()).command())
        .contains("-XX:+ExitOnOutOfMemoryError");
  }

  private Object received(final Object sent) throws IOException, ClassNotFoundException {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(sent);
    }
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      in.setObjectInputFilter(filter);
      return in.readObject();
    }
  }

  @Test
  void anAnswerAndAFailureOfTheDriverArrive() throws Exception {
    assertThat(received(new HashSet<>(Set.of(1, 2)))).isEqualTo(Set.of(1, 2));
    assertThat((Object[]) received(new Object[] {"1", new int[] {3}})).hasSize(2);
    assertThat(received(new Tuple2<>("1", 2L))).isEqualTo(new Tuple2<>("1", 2L));
    assertThat(received(new SparkException("no"))).isInstanceOf(SparkException.class);
  }

  /** Of any jar that happens to lie on the class path. */
  @Test
  void objectsOfOtherClassesDoNot() {
    assertThatThrownBy(() -> received(new MutableInt(1))).isInstanceOf(InvalidClassException.class);
  }
}
