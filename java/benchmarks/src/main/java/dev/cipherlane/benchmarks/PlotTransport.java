// `make -C java plot-transport`: draws build/bench/java-transport.json.
package dev.cipherlane.benchmarks;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import de.erichseifert.vectorgraphics2d.VectorGraphics2D;
import de.erichseifert.vectorgraphics2d.svg.SVGProcessor;
import de.erichseifert.vectorgraphics2d.util.PageSize;
import java.awt.Color;
import java.awt.Font;
import java.awt.Graphics2D;
import java.awt.Rectangle;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.jfree.chart.ChartFactory;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.StandardBarPainter;
import org.jfree.data.category.CategoryDataset;
import org.jfree.data.category.DefaultCategoryDataset;

/**
 * CPU time per record over one connection: a chart for each size, as sizes differ by a factor of a
 * thousand and rows by tenths. What was not measured is not drawn; nothing is taken from elsewhere.
 */
public final class PlotTransport {
  private static final List<String> OPERATIONS = List.of("produce", "consume");
  private static final List<Integer> SIZES = List.of(128, 512, 1_024, 10_240, 512_000);

  /** Colours that the colour-blind tell apart, by row. */
  private static final Map<String, Color> COLOURS = colours();

  // In pixels.
  private static final int CHART_WIDTH = 230;
  private static final int CHART_HEIGHT = 260;
  private static final int HEAD = 52;
  private static final int LINE = 20;
  private static final int NAME_WIDTH = 130;
  private static final int SQUARE = 12;

  // Not 12: the writer of SVG takes that for the default and leaves it out, and browsers take 16.
  private static final Font FONT = new Font(Font.SANS_SERIF, Font.PLAIN, 11);

  private final JsonObject report;

  private PlotTransport(JsonObject report) {
    this.report = report;
  }

  private static Map<String, Color> colours() {
    Map<String, Color> colours = new LinkedHashMap<>();
    colours.put("plaintext", new Color(0x999999));
    colours.put("jdk-tls", new Color(0xd55e00));
    colours.put("netty", new Color(0xe69f00));
    colours.put("wildfly", new Color(0xcc79a7));
    colours.put("cipherlane-tls", new Color(0x0072b2));
    return colours;
  }

  /**
   * Draws.
   *
   * @param args the report, and the SVG to write
   * @throws IOException if a file cannot be read or written, or a case is missing
   */
  public static void main(String[] args) throws IOException {
    String json = Files.readString(Path.of(args[0]));
    new PlotTransport(JsonParser.parseString(json).getAsJsonObject()).draw(Path.of(args[1]));
  }

  private void draw(Path file) throws IOException {
    VectorGraphics2D picture = new VectorGraphics2D();
    int width = SIZES.size() * CHART_WIDTH;
    picture.setColor(Color.WHITE);
    picture.fillRect(0, 0, width, HEAD + CHART_HEIGHT);
    head(picture);
    for (int i = 0; i < SIZES.size(); i++) {
      Rectangle place = new Rectangle(i * CHART_WIDTH, HEAD, CHART_WIDTH, CHART_HEIGHT);
      chart(SIZES.get(i)).draw(picture, place);
    }
    PageSize size = new PageSize(width, HEAD + CHART_HEIGHT);
    try (OutputStream out = Files.newOutputStream(file)) {
      new SVGProcessor().getDocument(picture.getCommands(), size).writeTo(out);
    }
  }

  private void head(Graphics2D picture) {
    JsonObject machine = report.getAsJsonObject("machine");
    picture.setFont(FONT);
    picture.setColor(Color.BLACK);
    picture.drawString(
        String.format(
            "CPU µs per record, client and broker together; one connection, acks=1; median of %d"
                + " runs on %d cores of %s",
            report.get("runs").getAsInt(),
            machine.get("cores").getAsInt(),
            machine.get("cpu").getAsString()),
        SQUARE,
        LINE);
    int x = SQUARE;
    for (Map.Entry<String, Color> row : COLOURS.entrySet()) {
      picture.setColor(row.getValue());
      picture.fillRect(x, LINE + SQUARE, SQUARE, SQUARE);
      picture.setColor(Color.BLACK);
      picture.drawString(row.getKey(), x + SQUARE + SQUARE / 2, LINE + 2 * SQUARE - 1);
      x += NAME_WIDTH;
    }
  }

  private JFreeChart chart(int size) throws IOException {
    JFreeChart chart = ChartFactory.createBarChart(size + " B", null, null, values(size));
    chart.removeLegend();
    chart.getTitle().setFont(FONT);
    CategoryPlot plot = chart.getCategoryPlot();
    plot.getDomainAxis().setTickLabelFont(FONT);
    plot.getRangeAxis().setTickLabelFont(FONT);
    plot.setBackgroundPaint(Color.WHITE);
    plot.setRangeGridlinePaint(Color.LIGHT_GRAY);
    BarRenderer bars = (BarRenderer) plot.getRenderer();
    bars.setBarPainter(new StandardBarPainter());
    bars.setShadowVisible(false);
    bars.setItemMargin(0);
    int series = 0;
    for (Color colour : COLOURS.values()) {
      bars.setSeriesPaint(series++, colour);
    }
    return chart;
  }

  private CategoryDataset values(int size) throws IOException {
    DefaultCategoryDataset values = new DefaultCategoryDataset();
    for (String row : COLOURS.keySet()) {
      for (String operation : OPERATIONS) {
        values.addValue(value(operation, size, row), row, operation);
      }
    }
    return values;
  }

  private double value(String operation, int size, String row) throws IOException {
    return rows().stream()
        .filter(each -> is(each, operation, size, row))
        .map(each -> each.get(Report.VALUE).getAsDouble())
        .findFirst()
        .orElseThrow(
            () -> new IOException(operation + " " + size + " B " + row + " was not measured"));
  }

  private List<JsonObject> rows() {
    return StreamSupport.stream(report.getAsJsonArray("rows").spliterator(), false)
        .map(JsonElement::getAsJsonObject)
        .toList();
  }

  private static boolean is(JsonObject row, String operation, int size, String name) {
    return row.get("case").getAsString().equals(new TransportCase(operation, size, 1, "1").name())
        && row.get("row").getAsString().equals(name);
  }
}
