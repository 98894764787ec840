package io.zerohop.bench;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One benchmark run as it is kept under {@code docs/measurements}. For one thread. */
final class Measurement {
  private static final long KIB = 1024;

  private final String bench;
  private final String commit;
  private final Map<String, Object> setting;
  private final Map<String, Object> findings = new LinkedHashMap<>();
  private final List<Map<String, Object>> rows = new ArrayList<>();

  /**
   * Begins a run.
   *
   * @param setting what was chosen for it, such as the scale
   */
  Measurement(final String bench, final String commit, final Map<String, Object> setting) {
    this.bench = bench;
    this.commit = commit;
    this.setting = new LinkedHashMap<>(setting);
  }

  void add(final Map<String, Object> row) {
    rows.add(row);
  }

  /** Replaces all rows, for what is put together anew after each round. */
  void setRows(final List<Map<String, Object>> all) {
    rows.clear();
    rows.addAll(all);
  }

  /** All rows so far. */
  List<Map<String, Object>> rows() {
    return Collections.unmodifiableList(rows);
  }

  /** Says something that is computed from the rows, such as {@code goals}. */
  void setFinding(final String name, final Object finding) {
    findings.put(name, finding);
  }

  /**
   * Writes what there is so far, so that an aborted run is not lost: a line for each row, as {@code
   * benchmarks/scripts/measurements.py} does.
   */
  void write(final Path file) throws IOException {
    final Map<String, Object> head = new LinkedHashMap<>();
    head.put("bench", bench);
    head.put("commit", commit);
    head.put("date", LocalDate.now(ZoneOffset.UTC).toString());
    head.put("host", host());
    head.put("setting", setting);
    head.putAll(findings);
    final ObjectWriter json = new ObjectMapper().writer(new OneLine());
    final StringBuilder text = new StringBuilder(json.writeValueAsString(head));
    text.setLength(text.length() - 1); // The brace comes behind the rows.
    text.append(",\n \"rows\": [");
    for (int i = 0; i < rows.size(); i++) {
      text.append(i == 0 ? "\n  " : ",\n  ").append(json.writeValueAsString(rows.get(i)));
    }
    Files.createDirectories(file.toAbsolutePath().getParent());
    Files.writeString(file, text.append("\n ]}\n"));
  }

  /** One line, with spaces behind colons and commas, as Python writes JSON. */
  private static final class OneLine extends MinimalPrettyPrinter {
    private static final long serialVersionUID = 1;

    @Override
    public void writeObjectFieldValueSeparator(final JsonGenerator json) throws IOException {
      json.writeRaw(": ");
    }

    @Override
    public void writeObjectEntrySeparator(final JsonGenerator json) throws IOException {
      json.writeRaw(", ");
    }

    @Override
    public void writeArrayValueSeparator(final JsonGenerator json) throws IOException {
      json.writeRaw(", ");
    }
  }

  private static Map<String, Object> host() throws IOException {
    final Map<String, Object> host = new LinkedHashMap<>();
    host.put("cpu", field("/proc/cpuinfo", "model name"));
    host.put("cpu_cores", Runtime.getRuntime().availableProcessors());
    final String memory = field("/proc/meminfo", "MemTotal");
    host.put("memory_bytes", Long.parseLong(memory.replaceAll("\\D", "")) * KIB);
    host.put("kernel", System.getProperty("os.version"));
    host.put("java", System.getProperty("java.version"));
    return host;
  }

  private static String field(final String file, final String name) throws IOException {
    return Files.readAllLines(Path.of(file)).stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst()
        .orElse("0");
  }
}
