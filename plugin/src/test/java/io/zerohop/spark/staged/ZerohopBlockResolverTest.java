package io.zerohop.spark.staged;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class ZerohopBlockResolverTest {

  /** Spark on Scala 2.12 calls the first of each pair, on 2.13 the second. */
  @Test
  void hasTheMethodsThatBothScalaVersionsCall() {
    for (final String name : List.of("getStoredShuffles", "getMergedBlockData")) {
      assertThat(
              Arrays.stream(ZerohopBlockResolver.class.getMethods())
                  .filter(method -> method.getName().equals(name))
                  .map(Method::getReturnType)
                  .map(Class::getName))
          .containsExactlyInAnyOrder("scala.collection.Seq", "scala.collection.immutable.Seq");
    }
  }
}
