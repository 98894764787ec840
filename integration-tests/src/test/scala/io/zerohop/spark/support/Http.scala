package io.zerohop.spark.support

import java.net.URI
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.time.Duration

/** Pages of servers that tests have started. */
object Http {
  private val client = HttpClient.newBuilder
    .connectTimeout(Duration.ofSeconds(10))
    .followRedirects(HttpClient.Redirect.NORMAL) // Spark's web UI adds a slash to paths.
    .build()

  /** The body, whatever the status but a server's failure. */
  def get(url: String): String = {
    val (status, body) = answer(url)
    if (status >= 500) throw new IllegalStateException(s"$url: $body")
    body
  }

  /** The status and the body. */
  def answer(url: String): (Int, String) = {
    val request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(20)).build()
    val response = client.send(request, HttpResponse.BodyHandlers.ofString())
    (response.statusCode, response.body)
  }
}
