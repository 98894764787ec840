import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * Draws the pictures of docs/images from the text files beside them: {@code java
 * integration-tests/checks/Pictures.java draw|check} in the root; {@code check} fails if a picture
 * is not what its text says. Each line of a text is one of these, with numbers in pixels:
 *
 * <pre>
 * size WIDTH HEIGHT | what the picture shows, for readers who cannot see it
 * area|plain|host|gpu|disk X Y WIDTH HEIGHT | heading | line | ...
 * arrow|dashed X Y X Y ... | words on its middle
 * words X Y | text
 * </pre>
 */
public final class Pictures {
  private static final Path FOLDER = Path.of("docs/images");
  private static final Map<String, String> FILLS =
      Map.of(
          "area", "#f6f8fa",
          "plain", "#ffffff",
          "host", "#ddf4ff",
          "gpu", "#dafbe1",
          "disk", "#fff1e5");
  private static final String FONT = "font-family='Helvetica, Arial, sans-serif' ";
  private static final int LINE = 15;

  private final List<String> parts = new ArrayList<>();

  private Pictures() {}

  public static void main(final String[] arguments) throws Exception {
    final boolean draws = arguments.length == 1 && arguments[0].equals("draw");
    if (!draws && !(arguments.length == 1 && arguments[0].equals("check"))) {
      System.err.println("Pictures.java draw|check");
      System.exit(2);
    }
    int stale = 0;
    try (Stream<Path> files = Files.list(FOLDER)) {
      for (final Path text : files.filter(f -> f.toString().endsWith(".txt")).sorted().toList()) {
        final Path picture = Path.of(text.toString().replaceAll("txt$", "svg"));
        final String drawn = draw(text);
        if (draws) {
          Files.writeString(picture, drawn);
        } else if (!Files.exists(picture) || !Files.readString(picture).equals(drawn)) {
          System.err.println(picture + " is not what " + text + " says; run Pictures.java draw");
          stale++;
        }
      }
    }
    System.exit(stale == 0 ? 0 : 1);
  }

  private static String draw(final Path file) throws Exception {
    final Pictures picture = new Pictures();
    for (final String line : Files.readAllLines(file)) {
      if (!line.isBlank() && !line.startsWith("#")) {
        try {
          final String[] fields = line.split(" *\\| *");
          final String[] words = fields[0].split(" +");
          final int[] at = Stream.of(words).skip(1).mapToInt(Integer::parseInt).toArray();
          picture.add(words[0], at, List.of(fields).subList(1, fields.length));
        } catch (final RuntimeException e) {
          throw new IllegalArgumentException(file + ": " + line, e);
        }
      }
    }
    return String.join("\n", picture.parts) + "\n</svg>\n";
  }

  private void add(final String kind, final int[] at, final List<String> texts) {
    switch (kind) {
      case "size" -> size(at[0], at[1], texts.get(0));
      case "arrow", "dashed" -> arrow(at, kind.equals("dashed"), texts);
      case "words" -> text(at[0], at[1], texts.get(0), "text-anchor='middle' ");
      default -> box(FILLS.get(kind), at, texts);
    }
  }

  private void size(final int width, final int height, final String title) {
    parts.add(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' role='img' font-size='12'>"
            .formatted(width, height));
    parts.add("<title>" + escaped(title) + "</title>");
    parts.add(
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' "
            + "markerHeight='8' orient='auto-start-reverse'>"
            + "<path d='M0 0L8 4L0 8z' fill='#57606a'/></marker></defs>");
    parts.add("<rect width='%d' height='%d' fill='#ffffff'/>".formatted(width, height));
  }

  /** A box with its heading at the top if it is an area for others, else in its middle. */
  private void box(final String fill, final int[] at, final List<String> texts) {
    parts.add(
        "<rect x='%d' y='%d' width='%d' height='%d' rx='5' fill='%s' stroke='#8c959f'/>"
            .formatted(at[0], at[1], at[2], at[3], Objects.requireNonNull(fill)));
    final boolean area = fill.equals(FILLS.get("area"));
    final int first =
        area ? at[1] + LINE + 2 : at[1] + (at[3] - LINE * (texts.size() - 1)) / 2 + LINE / 3;
    for (int i = 0; i < texts.size(); i++) {
      text(
          area ? at[0] + 10 : at[0] + at[2] / 2,
          first + LINE * i,
          texts.get(i),
          (area ? "" : "text-anchor='middle' ") + (i == 0 ? "font-weight='bold' " : ""));
    }
  }

  private void arrow(final int[] at, final boolean dashed, final List<String> texts) {
    final StringBuilder points = new StringBuilder();
    for (int i = 0; i < at.length; i += 2) {
      points.append(i == 0 ? "" : " ").append(at[i]).append(',').append(at[i + 1]);
    }
    parts.add(
        ("<polyline points='%s' fill='none' stroke='#57606a' stroke-width='1.5' "
                + "%smarker-end='url(#tip)'/>")
            .formatted(points, dashed ? "stroke-dasharray='5 4' " : ""));
    final int middle = (at.length / 2 - 1) / 2 * 2;
    for (int i = 0; i < texts.size(); i++) {
      text(
          (at[middle] + at[middle + 2]) / 2,
          (at[middle + 1] + at[middle + 3]) / 2 - 5 - LINE * (texts.size() - 1 - i),
          texts.get(i),
          "text-anchor='middle' paint-order='stroke' stroke='#ffffff' stroke-width='4' ");
    }
  }

  private void text(final int x, final int y, final String text, final String style) {
    parts.add(
        "<text x='%d' y='%d' fill='#1f2328' %s%s>%s</text>"
            .formatted(x, y, FONT, style.trim(), escaped(text)));
  }

  private static String escaped(final String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
