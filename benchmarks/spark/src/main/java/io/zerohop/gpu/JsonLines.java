package io.zerohop.gpu;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;

/** A file of results, one JSON object a line, so that a run that breaks off loses nothing. */
final class JsonLines {
  private static final ObjectMapper JSON = new ObjectMapper();

  private JsonLines() {}

  static void append(final Path file, final Map<String, Object> row) throws IOException {
    Files.writeString(
        file,
        JSON.writeValueAsString(row) + "\n",
        StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
  }
}
