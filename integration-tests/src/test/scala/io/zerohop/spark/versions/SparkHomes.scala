package io.zerohop.spark.versions

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** One Spark installation that the build has laid out from Maven artifacts. */
final case class SparkHome(version: String, scala: String, path: Path) {

  def jars: Seq[Path] = Using.resource(Files.list(path.resolve("jars"))) {
    _.iterator.asScala.filter(_.toString.endsWith(".jar")).toVector.sorted
  }

  def isThere: Boolean = Files.isDirectory(path.resolve("jars"))

  override def toString: String = s"Spark $version (Scala $scala)"
}

/** The Spark versions that the one jar must run on. */
object SparkHomes {
  private val repository = Paths.get(sys.props("zerohop.test.repository"))

  /** The jar under test, as users get it. */
  val zerohopJar: Path = Paths.get(sys.props("zerohop.test.jar")).toAbsolutePath.normalize

  val all: Seq[SparkHome] = Seq(
    other("3.5.8", "2.12"),
    other("3.5.8", "2.13"),
    other("4.0.2", "2.13"),
    builtAt("4.1.3", "2.13", "benchmarks/spark"),
    other("4.2.0", "2.13"))

  /** The home of a version, by number. */
  def of(version: String): SparkHome = all.filter(_.version == version).last

  /** In CI everything must be there; elsewhere a part of the build may have been left out. */
  val isCi: Boolean = sys.env.get("CI").exists(_.equalsIgnoreCase("true"))

  def missing(home: SparkHome): String =
    s"$home is not at ${home.path}; `mvn verify` from the top of the repository lays it out"

  private def other(version: String, scala: String): SparkHome =
    builtAt(version, scala, s"integration-tests/sparks/${version}_$scala")

  private def builtAt(version: String, scala: String, module: String): SparkHome =
    SparkHome(
      version,
      scala,
      repository.resolve(s"$module/target/spark-home").toAbsolutePath.normalize)
}
