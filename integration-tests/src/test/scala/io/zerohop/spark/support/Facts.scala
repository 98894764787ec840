package io.zerohop.spark.support

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/** What a scenario has seen, by name, as one line of JSON between application and suite. */
final class Facts private (json: JsonNode) {
  def has(name: String): Boolean = json.has(name)

  def flag(name: String): Boolean = value(name).booleanValue

  def number(name: String): Long = value(name).longValue

  def text(name: String): String = value(name).asText

  def value(name: String): JsonNode = {
    val found = json.get(name)
    if (found == null) throw new NoSuchElementException(s"no '$name' in $json")
    found
  }

  override def toString: String = json.toString
}

object Facts {

  /** Stands for an error, which a scenario ended with. */
  val Error = "error"

  /** Values may be lists and maps of values. */
  def write(facts: Map[String, Any]): String = mapper.writeValueAsString(facts)

  private val mapper = new ObjectMapper().registerModule(DefaultScalaModule)

  /** @throws AssertionError if the scenario ended with an error */
  def read(line: String): Facts = {
    val json = new ObjectMapper().readTree(line)
    if (json.has(Error)) throw new AssertionError(json.get(Error).asText)
    new Facts(json)
  }
}
