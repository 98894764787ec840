package io.zerohop.device.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Rows of one benchmark as they are kept, and as they are printed meanwhile. */
final class BenchFile {
  private final String bench;
  private final String commit;
  private final Map<String, Object> host;
  private final List<String> rows = new ArrayList<>();

  BenchFile(final String bench, final String commit, final Map<String, Object> host) {
    this.bench = bench;
    this.commit = commit;
    this.host = host;
  }

  /** Adds a row of alternating names and values. */
  void row(final Object... cells) {
    final Map<String, Object> row = new LinkedHashMap<>();
    for (int i = 0; i < cells.length; i += 2) {
      row.put((String) cells[i], cells[i + 1]);
    }
    final String text = object(row);
    rows.add(text);
    System.out.println(bench + " " + text);
  }

  void write(final Path folder) throws IOException {
    final String text =
        String.format(
            java.util.Locale.ROOT,
            "{\"bench\": %s, \"commit\": %s, \"date\": \"%s\",%n \"host\": %s,%n \"rows\": [%n  %s%n]}%n",
            quoted(bench),
            quoted(commit),
            LocalDate.now(ZoneOffset.UTC),
            object(host),
            String.join(",\n  ", rows));
    Files.createDirectories(folder);
    Files.writeString(folder.resolve(bench + ".json"), text);
  }

  private static String object(final Map<String, Object> cells) {
    return cells.entrySet().stream()
        .map(cell -> quoted(cell.getKey()) + ": " + value(cell.getValue()))
        .collect(Collectors.joining(", ", "{", "}"));
  }

  private static String value(final Object value) {
    if (value instanceof Double number) {
      return String.format(Locale.ROOT, "%.4g", number).contains("e")
          ? String.format(Locale.ROOT, "%.1f", number)
          : String.format(Locale.ROOT, "%.4g", number);
    }
    return value instanceof Number ? value.toString() : quoted(value.toString());
  }

  private static String quoted(final String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }
}
