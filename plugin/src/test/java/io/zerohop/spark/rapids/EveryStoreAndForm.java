package io.zerohop.spark.rapids;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs a test once for each place that tables are kept in and each form of theirs. */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@ParameterizedTest
@CsvSource({
  "DEVICE, KUDO",
  "DEVICE, PACKED",
  "HOST, KUDO",
  "HOST, PACKED",
  "FILES, KUDO",
  "FILES, PACKED"
})
@interface EveryStoreAndForm {}
