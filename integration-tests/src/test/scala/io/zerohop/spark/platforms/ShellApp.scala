package io.zerohop.spark.platforms

import scala.io.Source
import scala.tools.nsc.Settings
import scala.tools.nsc.interpreter.IMain
import scala.tools.nsc.interpreter.Results.Success
import scala.tools.nsc.interpreter.shell.ReplReporterImpl

import org.apache.spark.sql.SparkSession

/**
 * What spark-shell does with lines that define no class: it compiles and runs each line of its
 * standard input where a session and the usual imports are there, until the input ends. Spark's own
 * shell is not on Maven Central for every release.
 */
class ShellApp

object ShellApp {
  private val Prelude = Seq(
    "import spark.implicits._",
    "import org.apache.spark.sql.functions._")

  def main(arguments: Array[String]): Unit = {
    val session = SparkSession.builder().appName("Spark shell").getOrCreate()
    println(s"Spark context Web UI available at ${session.sparkContext.uiWebUrl.getOrElse("none")}")
    val settings = new Settings
    settings.usejavacp.value = true
    val shell = new IMain(settings, new ReplReporterImpl(settings))
    shell.bind("spark", classOf[SparkSession].getName, session)
    for (line <- Prelude.iterator ++ Source.stdin.getLines()) {
      if (shell.interpret(line) != Success) sys.exit(1)
    }
    session.stop()
  }
}
