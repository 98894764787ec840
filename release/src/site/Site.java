import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.commonmark.Extension;
import org.commonmark.ext.gfm.tables.TableCell;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.node.AbstractVisitor;
import org.commonmark.node.Code;
import org.commonmark.node.FencedCodeBlock;
import org.commonmark.node.Heading;
import org.commonmark.node.HtmlBlock;
import org.commonmark.node.HtmlInline;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;
import org.commonmark.node.Paragraph;
import org.commonmark.node.SoftLineBreak;
import org.commonmark.node.StrongEmphasis;
import org.commonmark.node.Text;
import org.commonmark.parser.Parser;
import org.commonmark.renderer.html.HtmlRenderer;

/**
 * Builds a static site from the pages of the root and of docs/, with a search that needs no server:
 * {@code java -cp COMMONMARK release/src/site/Site.java ROOT OUT VERSION HOME}, where HOME is the
 * project's address. OUT must not exist, or be a site that an earlier run wrote.
 *
 * <p>It fails if a link or an anchor leads nowhere, or if links do not lead from docs/README.md to
 * each page. That index is the menu, too: its headings or leading bold words are the menu's, and
 * the links behind them its entries. Pages keep their places in the tree. Files of docs/ and
 * examples/ that pages link to are copied; links to other files lead to HOME, at the release's tag.
 */
public final class Site {
  private static final Path INDEX = Path.of("docs", "README.md");
  private static final List<Path> COPIED = List.of(Path.of("docs"), Path.of("examples"));
  private static final List<String> ASSETS = List.of("style.css", "search.js");
  private static final Pattern ELSEWHERE = Pattern.compile("(?i)[a-z][a-z0-9+.-]*:.*|//.*");

  /** A picture of a given size, which Markdown cannot have. */
  private static final Pattern PICTURE =
      Pattern.compile("<img src=\"([^\"]+)\"((?: (?:alt|width|height)=\"[^\"]*\")*)>");

  /** What else pages may have of HTML: comments, anchors, and tags that lead nowhere. */
  private static final Pattern HTML =
      Pattern.compile(
          "(?s)<!--.*?-->|</a>|<a (?:id|name)=\"([\\w.-]+)\">"
              + "|</?(?:br|sub|sup|kbd|details|summary)>");

  private final List<Extension> extensions = List.of(TablesExtension.create());
  private final Map<Path, Page> pages = new TreeMap<>();
  private final Set<Path> files = new TreeSet<>();
  private final List<String> problems = new ArrayList<>();
  private final Path root;
  private final Path out;
  private final String version;
  private final String tree;

  /**
   * A page of the tree; {@code headings} has the id of each, {@code ids} those of anchors as well.
   */
  private record Page(
      Path source, Node document, Map<Node, String> headings, Set<String> ids, Set<Path> linked) {

    private String title() {
      return headings.keySet().stream().findFirst().map(Site::text).orElse(source.toString());
    }

    private Path place() {
      final String name = source.getFileName().toString();
      return source.resolveSibling(
          name.equals("README.md") ? "index.html" : name.replaceFirst("md$", "html"));
    }

    private String linkTo(final Page other) {
      return relative(other.place());
    }

    /** A relative address, so that the site works from any folder and without a server. */
    private String relative(final Path place) {
      return Path.of("/")
          .resolve(source)
          .getParent()
          .relativize(Path.of("/").resolve(place))
          .toString();
    }
  }

  private Site(final Path root, final Path out, final String version, final String home) {
    this.root = root;
    this.out = out;
    this.version = version;
    this.tree = home + "/blob/" + (version.endsWith("-SNAPSHOT") ? "main" : "v" + version) + "/";
  }

  public static void main(final String... args) throws IOException {
    final Path root = Path.of(args[0]).toAbsolutePath().normalize();
    final Site site = new Site(root, Path.of(args[1]), args[2], args[3]);
    site.readPages();
    site.pages.values().forEach(site::resolveLinks);
    site.checkReach();
    if (!site.problems.isEmpty()) {
      site.problems.forEach(problem -> System.err.println("ERROR: " + problem));
      System.exit(1);
    }
    site.write();
    System.out.printf(
        "site: %d pages and %d files in %s%n", site.pages.size(), site.files.size(), site.out);
  }

  private void readPages() throws IOException {
    final Parser parser = Parser.builder().extensions(extensions).build();
    try (Stream<Path> top = Files.list(root);
        Stream<Path> docs = Files.walk(root.resolve("docs"))) {
      for (final Path file : Stream.concat(top, docs).toList()) {
        if (file.toString().endsWith(".md")) {
          final Path source = root.relativize(file);
          pages.put(source, page(source, parser.parse(Files.readString(file))));
        }
      }
    }
    if (!pages.containsKey(INDEX)) {
      problems.add(INDEX + " is missing, which is the index of all pages");
    }
  }

