package io.zerohop.spark.versions

import java.io.File
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.launcher.JavaModuleOptions
import org.scalatest.funsuite.AnyFunSuite

/**
 * Spark Connect: the server is a plugin of the application, which has the shuffle manager, and the
 * client is a process that knows nothing of it.
 */
@RunBy.Versions
class ConnectSuite extends AnyFunSuite {
  private val home = SparkHomes.of("4.1.3")
  private val folder = Paths.get(sys.props("zerohop.test.target"), "connect")

  test("a client's query shuffles through its server's manager") {
    val conf = Map(
      "spark.master" -> "local-cluster[2,1,1024]",
      "spark.executor.memory" -> "512m",
      "spark.shuffle.manager" -> ManagerUnderTest.name,
      "spark.zerohop.pool.size" -> "128m",
      "spark.sql.shuffle.partitions" -> "4",
      "spark.jars" -> jars(folder.resolve("server")).mkString(","))
    val ended = SparkSubmitProcess.run(
      home, conf, classOf[ConnectServerApp].getName, AppJar.path, clientCommand)
    assert(ended.exit === 0, s"see ${ended.log}")
    assert(AppJar.report(ended.stdout, "connect-client:") ===
      Map("groups" -> "1000", "sum" -> "4999950000"))
    val server = AppJar.report(ended.stdout, "connect-server:")
    assert(server("exit") === "0")
    if (ManagerUnderTest.isZerohop) {
      assert(server("peer").toLong > 0)
      assert(server("staged") === "0")
    }
  }

  private def clientCommand: Seq[String] =
    Seq(Paths.get(sys.props("java.home"), "bin", "java").toString, "-Xmx256m") ++
      JavaModuleOptions.defaultModuleOptionArray() ++
      Seq("-cp", clientClasses.mkString(File.pathSeparator), classOf[ConnectClientApp].getName)

  /** The client's jar first, and of Spark's none that has the same classes as it. */
  private def clientClasses: Seq[Path] = {
    val server = "spark-(core|sql|sql-api|catalyst|launcher|kvstore|network-.*)_.*".r
    jars(folder.resolve("client")) ++
      home.jars.filterNot(jar => server.matches(jar.getFileName.toString)) :+ AppJar.path
  }

  private def jars(folder: Path): Seq[Path] =
    Using.resource(Files.list(folder))(_.iterator.asScala.toVector.sorted)
}
