package io.zerohop.spark.support;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.scalatest.TagAnnotation;

/**
 * Says by which command a suite is run: each suite has one annotation of these or several. The
 * profiles in the root pom.xml name them; {@code ProfilesSuite} fails where a suite has none, or
 * one that no profile names.
 */
public final class RunBy {
  private RunBy() {}

  /** Runs with {@code mvn -B verify}: quick, or what no change may break for an hour. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Verify {}

  /** Runs with {@code -Pspark-suites}: Spark's own suites, and what is made for them. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface SparkSuites {}

  /** Runs with {@code -Pfaults}: what breaks in a cluster, and what fills it. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Faults {}

  /** Runs with {@code -Pversions}: every supported Spark. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Versions {}

  /** Runs with {@code -Pplatforms}: standalone clusters and pods. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Platforms {}

  /** Runs with {@code -Pui}: the tab in Spark's UI, the metrics and the dashboard. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Ui {}

  /** Runs with {@code -Pnodes}: two nodes in two network namespaces. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Nodes {}

  /** Runs with {@code -Pgpu} on a GPU host, or on a cluster that is named; skipped elsewhere. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Gpu {}

  /** Runs with {@code -Pyarn}, which downloads a YARN. */
  @TagAnnotation
  @Inherited
  @Retention(RetentionPolicy.RUNTIME)
  @Target({ElementType.TYPE, ElementType.METHOD})
  public @interface Yarn {}
}
