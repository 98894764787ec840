package io.zerohop.spark.platforms

import java.nio.file.{Files, Path}
import java.util.Properties

import scala.jdk.CollectionConverters._
import scala.util.Using

/** What the pages of docs/platforms tell users to take. */
object Examples {
  val folder: Path = Distribution.repository.resolve("examples")

  /** Every file whose name ends so. */
  def files(ending: String): Seq[Path] =
    Using.resource(Files.walk(folder)) {
      _.iterator.asScala.filter(_.getFileName.toString.endsWith(ending)).toVector.sorted
    }

  /** A file of settings, as spark-submit reads it. */
  def conf(name: String): Map[String, String] = conf(folder.resolve(name))

  def conf(file: Path): Map[String, String] = {
    val properties = new Properties
    Using.resource(Files.newBufferedReader(file))(properties.load(_))
    properties.asScala.view.mapValues(_.trim).toMap
  }
}
