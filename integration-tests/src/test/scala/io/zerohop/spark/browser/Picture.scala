package io.zerohop.spark.browser

import java.awt.image.{BufferedImage, IndexColorModel}
import java.io.ByteArrayInputStream
import java.nio.file.{Files, Paths, StandardCopyOption}
import javax.imageio.{IIOImage, ImageIO, ImageWriteParam}

import scala.util.Using

import org.scalatest.Assertions._

/** A screenshot that a suite keeps, and gives to docs/images if the build is told to. */
object Picture {
  private val MaxBytes = 240 * 1024

  /** Small enough for docs/: of 256 colours, and packed as well as can be. */
  def keep(name: String, png: Array[Byte]): Unit = {
    val taken = ImageIO.read(new ByteArrayInputStream(png))
    val indexed = ofFewColors(taken)
    val file = Paths.get(sys.props("zerohop.test.target"), "browser", name)
    val writer = ImageIO.getImageWritersByFormatName("png").next()
    val packed = writer.getDefaultWriteParam
    packed.setCompressionMode(ImageWriteParam.MODE_EXPLICIT)
    packed.setCompressionQuality(0)
    Files.createDirectories(file.getParent)
    Files.deleteIfExists(file)
    Using.resource(ImageIO.createImageOutputStream(file.toFile)) { out =>
      writer.setOutput(out)
      writer.write(null, new IIOImage(indexed, null, null), packed)
      writer.dispose()
    }
    if (sys.props.get("zerohop.docs.write").contains("true")) {
      assert(Files.size(file) < MaxBytes, s"$file is too large for docs/")
      val docs = Paths.get(sys.props("zerohop.test.repository"), "docs", "images")
      Files.createDirectories(docs)
      Files.copy(file, docs.resolve(name), StandardCopyOption.REPLACE_EXISTING)
    }
  }

  private val Colors = 256

  /** Colours that stay as they are, however close they are to others: those of areas. */
  private val Areas = 64

  /** A picture in colours of its own; a pixel of another one takes the nearest. */
  private def ofFewColors(taken: BufferedImage): BufferedImage = {
    val (width, height) = (taken.getWidth, taken.getHeight)
    val pixels = taken.getRGB(0, 0, width, height, null, 0, width).map(_ & 0xffffff)
    val counts = pixels.groupMapReduce(identity)(_ => 1)(_ + _)
    val frequent = counts.toArray.sortBy { case (color, count) => (-count, color) }.map(_._1)
    // All others are at most so far from one of the palette that a small spot keeps its hue.
    val palette =
      Iterator.iterate(1)(_ * 2).map(distinct(frequent, _)).find(_.length <= Colors).get
    val indices =
      frequent.map(color => color -> palette.indices.minBy(i => distance(palette(i), color))).toMap
    def bytes(shift: Int) = palette.map(channel(_, shift).toByte)
    val model = new IndexColorModel(8, palette.length, bytes(16), bytes(8), bytes(0))
    val indexed = new BufferedImage(width, height, BufferedImage.TYPE_BYTE_INDEXED, model)
    indexed.getRaster.setPixels(0, 0, width, height, pixels.map(indices))
    indexed
  }

  /** The first colours, and of the others those that are farther than so much from all before. */
  private def distinct(colors: Array[Int], apart: Int): Array[Int] =
    colors.drop(Areas).foldLeft(colors.take(Areas)) { (found, color) =>
      val isFar = found.length <= Colors && found.forall(distance(_, color) > apart)
      if (isFar) found :+ color else found
    }

  private def channel(color: Int, shift: Int): Int = (color >> shift) & 255

  private def distance(one: Int, other: Int): Int = {
    val red = channel(one, 16) - channel(other, 16)
    val green = channel(one, 8) - channel(other, 8)
    val blue = channel(one, 0) - channel(other, 0)
    red * red + green * green + blue * blue
  }
}
