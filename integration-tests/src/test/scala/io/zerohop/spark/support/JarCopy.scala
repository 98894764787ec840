package io.zerohop.spark.support

import java.io.{BufferedOutputStream, File}
import java.nio.file.{Files, Path}
import java.util.jar.{JarFile, JarOutputStream, Manifest}
import java.util.zip.ZipEntry

import scala.jdk.CollectionConverters._
import scala.util.Using

/** Jars that differ from another one in one thing. */
object JarCopy {

  /**
   * A temporary copy of a jar, for the caller to delete.
   *
   * @param change what is different in its manifest
   * @param drops the entry that it lacks, if any
   */
  def of(jar: File, change: Manifest => Unit = _ => (), drops: String = ""): Path = {
    val copy = Files.createTempFile("zerohop-other", ".jar")
    Using.resource(new JarFile(jar)) { from =>
      assert(drops.isEmpty || from.getEntry(drops) != null, s"$jar has no $drops")
      val manifest = new Manifest(from.getManifest)
      change(manifest)
      val out = new BufferedOutputStream(Files.newOutputStream(copy))
      Using.resource(new JarOutputStream(out, manifest)) { to =>
        val others = Set(JarFile.MANIFEST_NAME, drops)
        from.entries.asScala.filterNot(entry => others(entry.getName)).foreach { entry =>
          to.putNextEntry(new ZipEntry(entry.getName))
          Using.resource(from.getInputStream(entry))(_.transferTo(to))
          to.closeEntry()
        }
      }
    }
    copy
  }
}