  private Page page(final Path source, final Node document) {
    final Map<Node, String> headings = new LinkedHashMap<>();
    final Set<String> ids = new LinkedHashSet<>();
    document.accept(
        new AbstractVisitor() {
          @Override
          public void visit(final Heading heading) {
            headings.put(heading, fresh(id(text(heading)), ids));
            visitChildren(heading);
          }

          @Override
          public void visit(final HtmlInline html) {
            read(html.getLiteral());
          }

          @Override
          public void visit(final HtmlBlock html) {
            read(html.getLiteral());
          }

          private void read(final String html) {
            HTML.matcher(html)
                .results()
                .map(tag -> tag.group(1))
                .filter(Objects::nonNull)
                .forEach(ids::add);
            final String rest =
                PICTURE.matcher(HTML.matcher(html).replaceAll("")).replaceAll("").strip();
            if (!rest.isEmpty()) {
              problems.add(source + ": this HTML is not checked; write it as Markdown: " + rest);
            }
          }
        });
    return new Page(source, document, headings, ids, new TreeSet<>());
  }

  /** The id of a heading as public hosts make it. */
  private static String id(final String heading) {
    return heading.toLowerCase(Locale.ROOT).replaceAll("[^\\p{L}\\p{N} _-]", "").replace(' ', '-');
  }

  private static String fresh(final String id, final Set<String> ids) {
    String name = id;
    for (int i = 1; !ids.add(name); i++) {
      name = id + "-" + i;
    }
    return name;
  }

  private void resolveLinks(final Page page) {
    page.document()
        .accept(
            new AbstractVisitor() {
              @Override
              public void visit(final Link link) {
                link.setDestination(resolved(page, link.getDestination()));
                visitChildren(link);
              }

              @Override
              public void visit(final Image image) {
                image.setDestination(resolved(page, image.getDestination()));
                visitChildren(image);
              }

              @Override
              public void visit(final HtmlInline html) {
                html.setLiteral(pictures(html.getLiteral()));
              }

              @Override
              public void visit(final HtmlBlock html) {
                html.setLiteral(pictures(html.getLiteral()));
              }

              private String pictures(final String html) {
                return PICTURE
                    .matcher(html)
                    .replaceAll(
                        picture ->
                            Matcher.quoteReplacement(
                                "<img src=\"%s\"%s>"
                                    .formatted(
                                        resolved(page, picture.group(1)), picture.group(2))));
              }
            });
  }

  /** Where a link leads in the site. */
  private String resolved(final Page page, final String destination) {
    if (ELSEWHERE.matcher(destination).matches()) {
      return destination;
    }
    final int hash = destination.indexOf('#');
    final String path = hash < 0 ? destination : destination.substring(0, hash);
    final String anchor = hash < 0 ? "" : destination.substring(hash + 1);
    final Path file =
        path.isEmpty()
            ? root.resolve(page.source())
            : root.resolve(page.source()).resolveSibling(path).normalize();
    if (!file.startsWith(root) || !Files.exists(file)) {
      problems.add(page.source() + " links to " + destination + ", which is not there");
      return destination;
    }
    final Path target = root.relativize(file);
    final Page other = pages.getOrDefault(target, pages.get(target.resolve("README.md")));
    if (other != null) {
      page.linked().add(other.source());
      if (hash >= 0 && !other.ids().contains(anchor)) {
        problems.add(page.source() + " links to " + destination + ", which has no such anchor");
      }
      return (other == page && hash >= 0 ? "" : page.linkTo(other))
          + (hash < 0 ? "" : "#" + anchor);
    }
    if (hash >= 0) {
      problems.add(page.source() + " links to " + destination + ", whose anchors are not checked");
    }
    if (Files.isRegularFile(file) && COPIED.stream().anyMatch(target::startsWith)) {
      files.add(target);
      return page.relative(target);
    }
    return tree + target;
  }

  private void checkReach() {
    final Set<Path> reached = new TreeSet<>(Set.of(INDEX));
    final Deque<Path> next = new ArrayDeque<>(reached);
    while (!next.isEmpty() && pages.containsKey(INDEX)) {
      for (final Path linked : pages.get(next.remove()).linked()) {
        if (reached.add(linked)) {
          next.add(linked);
        }
      }
    }
    for (final Path source : pages.keySet()) {
      if (!reached.contains(source)) {
        problems.add("no way by links leads from " + INDEX + " to " + source);
      }
    }
  }

  private void write() throws IOException {
    final Path assets = root.resolve("release").resolve("src").resolve("site");
    final Path marker = out.resolve("search-index.js");
    if (Files.exists(out)) {
      if (!Files.exists(marker)) {
        throw new IOException(out + " exists and is no site");
      }
      try (Stream<Path> old = Files.walk(out)) {
        for (final Path file : old.sorted((a, b) -> b.compareTo(a)).toList()) {
          Files.delete(file);
        }
      }
    }
    final String template = Files.readString(assets.resolve("page.html"));
    for (final Page page : pages.values()) {
      put(page.place(), html(page, template));
    }
    for (final Path file : files) {
      final Path to = out.resolve(file);
      Files.createDirectories(to.getParent());
      Files.copy(root.resolve(file), to);
    }
    for (final String asset : ASSETS) {
      put(Path.of(asset), Files.readString(assets.resolve(asset)));
    }
    put(out.relativize(marker), searchIndex());
  }

