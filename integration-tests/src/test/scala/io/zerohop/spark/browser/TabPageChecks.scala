package io.zerohop.spark.browser

import com.fasterxml.jackson.databind.JsonNode
import org.scalatest.Assertions._

/** What holds for the tab's page in a browser, whatever application it shows. */
final class TabPageChecks(browser: Browser) {
  private val MinContrast = 4.5
  private val FirstLook = 500

  /** The verdict and the bar are what is seen first. */
  def answersFirst(): Unit = {
    val ends = browser.run(
      "return ['zerohop-verdict', 'zerohop-bar'].map(id => " +
        "document.getElementById(id).getBoundingClientRect().bottom + scrollY)")
    ends.forEach(end => assert(end.asDouble < FirstLook, ends))
  }

  /** Nothing is wider than the window; what is scrolls in a box of its own. */
  def fits(): Unit = {
    val widths = browser.run(
      """const page = document.querySelector('.zerohop');
        |return [page.getBoundingClientRect().right, window.innerWidth,
        |  page.scrollWidth, page.clientWidth]""".stripMargin)
    assert(widths.get(0).asDouble <= widths.get(1).asDouble, widths)
    assert(widths.get(2).asInt <= widths.get(3).asInt, widths)
  }

  /** The heads of the matrix stay where it is scrolled. */
  def headsStick(): Unit = {
    val places = browser.run(
      """const box = document.getElementById('zerohop-nodes').parentElement;
        |box.scrollTop = 200; box.scrollLeft = 200;
        |const place = box.getBoundingClientRect();
        |const column = box.querySelector('thead th:nth-child(3)').getBoundingClientRect();
        |const row = box.querySelector('tbody tr:nth-child(3) th').getBoundingClientRect();
        |const found = [box.scrollTop, box.scrollLeft, column.top - place.top, row.left - place.left];
        |box.scrollTop = 0; box.scrollLeft = 0;
        |return found""".stripMargin)
    assert(places.get(0).asDouble === 200.0 && places.get(1).asDouble === 200.0)
    assert(math.abs(places.get(2).asDouble) < 2 && math.abs(places.get(3).asDouble) < 2, places)
  }

  /** Cells of the matrix come to the bytes of the links, and its nodes' cells to most of them. */
  def addsUp(): Unit = {
    val sums = browser.run(
      """const sum = all => all.reduce((one, more) => one + more, 0);
        |const cells = [...document.querySelectorAll('#zerohop-nodes td[data-bytes]')];
        |const rest = cells.filter(one => one.parentElement.cells[0].innerText === 'all others'
        |  && one === one.parentElement.lastElementChild);
        |const links = [...document.querySelectorAll('#zerohop-links tbody tr')];
        |return [sum(cells.map(one => Number(one.dataset.bytes))),
        |  sum(rest.map(one => Number(one.dataset.bytes))),
        |  sum(links.map(one => Number(one.cells[4].getAttribute('sorttable_customkey'))))]
        |  .concat(document.querySelector('#zerohop-bar').nextElementSibling.innerText
        |    .match(/[\d.]+(?= %)/g).reduce((one, more) => one + Number(more), 0))""".stripMargin)
    assert(sums.get(0).asLong === sums.get(2).asLong, sums)
    assert(sums.get(1).asDouble < 0.2 * sums.get(0).asDouble, sums)
    assert(math.abs(sums.get(3).asDouble - 100) < 0.01, sums)
  }

  /** The least contrast of a text on the page to what is behind it, with the text. */
  def contrast(): Double = {
    val least: JsonNode = browser.run(
      """const rgb = text => text.match(/[\d.]+/g).map(Number);
        |const light = c => c.slice(0, 3).map(v => v / 255)
        |  .map(v => v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4))
        |  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        |const behind = node => {
        |  for (let at = node; at; at = at.parentElement) {
        |    const color = rgb(getComputedStyle(at).backgroundColor);
        |    if (color.length < 4 || color[3] > 0.5) return color;
        |  }
        |  return [255, 255, 255];
        |};
        |let least = [99, ''];
        |document.querySelectorAll('details').forEach(one => one.open = true);
        |const all = document.createTreeWalker(
        |  document.querySelector('.zerohop'), NodeFilter.SHOW_TEXT);
        |while (all.nextNode()) {
        |  const node = all.currentNode.parentElement;
        |  const text = all.currentNode.data.trim();
        |  if (!text || node.tagName === 'STYLE' || node.tagName === 'OPTION') continue;
        |  const style = getComputedStyle(node);
        |  const a = light(rgb(node.closest('svg') ? style.fill : style.color));
        |  const b = light(behind(node));
        |  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        |  if (ratio < least[0]) least = [ratio, text];
        |}
        |document.querySelectorAll('details').forEach(one => one.open = false);
        |return least""".stripMargin)
    assert(least.get(0).asDouble >= MinContrast, least)
    least.get(0).asDouble
  }

  /** Bytes of the page as the server sends it. */
  def bytes(): Int =
    browser.run(
      "const ask = new XMLHttpRequest(); ask.open('GET', location.href, false); ask.send();" +
        "return new Blob([ask.responseText]).size").asInt
}
