package io.zerohop.spark.browser

import java.awt.image.BufferedImage
import java.io.ByteArrayInputStream
import java.nio.file.{Files, Paths, StandardCopyOption}
import javax.imageio.{IIOImage, ImageIO, ImageWriteParam}

import scala.util.Using

import org.scalatest.Assertions._

/** A screenshot that a suite keeps, and gives to docs/images if the build is told to. */
object Picture {
  private val MaxBytes = 240 * 1024

  /** Small enough for docs/: without transparency, and packed as well as can be. */
  def keep(name: String, png: Array[Byte]): Unit = {
    val taken = ImageIO.read(new ByteArrayInputStream(png))
    val opaque = new BufferedImage(taken.getWidth, taken.getHeight, BufferedImage.TYPE_INT_RGB)
    opaque.createGraphics().drawImage(taken, 0, 0, null)
    val file = Paths.get(sys.props("zerohop.test.target"), "browser", name)
    val writer = ImageIO.getImageWritersByFormatName("png").next()
    val packed = writer.getDefaultWriteParam
    packed.setCompressionMode(ImageWriteParam.MODE_EXPLICIT)
    packed.setCompressionQuality(0)
    Files.createDirectories(file.getParent)
    Files.deleteIfExists(file)
    Using.resource(ImageIO.createImageOutputStream(file.toFile)) { out =>
      writer.setOutput(out)
      writer.write(null, new IIOImage(opaque, null, null), packed)
      writer.dispose()
    }
    if (sys.props.get("zerohop.docs.write").contains("true")) {
      assert(Files.size(file) < MaxBytes, s"$file is too large for docs/")
      val docs = Paths.get(sys.props("zerohop.test.repository"), "docs", "images")
      Files.createDirectories(docs)
      Files.copy(file, docs.resolve(name), StandardCopyOption.REPLACE_EXISTING)
    }
  }
}