  private void put(final Path place, final String text) throws IOException {
    final Path file = out.resolve(place);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  private String html(final Page page, final String template) {
    final HtmlRenderer renderer =
        HtmlRenderer.builder()
            .extensions(extensions)
            .attributeProviderFactory(
                context ->
                    (node, tag, attributes) -> {
                      if (page.headings().containsKey(node)) {
                        attributes.put("id", page.headings().get(node));
                      }
                    })
            .build();
    final Path up = Path.of("/").resolve(page.source()).getParent().relativize(Path.of("/"));
    final Map<String, String> values =
        Map.of(
            "title", escaped(page.title()),
            "version", escaped(version),
            "root", up.toString().isEmpty() ? "" : up + "/",
            "source", escaped(tree + page.source()),
            "menu", menu(page),
            "content", renderer.render(page.document()));
    return Pattern.compile("@(\\w+)@")
        .matcher(template)
        .replaceAll(name -> Matcher.quoteReplacement(values.get(name.group(1))));
  }

  /** The index's sections, each with the pages that it names. */
  private String menu(final Page page) {
    final StringBuilder menu = new StringBuilder();
    final Page index = pages.get(INDEX);
    index
        .document()
        .accept(
            new AbstractVisitor() {
              @Override
              public void visit(final Heading heading) {
                if (heading.getLevel() > 1) {
                  section(text(heading));
                }
              }

              @Override
              public void visit(final StrongEmphasis words) {
                if (words.getParent() instanceof Paragraph && words.getPrevious() == null) {
                  section(text(words));
                }
              }

              @Override
              public void visit(final Link link) {
                if (link.getDestination().contains("#")) {
                  return;
                }
                for (final Page other : pages.values()) {
                  if (index.linkTo(other).equals(link.getDestination())) {
                    menu.append(
                        "<li><a href=\"%s\"%s>%s</a></li>\n"
                            .formatted(
                                page.linkTo(other),
                                other == page ? " aria-current=\"page\"" : "",
                                escaped(text(link))));
                  }
                }
              }

              private void section(final String name) {
                menu.append(menu.isEmpty() ? "" : "</ul>\n")
                    .append("<h2>%s</h2>\n<ul>\n".formatted(escaped(name)));
              }
            });
    return menu.isEmpty() ? "" : menu + "</ul>\n";
  }

  /** Each heading with the text below it, as a script: browsers read no JSON from files. */
  private String searchIndex() {
    final StringBuilder index = new StringBuilder("window.searchIndex = [\n");
    for (final Page page : pages.values()) {
      final Map<String, StringBuilder> parts = new LinkedHashMap<>();
      final Map<String, String> names = new LinkedHashMap<>();
      String id = "";
      for (Node node = page.document().getFirstChild(); node != null; node = node.getNext()) {
        if (page.headings().containsKey(node)) {
          id = page.headings().get(node);
          names.put(id, text(node));
        } else {
          parts.computeIfAbsent(id, any -> new StringBuilder()).append(text(node)).append(' ');
        }
      }
      names.forEach((anchor, name) -> parts.putIfAbsent(anchor, new StringBuilder()));
      parts.forEach(
          (anchor, text) ->
              index.append(
                  "[%s, %s, %s, %s],%n"
                      .formatted(
                          quoted(page.place() + (anchor.isEmpty() ? "" : "#" + anchor)),
                          quoted(page.title()),
                          quoted(names.getOrDefault(anchor, "")),
                          quoted(text.toString().strip().replaceAll("\\s+", " ")))));
    }
    return index.append("];\n").toString();
  }

  /** What a reader sees of a node, in one line. */
  private static String text(final Node node) {
    final StringBuilder text = new StringBuilder();
    node.accept(
        new AbstractVisitor() {
          @Override
          public void visit(final Text part) {
            text.append(part.getLiteral());
          }

          @Override
          public void visit(final Code part) {
            text.append(part.getLiteral());
          }

          @Override
          public void visit(final FencedCodeBlock part) {
            text.append(part.getLiteral());
          }

          @Override
          public void visit(final SoftLineBreak part) {
            text.append(' ');
          }

          @Override
          public void visit(final Paragraph part) {
            visitChildren(part);
            text.append(' ');
          }

          @Override
          protected void visitChildren(final Node parent) {
            super.visitChildren(parent);
            if (parent instanceof TableCell) {
              text.append(' ');
            }
          }
        });
    return text.toString().strip();
  }

  private static String escaped(final String text) {
    return text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\"", "&quot;");
  }

  private static String quoted(final String text) {
    return '"'
        + text.replace("\\", "\\\\")
            .replace("\"", "\\\"")
            .replace("\n", "\\n")
            .replace("\u2028", " ")
            .replace("\u2029", " ")
        + '"';
  }
}
