package io.zerohop.spark.support

import java.io.RandomAccessFile
import java.lang.{Long => JLong}
import java.nio.channels.FileChannel.MapMode
import java.nio.{ByteOrder, MappedByteBuffer}
import java.nio.file.{Files, Path, Paths}

import scala.io.Source
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/** The memory segments of another process of ours, as `/proc` shows them. */
final class ExecutorMemory(pid: Long) {
  import ExecutorMemory._

  /** Descriptors of the segments that the process holds open. */
  def segments: Seq[Path] = memfds(pid)

  /** Flips one byte in every payload that starts with `marker`; returns how many. */
  def damagePayloads(marker: String): Int = damagePayloads(marker, marker.length / 2)

  /** The same so many bytes from where the marker begins. */
  def damagePayloads(marker: String, offset: Int): Int =
    flip(find(marker.getBytes("US-ASCII"), segments).map { case (segment, at) =>
      (segment, at + offset)
    })

  /**
   * Flips one byte in every catalog entry of a shuffle, in its batch heads, where it says where
   * blocks lie; returns how many. Layouts: docs of `ChunkLayout` and `EntryLayout`.
   */
  def damageEntries(shuffleId: Int): Int =
    flip(entries(shuffleId).map { case (segment, at) => (segment, at + EntryBatches + 8) })

  /** Flips one byte in the header of every chunk of catalog entries of a shuffle. */
  def damageChunks(shuffleId: Int): Int =
    flip(chunks(shuffleId).map { case (segment, at) => (segment, at + ChunkSlots) })

  private def entries(shuffleId: Int): Seq[(Path, Int)] =
    chunks(shuffleId).flatMap { case (segment, chunk) =>
      mapped(segment) { memory =>
        val slots = chunk + memory.getInt(chunk + ChunkSlots)
        (0 until memory.getInt(chunk + ChunkSlotCount)).flatMap { slot =>
          val offset = (memory.getLong(slots + slot * 16 + 8) & 0xffffffffL) << 3
          if (offset == 0) None else Some((segment, chunk + offset.toInt))
        }
      }
    }

  private def chunks(shuffleId: Int): Seq[(Path, Int)] =
    find(ChunkMagic, segments).filter { case (segment, at) =>
      mapped(segment)(_.getInt(at + ChunkShuffle)) == shuffleId
    }

  /** By the owner's own mapping: nobody else may map a segment for writing. */
  private def flip(places: Seq[(Path, Int)]): Int = {
    Using.resource(new RandomAccessFile(s"/proc/$pid/mem", "rw")) { memory =>
      for ((segment, ofSegment) <- places.groupBy(_._1)) {
        val base = address(segment)
        ofSegment.map(_._2).foreach { at =>
          memory.seek(base + at)
          val byte = memory.read()
          memory.seek(base + at)
          memory.write(byte ^ 0x55)
        }
      }
    }
    places.size
  }

  /** Where the process has mapped the whole of a segment for writing. */
  private def address(segment: Path): Long = {
    val inode = Files.getAttribute(segment, "unix:ino").toString
    val places = Using.resource(Source.fromFile(s"/proc/$pid/maps"))(_.getLines().toVector)
      .map(_.split(" +", 6))
      .collect {
        case Array(range, access, "00000000", _, `inode`, _) if access.startsWith("rw") =>
          JLong.parseUnsignedLong(range.takeWhile(_ != '-'), 16)
      }
    places.headOption.getOrElse(throw new AssertionError(s"process $pid does not write $segment"))
  }
}

object ExecutorMemory {
  private val ChunkMagic = "ZZchunk1".getBytes("US-ASCII")
  private val ChunkShuffle = 16
  private val ChunkSlotCount = 36
  private val ChunkSlots = 40
  private val EntryBatches = 40

  /** Segments of Zerohop that a process holds, as paths that can be opened. */
  def memfds(pid: Long): Seq[Path] = {
    val folder = Paths.get(s"/proc/$pid/fd")
    val links = Try(Using.resource(Files.list(folder))(_.iterator.asScala.toVector))
    links.getOrElse(Vector.empty).filter { link =>
      Try(Files.readSymbolicLink(link).toString).toOption.exists(_.startsWith("/memfd:zerohop"))
    }
  }

  private def mapped[T](segment: Path)(body: MappedByteBuffer => T): T =
    Using.resource(new RandomAccessFile(segment.toFile, "r")) { file =>
      val memory = file.getChannel.map(MapMode.READ_ONLY, 0, file.length)
      memory.order(ByteOrder.nativeOrder)
      body(memory)
    }

  private def find(bytes: Array[Byte], segments: Seq[Path]): Seq[(Path, Int)] =
    segments.flatMap { segment =>
      mapped(segment) { memory =>
        (0 to memory.capacity - bytes.length).iterator
          .filter(at =>
            memory.get(at) == bytes(0) && bytes.indices.forall { i =>
              memory.get(at + i) == bytes(i)
            })
          .map(at => (segment, at))
          .toVector
      }
    }
}
